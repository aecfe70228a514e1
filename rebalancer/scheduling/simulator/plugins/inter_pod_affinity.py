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
from rebalancer.scheduling.simulator.nodes import WHOLE, ByNode, Mask, Nodes
from rebalancer.scheduling.simulator.plugin import Refusals, UnknownPlacementError
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.tally import AffinityRule, MatchedPods, Matcher, Strength, Term

AFFINITY = ("node(s) didn't match pod affinity rules",)
ANTI_AFFINITY = ("node(s) didn't match pod anti-affinity rules",)
EXISTING = ("node(s) didn't satisfy existing pods anti-affinity rules",)

#: By topology key and value of that label, an amount; nodes without the label have none.
_ByKey = Mapping[str, Mapping[str | None, int]]

#: Pods by namespace and labels.
_Selected = Sequence[tuple[str, Labels]]


class InterPodAffinityArgs(msgspec.Struct, rename="camel", frozen=True):
    """How terms of running pods count.

    Attributes:
        hard_pod_affinity_weight: the weight of their required affinity for the pods that it selects.
        ignore_preferred_terms_of_existing_pods: for pods without preferences of their own.
    """

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


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
        selecting = self._selecting(pod)
        terms = self._terms(pod)
        required = [term for term in terms if term.strength is Strength.ATTRACTS]
        apart = [self._domains(Matcher((each.condition,)), [each.topology_key]) for each in terms if _repels(each)]
        existing = self._summed((rule, 1) for rule in selecting if _repels(rule.term))
        if not (required or apart or existing):
            return None
        return Refusals.joined(
            (
                *((mask, AFFINITY) for mask in self._out_of_reach(pod, required)),
                *((mask, ANTI_AFFINITY) for each in apart for mask in self._in_domains(each)),
                *((mask, EXISTING) for mask in self._in_domains(existing)),
            )
        )

    def _out_of_reach(self, pod: Pod, required: Sequence[Term]) -> Iterator[Mask]:
        """Yield the nodes not near the pods that the pod must be near; those are the pods that meet all its terms."""
        keys = [term.topology_key for term in required]
        matcher = Matcher(tuple(term.condition for term in required))
        near = self._domains(matcher, keys) if keys else {}
        first = not any(near.values()) and self._takes(matcher, pod)
        for key in keys:
            reached = set(self._state.domains(key)) - {None} if first else near.get(key, {}).keys()
            yield ~self._state.in_domains(key, reached)

    def _in_domains(self, counts: _ByKey) -> Iterator[Mask]:
        for key, by_value in counts.items():
            yield self._state.in_domains(key, [value for value, count in by_value.items() if count > 0])

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode | None:
        """Return how well the preferences of the pod, and of running pods about it, are met."""
        terms = [term for term in self._terms(pod) if term.strength is Strength.PREFERS]
        if self._ignore_running and not terms:
            return None
        totals = self._summed((rule, self._weight(rule.term)) for rule in self._selecting(pod))
        for term in terms:
            for key, by_value in self._domains(Matcher((term.condition,)), [term.topology_key]).items():
                for value, count in by_value.items():
                    totals[key][value] += term.weight * count
        return self._normalized(totals, nodes) if totals else None

    def _normalized(self, totals: _ByKey, nodes: Nodes) -> ByNode:
        raw = np.zeros(len(nodes), dtype=np.int64)
        for key, by_value in totals.items():
            raw += self._by_domain(key, by_value).take(nodes.of(self._state.domain_of(key)))
        least, most = int(raw.min()), int(raw.max())
        if least == most:
            return np.zeros(len(nodes), dtype=np.int64)
        return (WHOLE * ((raw - least) / (most - least))).astype(np.int64)

    def _by_domain(self, key: str, by_value: Mapping[str | None, int]) -> ByNode:
        numbers = self._state.domains(key)
        found = np.zeros(len(numbers), dtype=np.int64)
        for value, count in by_value.items():
            if value in numbers:
                found[numbers[value]] = count
        return found

    def _weight(self, term: Term) -> int:
        return {Strength.PREFERS: term.weight, Strength.ATTRACTS: self._hard_weight, Strength.REPELS: 0}[term.strength]

    def _domains(self, matcher: Matcher, keys: Iterable[str]) -> _ByKey:
        """Return how many pods that match are in each domain of each key."""
        tally = self._state.tallies.tally(matcher)
        found: defaultdict[str, defaultdict[str | None, int]] = defaultdict(lambda: defaultdict(int))
        for key in keys:
            counts = defaultdict[str | None, int](int)
            for index, count in tally.items():
                value = self._state.nodes[index].labels.get(key)
                if value is not None and count:
                    counts[value] += count
            if counts:
                found[key] = counts
        return found

    def _summed(self, weighted: Iterable[tuple[AffinityRule, int]]) -> defaultdict[str, defaultdict[str | None, int]]:
        """Return the sums of the rules' counts times their weights, by topology key and value."""
        totals: defaultdict[str, defaultdict[str | None, int]] = defaultdict(lambda: defaultdict(int))
        for rule, weight in weighted:
            if weight:
                for value, count in self._state.rules.counts.of(rule).items():
                    if count:
                        totals[rule.term.topology_key][value] += weight * count
        return totals

    def _takes(self, matcher: Matcher, pod: Pod) -> bool:
        return matcher.takes(pod.namespace, (self._state.namespaces or {}).get(pod.namespace, {}), pod.labels)

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


def _repels(term: Term) -> bool:
    return term.strength is Strength.REPELS
