"""InterPodAffinity: pods that must or should be near other pods or away from them, by the terms of either.

Source: the Kubernetes documentation, Assigning Pods to Nodes (inter-pod affinity and anti-affinity); scheduling
profiles (weight 2; `hardPodAffinityWeight` 1; `ignorePreferredTermsOfExistingPods`).  A terminating pod counts until it
is gone.  The first pod of a group that must be near pods of its own group may go to any node with the topology labels.
A namespaceSelector goes by the labels of namespaces: where those of one are not known, and decide, nor is the answer.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import add

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import Labels
from rebalancer.scheduling.simulator.nodes import WHOLE, Nodes
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals, UnknownPlacementError
from rebalancer.scheduling.simulator.rules import AffinityRule, Strength, Term, terms_of
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.tally import MatchedPods, Matcher

AFFINITY = ("node(s) didn't match pod affinity rules",)
ANTI_AFFINITY = ("node(s) didn't match pod anti-affinity rules",)
EXISTING = ("node(s) didn't satisfy existing pods anti-affinity rules",)

#: By topology key and value of that label, an amount; nodes without the label have none.
_ByKey = Mapping[str, Mapping[str | None, int]]

#: Pods by namespace and labels.
_Selected = Sequence[tuple[str, Labels]]


class InterPodAffinity:
    """Refuses and scores nodes by the pods that run there.

    Args:
        state: the cluster.
        hard_weight: the weight of a running pod's required affinity for the pods that it selects.
        ignore_running: whether preferences of running pods are ignored for pods without preferences of their own.
    """

    name = "InterPodAffinity"

    def __init__(self, state: State, hard_weight: int = 1, ignore_running: bool = False) -> None:
        self._state = state
        self._hard_weight = hard_weight
        self._ignore_running = ignore_running

    def refusals(self, pod: Pod, nodes: Sequence[int]) -> Refusals:
        """Return the nodes that a required term of the pod, or of a running one, rules out."""
        selecting = self._selecting(pod)
        terms = self._terms(pod)
        required = [term for term in terms if term.strength is Strength.ATTRACTS]
        apart = [self._domains(Matcher((each.condition,)), [each.topology_key]) for each in terms if _repels(each)]
        existing = _summed((rule, 1) for rule in selecting if _repels(rule.of))
        if not (required or apart or existing):
            return NO_REFUSALS
        found: dict[int, tuple[str, ...]] = {}
        found.update(self._in_domains(existing, EXISTING))
        for each in apart:
            found.update(self._in_domains(each, ANTI_AFFINITY))
        found.update(self._out_of_reach(pod, required, nodes))
        return found

    def _out_of_reach(self, pod: Pod, required: Sequence[Term], nodes: Sequence[int]) -> Refusals:
        """Return the nodes not near the pods that the pod must be near; those are the pods that meet all its terms."""
        if not required:
            return NO_REFUSALS
        keys = [term.topology_key for term in required]
        matcher = Matcher(tuple(term.condition for term in required))
        near = self._domains(matcher, keys)
        first = not any(near.values()) and self._takes(matcher, pod)
        values = [(self._state.values(key), near.get(key, {})) for key in keys]
        return {
            index: AFFINITY
            for index in nodes
            if not all((value := at[index]) is not None and (first or count.get(value, 0) > 0) for at, count in values)
        }

    def _in_domains(self, counts: _ByKey, reason: tuple[str, ...]) -> Refusals:
        bad = (
            self._state.domains(key)[value]
            for key, by_value in counts.items()
            for value, count in by_value.items()
            if count > 0
        )
        return {index: reason for nodes in bad for index in nodes}

    def scores(self, pod: Pod, nodes: Nodes) -> list[int] | None:
        """Return how well the preferences of the pod, and of running pods about it, are met."""
        terms = [term for term in self._terms(pod) if term.strength is Strength.PREFERS]
        if self._ignore_running and not terms:
            return None
        totals = _summed((rule, self._weight(rule.of)) for rule in self._selecting(pod))
        for term in terms:
            for key, by_value in self._domains(Matcher((term.condition,)), [term.topology_key]).items():
                for value, count in by_value.items():
                    totals[key][value] += term.weight * count
        return self._normalized(totals, nodes) if totals else None

    def _normalized(self, totals: _ByKey, nodes: Nodes) -> list[int]:
        raw = [0] * len(nodes)
        for key, by_value in totals.items():
            values = self._state.values(key)
            raw = list(map(add, raw, map(by_value.get, nodes.of(values), repeat(0))))
        different = set(raw)
        least, reach = min(different), max(different) - min(different)
        points = {score: int(WHOLE * (float(score - least) / float(reach))) if reach else 0 for score in different}
        return list(map(points.__getitem__, raw))

    def _weight(self, term: Term) -> int:
        return {Strength.PREFERS: term.weight, Strength.ATTRACTS: self._hard_weight, Strength.REPELS: 0}[term.strength]

    def _domains(self, matcher: Matcher, keys: Iterable[str]) -> _ByKey:
        """Return how many pods that match are in each domain of each key."""
        tally = self._state.tallies.tally(matcher)
        found: defaultdict[str, defaultdict[str | None, int]] = defaultdict(lambda: defaultdict(int))
        for key in keys:
            values, counts = self._state.values(key), defaultdict[str | None, int](int)
            for index, count in tally.counts.items():
                value = values[index]
                if value is not None and count:
                    counts[value] += count
            if counts:
                found[key] = counts
        return found

    def _takes(self, matcher: Matcher, pod: Pod) -> bool:
        return matcher.takes(pod.namespace, (self._state.namespaces or {}).get(pod.namespace, {}), pod.labels)

    def _terms(self, pod: Pod) -> list[Term]:
        terms = terms_of(pod.spec, pod.namespace)
        asking = [term.condition for term in terms if term.condition.namespace_selector]
        if asking:
            running = (each for each in self._state.tallies.unlabelled if any(each.nodes.values()))
            self._check(asking, [*((each.namespace, each.labels) for each in running), *self._unlabelled(pod)])
        return terms

    def _selecting(self, pod: Pod) -> list[AffinityRule]:
        self._check(self._state.rules.conditions_on_namespaces, self._unlabelled(pod))
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


def _summed(weighted: Iterable[tuple[AffinityRule, int]]) -> defaultdict[str, defaultdict[str | None, int]]:
    """Return the sums of the rules' counts times their weights, by topology key and value."""
    totals: defaultdict[str, defaultdict[str | None, int]] = defaultdict(lambda: defaultdict(int))
    for rule, weight in weighted:
        if weight:
            for value, count in rule.counts.items():
                if count:
                    totals[rule.of.topology_key][value] += weight * count
    return totals
