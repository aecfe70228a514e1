"""InterPodAffinity: pods that must or should be near other pods or away from them, by the terms of either.

Source: the Kubernetes documentation, Assigning Pods to Nodes (inter-pod affinity and anti-affinity); scheduling
profiles (weight 2; `hardPodAffinityWeight` 1; `ignorePreferredTermsOfExistingPods`).  A terminating pod counts until it
is gone.  The first pod of a group that must be near pods of its own group may go to any node with the topology labels.
A namespaceSelector goes by the labels of namespaces: where those of one are not known, and decide, nor is the answer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from rebalancer.cluster.pod import Int32, Pod
from rebalancer.cluster.selectors import Labels
from rebalancer.scheduling.simulator.plugin import WHOLE, ByNode, Mask, Nodes, Refusals, UnknownPlacementError
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.tally import AffinityRule, MatchedPods, Matcher, Strength

_AFFINITY = ("node(s) didn't match pod affinity rules",)
_ANTI_AFFINITY = ("node(s) didn't match pod anti-affinity rules",)
_EXISTING = ("node(s) didn't satisfy existing pods anti-affinity rules",)

#: Pods by namespace and labels.
_Selected = Sequence[tuple[str, Labels]]


class InterPodAffinityArgs(msgspec.Struct, rename="camel", frozen=True):
    """How terms of running pods count."""

    hard_pod_affinity_weight: Int32 = 1  # the weight of their required affinity for the pods that it selects
    ignore_preferred_terms_of_existing_pods: bool = False  # for pods without preferences of their own


class InterPodAffinity:
    """Refuses and scores nodes by the pods that run there."""

    name = "InterPodAffinity"
    Args = InterPodAffinityArgs

    def __init__(self, state: State, args: InterPodAffinityArgs) -> None:
        self._state = state
        self._ignore_running = args.ignore_preferred_terms_of_existing_pods
        self._hard_weight = args.hard_pod_affinity_weight

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the nodes that a required term of the pod, or of a running one, rules out."""
        selecting, own, having = self._selecting(pod), self._own(pod), self._state.rules.counts.of
        near = [rule for rule in own if rule.strength is Strength.ATTRACTS]
        refused = [(mask, _AFFINITY) for mask in self._out_of_reach(pod, near)]
        apart = [rule for rule in own if rule.strength is Strength.REPELS]
        refused += [(self._near(rule.topology_key, self._tally(rule)), _ANTI_AFFINITY) for rule in apart]
        existing = [rule for rule in selecting if rule.strength is Strength.REPELS]
        refused += [(self._near(rule.topology_key, having(rule)), _EXISTING) for rule in existing]
        return Refusals.joined(refused)

    def _out_of_reach(self, pod: Pod, near: Sequence[AffinityRule]) -> Iterator[Mask]:
        """Yield the nodes not near the pods that the pod must be near; those are the pods that meet all its rules."""
        if not near:
            return
        matcher = Matcher(tuple(rule.condition for rule in near))
        tally = self._state.tallies.tally(matcher)
        reached = {rule.topology_key: self._near(rule.topology_key, tally) for rule in near}
        namespace = (self._state.namespaces or {}).get(pod.namespace, {})
        first = matcher.takes(pod.namespace, namespace, pod.labels) and not any(each.any() for each in reached.values())
        for key, mask in reached.items():
            yield self._state.domains(key).lacking if first else ~mask

    def _near(self, key: str, by_node: Mapping[int, int]) -> Mask:
        """Return which nodes are in a domain with such pods."""
        found: Mask = (self._by_domain(key, by_node) > 0).take(self._state.domains(key).of_node)
        return found

    def _by_domain(self, key: str, by_node: Mapping[int, int]) -> ByNode:
        return self._state.by_domain(key, by_node, ~self._state.domains(key).lacking)

    def _tally(self, rule: AffinityRule) -> Mapping[int, int]:
        return self._state.tallies.tally(Matcher((rule.condition,)))

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode | None:
        """Return how well the preferences of the pod, and of running pods about it, are met."""
        own = [rule for rule in self._own(pod) if rule.strength is Strength.PREFERS]
        if self._ignore_running and not own:
            return None
        having, selecting = self._state.rules.counts.of, self._selecting(pod)
        weighted = [(rule, self._weight(rule), having(rule)) for rule in selecting]
        weighted += [(rule, rule.weight, self._tally(rule)) for rule in own]
        raw, counts = np.zeros(len(nodes), dtype=np.int64), False
        for rule, weight, by_node in weighted:
            by_domain = self._by_domain(rule.topology_key, by_node) if weight and by_node else None
            if by_domain is not None and by_domain.any():
                counts = True
                raw += weight * by_domain.take(nodes.of(self._state.domains(rule.topology_key).of_node))
        return _normalized(raw) if counts else None

    def _weight(self, rule: AffinityRule) -> int:
        return {Strength.PREFERS: rule.weight, Strength.ATTRACTS: self._hard_weight, Strength.REPELS: 0}[rule.strength]

    def _own(self, pod: Pod) -> list[AffinityRule]:
        """Return the rules of the pod itself; raises UnknownPlacementError where they hang on what was not read."""
        rules = self._state.rules.of(pod)
        asking = [rule.condition for rule in rules if rule.condition.namespace_selector]
        if asking:
            tallies = self._state.tallies
            running = (each for each in tallies.unlabelled if any(tallies.nodes.of(each).values()))
            self._check(asking, [*((each.namespace, each.labels) for each in running), *self._unlabelled(pod)])
        return rules

    def _selecting(self, pod: Pod) -> list[AffinityRule]:
        self._check(self._state.rules.conditions_on_namespaces(), self._unlabelled(pod))
        return self._state.rules.selecting(pod)

    def _unlabelled(self, pod: Pod) -> _Selected:
        """Return the pod, if no labels of its namespace are known."""
        return [] if pod.namespace in (self._state.namespaces or {}) else [(pod.namespace, pod.labels)]

    def _check(self, conditions: Iterable[MatchedPods], unlabelled: _Selected) -> None:
        if not unlabelled and self._state.namespaces is not None:
            return
        for each in conditions:
            if self._state.namespaces is None and each.namespace_selector:
                raise UnknownPlacementError("a namespaceSelector was not answered, since namespaces were not read")
            for namespace, labels in unlabelled:
                if each.hangs_on_labels_of(namespace, labels):
                    raise UnknownPlacementError(
                        f"a namespaceSelector goes by labels of {namespace}, which are not known"
                    )


def _normalized(raw: ByNode) -> ByNode:
    least, most = int(raw.min()), int(raw.max())
    if least == most:
        return np.zeros_like(raw)
    return (WHOLE * ((raw - least) / (most - least))).astype(np.int64)
