"""Where kube-scheduler would put a pod, asked of one cluster and its profiles.

Source: the Kubernetes documentation, kube-scheduler and Scheduler Performance Tuning.  Preemption, scheduling gates and
dynamic resource allocation are not simulated: where they matter, the answer is unknown.  Pods that are nominated for a
node count in the filters of that node, for pods of no higher priority, and nowhere else.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import NamedTuple

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.answer import Answer, Scores, Weighing, Winners
from rebalancer.scheduling.simulator.nodes import Nodes
from rebalancer.scheduling.simulator.plugin import Filter, PodUnschedulableError, Refusals, UnknownPlacementError
from rebalancer.scheduling.simulator.plugins.node_affinity import named_nodes
from rebalancer.scheduling.simulator.profile import Profile
from rebalancer.scheduling.simulator.sampling import (
    SamplingWindow,
    nodes_to_score,
    window_of,
    window_winners,
    winners_in_line,
)
from rebalancer.scheduling.simulator.state import State


class Weighted(NamedTuple):
    """One plugin's scores of the feasible nodes, in their order, and the plugin's weight."""

    scores: Sequence[int]
    weight: int

    @property
    def even(self) -> bool:
        """Whether all nodes score the same."""
        return self.scores.count(self.scores[0]) == len(self.scores)


def totals(columns: Iterable[Weighted], count: int) -> Sequence[int]:
    """Return the sums of the weighted scores of `count` nodes, less a constant: columns that are even are left out.

    Sums are only compared with each other.  As a rule two or three of seven plugins score all nodes the same, no taints
    and no images for example, and each column less saves a look at all nodes.
    """
    sums: Sequence[int] | None = None
    for scores, weight in (each for each in columns if not each.even):
        if sums is None:
            sums = scores if weight == 1 else [weight * score for score in scores]
        elif weight == 1:
            sums = list(map(add, sums, scores))
        else:
            sums = [total + weight * score for total, score in zip(sums, scores, strict=True)]
    return [0] * count if sums is None else sums


#: What each plugin refuses, in the order in which they are asked.
_Refused = tuple[Refusals, ...]

#: Of nodes that the pod's affinity does not name; up to 1.31 the scheduler says nothing of them.
NOT_NAMED = ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
_TELLS_NOT_NAMED = 32
_CLAIMS_FOR_REQUESTS = 36
_OF_NODES = ("kubernetes.io/", "hugepages-", "attachable-volumes-")
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
        self._still: dict[tuple[int, str], tuple[Nodes, _Refused]] = {}

    def ask(self, pod: Pod, winners: Winners = Winners.EXACT, window: SamplingWindow | None = None) -> Answer:
        """Return where a pod that has no node yet would go.

        Args:
            pod: the pod.
            winners: which nodes to name if the scheduler scores only a part of them and begins to look anywhere.
            window: where it begins to look; None for anywhere.
        """
        unknown = self._why_unknown(pod)
        if unknown:
            return Answer(unknown=unknown)
        try:
            return self._decide(pod, self._profiles[pod.spec.placement.scheduler], winners, window)
        except UnknownPlacementError as error:
            return Answer(unknown=str(error))
        except PodUnschedulableError as error:
            return Answer(reason=f"0/{len(self._state.nodes)} nodes are available: {error}.")

    def weigh(self, pod: Pod) -> Weighing:
        """Return what the scheduler thinks of each node for a pod that has no node yet."""
        if unknown := self._why_unknown(pod):
            return Weighing(unknown=unknown)
        profile, names = self._profiles[pod.spec.placement.scheduler], self._state.names
        try:
            nodes, refused = self._feasible(pod, profile)
            weighted = self._weighted(pod, profile, nodes)
        except (UnknownPlacementError, PodUnschedulableError) as error:
            return Weighing(unknown=str(error))
        return Weighing(
            {names[index]: reasons for index, reasons in sorted(_by_node(refused).items())},
            {names[index]: self._scores(weighted, nodes, names[index]) for index in nodes},
        )

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
        if placement.removed_volumes:
            return f"the pod has a volume of a kind that Kubernetes has removed ({placement.removed_volumes[0]})"
        return "the pod claims devices" if pod.spec.resource_claims else ""

    def _decide(self, pod: Pod, profile: Profile, winners: Winners, window: SamplingWindow | None) -> Answer:
        nodes, refused = self._feasible(pod, profile)
        if not nodes:
            rival = self._lower(pod, profile)
            return Answer(reason=self._reason(refused), unknown=PREEMPTS if rival else self._devices(pod))
        enough = nodes_to_score(profile.percentage, self._looked_at(pod))
        sampled = len(nodes) > enough
        if sampled and window:
            order = self._state.orders[window.order]
            nodes = Nodes(window_of(order, window.start, nodes, enough))
        weighted = self._weighted(pod, profile, nodes)
        sums = totals(weighted.values(), len(nodes))
        named = [nodes[place] for place in _best(sums)]
        if sampled and not window and winners is not Winners.BEST:
            known = dict(zip(nodes, sums, strict=True)) if winners is Winners.ROUGH else None
            named = self._anywhere(pod, profile, nodes, enough, known)
        return Answer(
            nodes=tuple(self._state.names[index] for index in named),
            feasible=len(nodes),
            sampled=sampled,
            scores=lambda name: self._scores(weighted, nodes, name),
            feasible_nodes=lambda: tuple(nodes.of(self._state.names)),
            totals=lambda: self._totals(weighted, sums, nodes),
        )

    def _anywhere(
        self, pod: Pod, profile: Profile, nodes: Nodes, enough: int, totals: Mapping[int, int] | None
    ) -> list[int]:
        """Return the nodes that win in some window of some order; by these totals, or by those in the window."""

        def weigh(some: Nodes) -> list[Sequence[int]]:
            weighted = self._weighted(pod, profile, some).values()
            return [scores if weight == 1 else [weight * score for score in scores] for scores, weight in weighted]

        feasible, found = set(nodes), set[int]()
        by_arrival, by_name = self._state.orders
        for order in (by_arrival,) if by_name is by_arrival else (by_arrival, by_name):
            circle = list(filter(feasible.__contains__, order))
            if totals is None:
                found |= window_winners(circle, enough, weigh)
            else:
                found |= winners_in_line([*circle, *circle[: enough - 1]], totals, enough)
        return sorted(found)

    def _devices(self, pod: Pod) -> str:
        """Return why a pod without a node may get one all the same: devices may be claimed for what it requests."""
        if self._state.minor < _CLAIMS_FOR_REQUESTS:
            return ""
        names = [
            name
            for name, amount in pod.spec.requests.items()
            if amount and "/" in name and not name.startswith(_OF_NODES)
        ]
        missing = (name for name in sorted(names) if not all(self._state.room(name)[0]))
        name = next(missing, "")
        return f"devices may be claimed for the {name} that it requests, which is not simulated" if name else ""

    def _lower(self, pod: Pod, profile: Profile) -> Pod | None:
        """Return a pod that might have to make room for this one: of a lower priority, on a node that suits it."""
        priority, state = pod.spec.priority or 0, self._state
        if not pod.spec.placement.preempts or priority <= min(state.priorities, default=priority):
            return None
        nodes, _ = self._suited(pod, profile)
        residents = (each for index in nodes for each in state.residents[index])
        return next((each for each in residents if (each.spec.priority or 0) < priority), None)

    def _totals(self, weighted: Mapping[str, Weighted], sums: Sequence[int], nodes: Nodes) -> Mapping[str, int]:
        left_out = sum(each.weight * each.scores[0] for each in weighted.values() if each.even)
        return dict(zip(nodes.of(self._state.names), [left_out + each for each in sums], strict=True))

    def _scores(self, weighted: Mapping[str, Weighted], nodes: Sequence[int], name: str) -> Scores:
        index = self._state.index[name]
        place = bisect_left(nodes, index)  # in the order of their names, as all lists of nodes are
        if place == len(nodes) or nodes[place] != index:
            return {}
        return {plugin: weight * scores[place] for plugin, (scores, weight) in weighted.items()}

    def _weighted(self, pod: Pod, profile: Profile, nodes: Nodes) -> dict[str, Weighted]:
        found: dict[str, Weighted] = {}
        for plugin, weight in profile.scores:
            scores = plugin.scores(pod, nodes) if weight else None
            if scores is not None:
                found[plugin.name] = Weighted(scores, weight)
        return found

    def _feasible(self, pod: Pod, profile: Profile) -> tuple[Nodes, _Refused]:
        nodes, refused = _filtered(pod, profile.moving, *self._suited(pod, profile))
        contested = {index for index in self._state.nominated if index in nodes} if self._state.nominated else ()
        for index in sorted(contested):
            nodes, refused = self._with_nominated(pod, profile, index, nodes, refused)
        return nodes, refused

    def _with_nominated(
        self, pod: Pod, profile: Profile, index: int, nodes: Nodes, refused: _Refused
    ) -> tuple[Nodes, _Refused]:
        """Ask the filters about one node with the pods that are nominated for it, unless this one comes before them."""
        state, priority = self._state, pod.spec.priority or 0
        name = state.names[index]
        rivals = [each for each in state.nominated[index] if (each.spec.priority or 0) >= priority]
        for each in rivals:
            state.place(each, name)
        try:
            left, more = _filtered(pod, profile.moving if rivals else (), Nodes([index]), ())
        finally:
            for each in rivals:
                state.remove(each, name)
        return (
            (nodes, refused)
            if left
            else (nodes.without({index}), (*refused, *({index: m[index]} for m in more if index in m)))
        )

    def _suited(self, pod: Pod, profile: Profile) -> tuple[Nodes, _Refused]:
        """Return the nodes that suit a pod, no matter what runs there, and why the others do not.

        Worked out once for all pods that ask the same of nodes.
        """
        key = (self._state.demands.of(pod.spec), pod.spec.placement.scheduler)
        known = self._still.get(key)
        if known is None:
            known = self._still[key] = _filtered(pod, profile.still, *self._narrowed(pod))
        return known

    def _narrowed(self, pod: Pod) -> tuple[Nodes, _Refused]:
        names = named_nodes(pod.spec)
        if names is None:
            return Nodes(range(len(self._state.nodes))), ()
        nodes = Nodes(sorted(self._state.index[name] for name in names if name in self._state.index))
        left_out = set(range(len(self._state.nodes))).difference(nodes)
        return nodes, (dict.fromkeys(left_out, NOT_NAMED if self._state.minor >= _TELLS_NOT_NAMED else ()),)

    def _looked_at(self, pod: Pod) -> int:
        names = named_nodes(pod.spec)
        return len(self._state.nodes if names is None else self._state.index.keys() & names)

    def _reason(self, refused: _Refused) -> str:
        total = len(self._state.nodes)
        if not total:
            return "no nodes available to schedule pods"
        counts = Counter(reason for each in _by_node(refused).values() for reason in each)
        told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        return f"0/{total} nodes are available: {told}." if told else f"0/{total} nodes are available:"


def _by_node(refused: _Refused) -> dict[int, tuple[str, ...]]:
    """Return what was refused by node; the first refusal of a node counts."""
    return {index: reasons for each in reversed(refused) for index, reasons in each.items()}


def _filtered(pod: Pod, plugins: Sequence[Filter], nodes: Nodes, refused: _Refused) -> tuple[Nodes, _Refused]:
    """Return the nodes that all plugins let pass, and what they refused, in order; the first refusal of a node counts.

    Only a pod that fits nowhere needs the reasons of all nodes, so they are put together for such a pod alone.
    """
    for plugin in plugins:
        more = plugin.refusals(pod, nodes)
        if more:
            refused = (*refused, more)
            nodes = nodes.without(more)
    return nodes, refused


def _best(totals: Sequence[int]) -> list[int]:
    most = max(totals)
    return [place for place, total in enumerate(totals) if total == most]
