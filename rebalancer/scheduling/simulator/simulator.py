"""Where kube-scheduler would put a pod, asked of one cluster and its profiles.

Source: the Kubernetes documentation, kube-scheduler and Scheduler Performance Tuning.  Preemption, scheduling gates and
dynamic resource allocation are not simulated: where they matter, the answer is unknown.  It is unknown, too, while a
pod of equal or higher priority waits for room that preemption makes.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import add

from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.scheduling.simulator.answer import Answer, Scores
from rebalancer.scheduling.simulator.plugin import Filter, PodUnschedulableError, Refusals, UnknownPlacementError
from rebalancer.scheduling.simulator.plugins.node_affinity import named_nodes
from rebalancer.scheduling.simulator.profile import Profile
from rebalancer.scheduling.simulator.sampling import favourites, nodes_to_score, window_winners
from rebalancer.scheduling.simulator.state import State

PREEMPTS = "pods of a lower priority might have to make room, and nobody knows which"


class Simulator:
    """Answers for one cluster, by its state at the time of the question.

    Args:
        state: the cluster.
        profiles: by name of the scheduler.
    """

    def __init__(self, state: State, profiles: Mapping[str, Profile]) -> None:
        self._state = state
        self._profiles = profiles
        self._still: dict[tuple[int, str], tuple[PodSpec, list[int], Refusals]] = {}

    def ask(self, pod: Pod) -> Answer:
        """Return where a pod that has no node yet would go."""
        unknown = self._why_unknown(pod)
        if unknown:
            return Answer(unknown=unknown)
        try:
            return self._decide(pod, self._profiles[pod.spec.placement.scheduler])
        except UnknownPlacementError as error:
            return Answer(unknown=str(error))
        except PodUnschedulableError as error:
            return Answer(reason=f"0/{len(self._state.nodes)} nodes are available: {error}.")

    def _why_unknown(self, pod: Pod) -> str:
        placement = pod.spec.placement
        if pod.problem or pod.spec.problem:
            return f"the pod is malformed: {pod.problem or pod.spec.problem}"
        if placement.scheduler not in self._profiles:
            return f"nothing is known of the scheduler {placement.scheduler!r}"
        if self._profiles[placement.scheduler].unknown:
            return self._profiles[placement.scheduler].unknown
        if placement.gated:
            return "a scheduling gate holds the pod back"
        if pod.spec.resource_claims:
            return "the pod claims devices"
        rivals = (each for each in self._state.nominated if (each.spec.priority or 0) >= (pod.spec.priority or 0))
        rival = next(rivals, None)
        return f"{rival} waits for room that is being made for it" if rival else ""

    def _decide(self, pod: Pod, profile: Profile) -> Answer:
        nodes, refused = self._feasible(pod, profile)
        if not nodes:
            rival = self._lower(pod, profile)
            return Answer(reason=self._reason(refused), unknown=PREEMPTS if rival else "")
        weighted = self._weighted(pod, profile, nodes)
        enough = nodes_to_score(profile.percentage, self._looked_at(pod))
        sampled = len(nodes) > enough
        winners = window_winners(weighted, len(nodes), enough) if sampled else _best(_totals(weighted, len(nodes)))
        return Answer(
            nodes=self._named(nodes, winners),
            feasible=len(nodes),
            sampled=sampled,
            favourites=lambda: self._named(nodes, favourites(_totals(weighted, len(nodes)), enough)),
            scores=lambda name: self._scores(weighted, nodes, name),
            feasible_nodes=lambda: self._named(nodes, range(len(nodes))),
        )

    def _lower(self, pod: Pod, profile: Profile) -> Pod | None:
        """Return a pod that might have to make room for this one: of a lower priority, on a node that suits it."""
        priority, state = pod.spec.priority or 0, self._state
        if not pod.spec.placement.preempts or priority <= min(state.priorities, default=priority):
            return None
        nodes, _ = self._suited(pod, profile)
        residents = (each for index in nodes for each in state.residents[index])
        return next((each for each in residents if (each.spec.priority or 0) < priority), None)

    def _named(self, nodes: Sequence[int], places: Sequence[int]) -> tuple[str, ...]:
        return tuple([self._state.names[nodes[place]] for place in places])

    def _scores(self, weighted: Mapping[str, Sequence[int]], nodes: Sequence[int], name: str) -> Scores:
        index = self._state.index[name]
        place = bisect_left(nodes, index)  # in the order of their names, as all lists of nodes are
        if place == len(nodes) or nodes[place] != index:
            return {}
        return {plugin: scores[place] for plugin, scores in weighted.items()}

    def _weighted(self, pod: Pod, profile: Profile, nodes: Sequence[int]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for plugin, weight in profile.scores:
            scores = plugin.scores(pod, nodes) if weight else None
            if scores is not None:
                found[plugin.name] = scores if weight == 1 else [weight * score for score in scores]
        return found

    def _feasible(self, pod: Pod, profile: Profile) -> tuple[list[int], Refusals]:
        return _filtered(pod, profile.moving, *self._suited(pod, profile))

    def _suited(self, pod: Pod, profile: Profile) -> tuple[list[int], Refusals]:
        """Return the nodes that suit a pod, no matter what runs there, and why the others do not."""
        key = (id(pod.spec), pod.spec.placement.scheduler)  # the value keeps the spec alive
        known = self._still.get(key)
        if known is None:
            known = self._still[key] = (pod.spec, *_filtered(pod, profile.still, *self._narrowed(pod)))
        return known[1], known[2]

    def _narrowed(self, pod: Pod) -> tuple[list[int], dict[int, tuple[str, ...]]]:
        names = named_nodes(pod.spec)
        if names is None:
            return list(range(len(self._state.nodes))), {}
        nodes = sorted(self._state.index[name] for name in names if name in self._state.index)
        reason = ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
        return nodes, {index: reason for index in range(len(self._state.nodes)) if index not in nodes}

    def _looked_at(self, pod: Pod) -> int:
        names = named_nodes(pod.spec)
        return len(self._state.nodes if names is None else self._state.index.keys() & names)

    def _reason(self, refused: Refusals) -> str:
        total = len(self._state.nodes)
        if not total:
            return "no nodes available to schedule pods"
        return f"0/{total} nodes are available: {_tallied(reason for each in refused.values() for reason in each)}."


def _tallied(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))


def _filtered(pod: Pod, plugins: Sequence[Filter], nodes: list[int], refused: Refusals) -> tuple[list[int], Refusals]:
    """Return the nodes that all plugins let pass, and all refusals; the first plugin that refuses a node counts."""
    for plugin in plugins:
        more = plugin.refusals(pod, nodes)
        if more:
            refused = {**more, **refused}
            nodes = [index for index in nodes if index not in more]
    return nodes, refused


def _totals(weighted: Mapping[str, Sequence[int]], count: int) -> list[int]:
    totals = [0] * count
    for scores in weighted.values():
        totals = list(map(add, totals, scores))
    return totals


def _best(totals: Sequence[int]) -> list[int]:
    most = max(totals)
    return [place for place, total in enumerate(totals) if total == most]
