"""InterPodAffinity: pods that must or should be near other pods or away from them, by the terms of either.

Source: the Kubernetes documentation, Assigning Pods to Nodes (inter-pod affinity and anti-affinity); scheduling
profiles (weight 2; `hardPodAffinityWeight` 1; `ignorePreferredTermsOfExistingPods`).  A terminating pod counts until it
is gone.  The first pod of a group that must be near pods of its own group may go to any node with the topology labels.
A namespaceSelector goes by the labels of namespaces: where those of one are not known, and decide, nor is the answer.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import Labels
from rebalancer.scheduling.simulator.plugin import WHOLE, ByNode, Mask, Nodes, Refusals, UnknownPlacementError
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.tally import AffinityRule, MatchedPods, Matcher, Strength, Term

_AFFINITY = ("node(s) didn't match pod affinity rules",)
_ANTI_AFFINITY = ("node(s) didn't match pod anti-affinity rules",)
_EXISTING = ("node(s) didn't satisfy existing pods anti-affinity rules",)

#: Pods by namespace and labels.
_Selected = Sequence[tuple[str, Labels]]


class InterPodAffinityArgs(msgspec.Struct, rename="camel", frozen=True):
    """How terms of running pods count."""

    hard_pod_affinity_weight: int = 1  # the weight of their required affinity for the pods that it selects
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
        selecting, terms = self._selecting(pod), self._terms(pod)
        near = [term for term in terms if term.strength is Strength.ATTRACTS]
        refused = [(mask, _AFFINITY) for mask in self._out_of_reach(pod, near)]
        apart = ((term.topology_key, term.condition) for term in terms if term.strength is Strength.REPELS)
        unwanted = [(key, self._counts(Matcher((condition,)), key)) for key, condition in apart]
        refused += [(self._where(key, counts), _ANTI_AFFINITY) for key, counts in unwanted if counts]
        existing = self._summed((rule, 1) for rule in selecting if rule.term.strength is Strength.REPELS)
        refused += [(self._where(key, counts), _EXISTING) for key, counts in existing.items()]
        return Refusals.joined(refused)

    def _out_of_reach(self, pod: Pod, near: Sequence[Term]) -> Iterator[Mask]:
        """Yield the nodes not near the pods that the pod must be near; those are the pods that meet all its terms."""
        if not near:
            return
        matcher = Matcher(tuple(term.condition for term in near))
        counts = {term.topology_key: self._counts(matcher, term.topology_key) for term in near}
        namespace = (self._state.namespaces or {}).get(pod.namespace, {})
        first = not any(counts.values()) and matcher.takes(pod.namespace, namespace, pod.labels)
        for key, reached in counts.items():
            yield self._state.domains(key).lacking if first else ~self._where(key, reached)

    def _where(self, key: str, counts: Mapping[str, int]) -> Mask:
        return self._state.in_domains(key, [value for value, count in counts.items() if count > 0])

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode | None:
        """Return how well the preferences of the pod, and of running pods about it, are met."""
        terms = [term for term in self._terms(pod) if term.strength is Strength.PREFERS]
        if self._ignore_running and not terms:
            return None
        totals = self._summed((rule, self._weight(rule.term)) for rule in self._selecting(pod))
        for term in terms:
            for value, count in self._counts(Matcher((term.condition,)), term.topology_key).items():
                totals[term.topology_key][value] += term.weight * count
        return self._normalized(totals, nodes) if totals else None

    def _normalized(self, totals: Mapping[str, Mapping[str, int]], nodes: Nodes) -> ByNode:
        raw = np.zeros(len(nodes), dtype=np.int64)
        for key, counts in totals.items():
            numbers, of_node, _ = self._state.domains(key)
            by_domain = np.zeros(len(numbers), dtype=np.int64)
            for value, count in counts.items():
                by_domain[numbers[value]] = count
            raw += by_domain.take(nodes.of(of_node))
        least, most = int(raw.min()), int(raw.max())
        if least == most:
            return np.zeros(len(nodes), dtype=np.int64)
        return (WHOLE * ((raw - least) / (most - least))).astype(np.int64)

    def _weight(self, term: Term) -> int:
        return {Strength.PREFERS: term.weight, Strength.ATTRACTS: self._hard_weight, Strength.REPELS: 0}[term.strength]

    def _counts(self, matcher: Matcher, key: str) -> Mapping[str, int]:
        counts = defaultdict[str, int](int)
        for index, count in self._state.tallies.tally(matcher).items():
            value = self._state.nodes[index].labels.get(key)
            if value is not None and count:
                counts[value] += count
        return counts

    def _summed(self, weighted: Iterable[tuple[AffinityRule, int]]) -> defaultdict[str, defaultdict[str, int]]:
        """Return the sums of the rules' counts times their weights, by topology key and value."""
        totals: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        for rule, weight in weighted:
            if weight:
                for value, count in self._state.rules.counts.of(rule).items():
                    if count:
                        totals[rule.term.topology_key][value] += weight * count
        return totals

    def _terms(self, pod: Pod) -> list[Term]:
        terms = [rule.term for rule in self._state.rules.of(pod)]
        asking = [term.condition for term in terms if term.condition.namespace_selector]
        if asking:
            tallies = self._state.tallies
            running = (each for each in tallies.unlabelled if any(tallies.nodes.of(each).values()))
            self._check(asking, [*((each.namespace, each.labels) for each in running), *self._unlabelled(pod)])
        return terms

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
