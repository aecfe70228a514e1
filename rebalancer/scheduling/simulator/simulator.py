"""Where kube-scheduler would put a pod, asked of one cluster and its profiles.

Source: the Kubernetes documentation, kube-scheduler and Scheduler Performance Tuning.  Preemption, scheduling gates and
dynamic resource allocation are not simulated: where they matter, the answer is unknown.  Pods that are nominated for a
node count in the filters of that node, for pods of no higher priority, and nowhere else.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from operator import add

import numpy as np

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import PODS, Resources
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.simulator import sampling
from rebalancer.scheduling.simulator.answer import Answer, Scores
from rebalancer.scheduling.simulator.plugin import (
    ByNode,
    Filter,
    Nodes,
    PodUnschedulableError,
    Reasons,
    Refusals,
    UnknownPlacementError,
)
from rebalancer.scheduling.simulator.plugins.pod_topology_spread import REQUIRED, PodTopologySpread
from rebalancer.scheduling.simulator.plugins.traits import named_nodes
from rebalancer.scheduling.simulator.profile import Profile
from rebalancer.scheduling.simulator.sampling import SamplingWindow
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.tally import Matcher

#: What each plugin refuses, in the order in which they are asked.
_Refused = tuple[Refusals, ...]

_NOT_NAMED = ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
_CLAIMS_FOR_REQUESTS = 36
_OF_NODES = ("kubernetes.io/", "hugepages-", "attachable-volumes-")
PREEMPTS = "pods of a lower priority might have to make room, and nobody knows which"


class Simulator:
    """Answers for one cluster as it is at the time of the question, with its profiles by the scheduler's name."""

    def __init__(self, state: State, profiles: Callable[[State], Mapping[str, Profile]]) -> None:
        self._state = state
        self._make = profiles
        self._profiles = profiles(state)
        self._still: dict[tuple[int, str], tuple[Nodes, _Refused]] = {}

    def copy(self) -> "Simulator":
        """Return the scheduler of the cluster as it is now, to follow it elsewhere."""
        return Simulator(self._state.copy(), self._make)

    def exchange(self, node: str, goes: Pod | None, comes: Pod | None) -> None:
        """Let pods go and come (see `State.exchange`)."""
        self._state.exchange(node, goes, comes)

    @contextmanager
    def exchanged(self, node: str, goes: Pod | None, comes: Pod | None) -> Iterator["Simulator"]:
        """Let them go and come for the time of a block, as when a pod terminates while its replacement comes."""
        self._state.exchange(node, goes, comes)
        try:
            yield self
        finally:
            self._state.exchange(node, comes, goes)

    def resident(self, node: str, forms: Iterable[Pod]) -> Pod | None:
        """Return in which of these forms, running or terminating, a pod is on a node; None if it is not."""
        index = self._state.index.get(node)
        residents = () if index is None else self._state.residents[index]
        return next((each for each in forms if each in residents), None)

    def suppose(self, taints: Mapping[str, Sequence[Taint]]) -> None:
        """Assume these soft taints on nodes besides their own; they replace the ones assumed before."""
        index = self._state.index
        self._state.soft_taints = {index[name]: each for name, each in taints.items() if name in index}

    def first(self, names: Iterable[str], window: SamplingWindow) -> str:
        """Return which of some nodes the scheduler comes to first if it begins to look there."""
        tied = Nodes(sorted(self._state.index[name] for name in names))
        return self._state.names[int(window.circle(self._state.orders, tied)[0])]

    def spare(self, node: str, requests: Resources) -> dict[str, int]:
        """Return what is left of a node once a pod has what it requests there; only of what it requests, and slots."""
        index, asked = self._state.index[node], {PODS: 1, **{name: each for name, each in requests.items() if each}}
        rooms = {name: self._state.room(name) for name in asked}
        return {name: int(offered[index] - taken[index]) - asked[name] for name, (offered, taken) in rooms.items()}

    def spread_with(self, pod: Pod) -> tuple[Matcher, ...]:
        """Return which pods count by the hard spreading of a pod, its own or its profile's; none if that is unknown."""
        profile = self._profiles.get(pod.spec.placement.scheduler)
        plugins = [each for each in profile.moving if isinstance(each, PodTopologySpread)] if profile else []
        with suppress(UnknownPlacementError):
            return tuple([one.matcher for each in plugins for one in each.constraints_of(pod, REQUIRED)])
        return ()

    def ask(self, pod: Pod, window: SamplingWindow | None = None, *, tell: bool = False) -> Answer:
        """Return where a pod without a node would go.

        If the scheduler scores only a part of the nodes, it begins to look in the window; without one, the best of all
        nodes are named, which win in some part (see `Answer.anywhere`).
        With `tell` the answer says why nodes are refused.
        """
        unknown = self._why_unknown(pod)
        if unknown:
            return Answer(unknown=unknown)
        try:
            return self._decide(pod, self._profiles[pod.spec.placement.scheduler], window, tell=tell)
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
        if placement.removed_volumes:
            return f"the pod has a volume of a kind that Kubernetes has removed ({placement.removed_volumes[0]})"
        return "the pod claims devices" if pod.spec.resource_claims else ""

    def _decide(self, pod: Pod, profile: Profile, window: SamplingWindow | None, *, tell: bool) -> Answer:
        nodes, refused = self._feasible(pod, profile)
        names, named = self._state.names, named_nodes(pod.spec)
        told = {names[index]: reasons for index, reasons in sorted(_by_node(refused).items())} if tell else {}
        if not nodes:
            unknown = PREEMPTS if self._preempts(pod, profile) else self._devices(pod)
            return Answer(reason=self._reason(refused), unknown=unknown, refused=told)
        looked_at = names if named is None else self._state.index.keys() & named
        enough = sampling.nodes_to_score(profile.percentage, len(looked_at))
        sampled = len(nodes) > enough
        if sampled and window:
            nodes = Nodes(np.sort(window.circle(self._state.orders, nodes)[:enough]))
        weighted = self._weighted(pod, profile, nodes)
        sums = reduce(add, weighted.values()) if weighted else np.zeros(len(nodes), dtype=np.int64)
        best = np.flatnonzero(sums == sums.max())

        def close_to_best(besides: str, spare: int) -> list[str]:
            totals = sums - weighted.get(besides, 0)
            return [names[index] for index in nodes.indexes[totals > totals[best[0]] - spare].tolist()]

        parts = sampling.Parts(self._state.orders, nodes, min(enough, len(nodes)), sums)
        return Answer(
            nodes=tuple([names[index] for index in nodes.indexes[best].tolist()]),
            sampled=sampled,
            scores=lambda name: self._scores(weighted, nodes, name),
            close_to_best=close_to_best,
            refused=told,
            feasible_nodes=lambda: tuple(names if len(nodes) == len(names) else [names[index] for index in nodes]),
            winners=lambda: tuple([names[index] for index in sorted(parts.winners())]),
            parts=parts,
        )

    def _devices(self, pod: Pod) -> str:
        """Return why a pod without a node may get one all the same: devices may be claimed for what it requests."""
        if self._state.minor < _CLAIMS_FOR_REQUESTS:
            return ""
        extended = (name for name, amount in pod.spec.requests.items() if amount and "/" in name)
        names = sorted(name for name in extended if not name.startswith(_OF_NODES))
        name = next((each for each in names if not self._state.room(each)[0].all()), "")
        return f"devices may be claimed for the {name} that it requests, which is not simulated" if name else ""

    def _preempts(self, pod: Pod, profile: Profile) -> bool:
        """Return whether a pod of a lower priority, on a node that suits this one, might have to make room for it."""
        priority, state = pod.spec.priority or 0, self._state
        lower = any(count for each, count in state.priorities.items() if each < priority)
        if not lower or not pod.spec.placement.preempts:
            return False
        nodes, _ = self._suited(pod, profile)
        residents = (each for index in nodes for each in state.residents[index])
        return any((each.spec.priority or 0) < priority for each in residents)

    def _scores(self, weighted: Mapping[str, ByNode], nodes: Nodes, name: str) -> Scores:
        index = self._state.index[name]
        place = nodes.indexes.searchsorted(index)
        if place == len(nodes.indexes) or nodes.indexes[place] != index:
            return {}
        return {plugin: points.item(place) for plugin, points in weighted.items()}

    def _weighted(self, pod: Pod, profile: Profile, nodes: Nodes) -> dict[str, ByNode]:
        """Return what each plugin adds to the totals of these nodes, in their order."""
        found: dict[str, ByNode] = {}
        for plugin, weight in profile.scores if len(nodes) else ():
            scores = plugin.scores(pod, nodes) if weight else None
            if scores is not None:
                found[plugin.name] = scores if weight == 1 else weight * scores
        return found

    def _feasible(self, pod: Pod, profile: Profile) -> tuple[Nodes, _Refused]:
        nodes, refused = _filtered(pod, profile.moving, *self._suited(pod, profile))
        contested = self._state.nominated.keys() & set(nodes) if self._state.nominated else ()
        for index in sorted(contested):
            nodes, refused = self._with_nominated(pod, profile, index, nodes, refused)
        return nodes, refused

    def _with_nominated(
        self, pod: Pod, profile: Profile, index: int, nodes: Nodes, refused: _Refused
    ) -> tuple[Nodes, _Refused]:
        """Ask the filters about one node with the pods that are nominated for it, unless this one comes before them."""
        state, priority = self._state, pod.spec.priority or 0
        name, (offered, taken) = state.names[index], state.room(PODS)
        rivals = [each for each in state.nominated[index] if (each.spec.priority or 0) >= priority]
        del rivals[offered[index] - taken[index] :]  # those before take all places
        for each in rivals:
            state.place(each, name)
        try:
            _, more = _filtered(pod, profile.moving if rivals else (), Nodes([index]), ())
            why = Refusals.of(_by_node(more, {index}), len(state.nodes))
        finally:
            for each in rivals:
                state.remove(each, name)
        return (nodes.without(why.gone), (*refused, why)) if why else (nodes, refused)

    def _suited(self, pod: Pod, profile: Profile) -> tuple[Nodes, _Refused]:
        """Return the nodes that suit a pod, whatever runs there, and why others do not; once for alike pods."""
        key = (self._state.demands.of(pod.spec), pod.spec.placement.scheduler)
        known = self._still.get(key)
        if known is None:
            known = self._still[key] = _filtered(pod, profile.still, *self._narrowed(pod))
        return known

    def _narrowed(self, pod: Pod) -> tuple[Nodes, _Refused]:
        names = named_nodes(pod.spec)
        if names is None:
            return self._state.everywhere, ()
        nodes = Nodes(sorted(self._state.index[name] for name in names if name in self._state.index))
        return nodes, (Refusals(~nodes.among(len(self._state.nodes)), lambda _: _NOT_NAMED),)

    def _reason(self, refused: _Refused) -> str:
        total = len(self._state.nodes)
        if not total:
            return "no nodes available to schedule pods"
        counts = Counter(reason for each in _by_node(refused).values() for reason in each)
        told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        return f"0/{total} nodes are available: {told}."


def _by_node(refused: _Refused, among: Collection[int] | None = None) -> dict[int, Reasons]:
    """Return what was refused by node, of all or of some; the first refusal of a node counts."""
    found: dict[int, Reasons] = {}
    for each in reversed(refused):
        gone = np.flatnonzero(each.gone).tolist()
        found.update((index, each.why(index)) for index in gone if among is None or index in among)
    return found


def _filtered(pod: Pod, plugins: Sequence[Filter], nodes: Nodes, refused: _Refused) -> tuple[Nodes, _Refused]:
    """Return the nodes that all plugins let pass, and what they refused, in order; the first refusal of a node counts.

    Only a pod that fits nowhere needs the reasons of all nodes, so they are put together for such a pod alone.
    """
    for plugin in plugins:
        more = plugin.refusals(pod, nodes)
        if more:
            refused = (*refused, more)
            nodes = nodes.without(more.gone)
    return nodes, refused
