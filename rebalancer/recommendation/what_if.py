"""What a cluster would look like with other requests: all pods placed anew under both, and what nodes use then.

What a pod was measured to use moves with it.  So the figures tell how evenly requests spread the real load, which
decides whether new requests are worth it.

In which order pods come after a rollout is not known, and the last large ones decide.  So several histories are drawn,
and the one with the middle deviation is shown.  Example: 70 pods on six nodes deviate by 1.5 to 5.9 points of cpu in 15
histories, by 3.6 in the middle one.  The more pods there are the less it matters, so of many pods few are drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import pstdev

import msgspec

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.resources import CPU, MEMORY
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.scheduling.from_scratch import EmptyCluster, Placed

RESOURCES = (CPU, MEMORY)
#: By namespace and name.
PodKey = tuple[str, str]
_PLACEMENTS = 30_000
_MOST_HISTORIES = 15
#: By pod and resource: millicores and bytes.
Usage = Mapping[PodKey, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Load:
    """How one resource is used, in percent of what nodes offer.

    Attributes:
        deviation: the standard deviation over nodes, in percentage points.
        highest: of the node that uses most.
        node: the name of that node.
    """

    deviation: float
    highest: float
    node: str


@dataclass(frozen=True, slots=True)
class ClusterOutlook:
    """The cluster with all pods placed in one way.

    Attributes:
        loads: by resource.
        needed: how many nodes are enough if pods are packed; None for the cluster as it is.
        nowhere: by pod, why it fits nowhere.
        least: by resource, the lowest deviation in any history.
        most: the same for the highest.
    """

    loads: Mapping[str, Load]
    needed: int | None
    nowhere: Mapping[PodKey, str]
    least: Mapping[str, float]
    most: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Three pictures of a cluster.

    Attributes:
        nodes: how many nodes take pods; the figures are about these.
        pods: how many pods were placed.
        now: the cluster as it is.
        today: placed anew under the requests of today.
        recommended: the same under those that are recommended.
        unmeasured: how many of the pods nobody measured; they count as using nothing.
        stayed: by pod that was left where it is, why nobody knows where it would go.
    """

    nodes: int
    pods: int
    now: ClusterOutlook
    today: ClusterOutlook
    recommended: ClusterOutlook
    unmeasured: int
    stayed: Mapping[PodKey, str]

    @property
    def no_longer(self) -> dict[PodKey, str]:
        """The pods that fit today and would fit nowhere, with the reasons."""
        return {pod: why for pod, why in self.recommended.nowhere.items() if pod not in self.today.nowhere}


def what_if(
    snapshot: Snapshot, specs: Mapping[PodKey, PodSpec], usage: Usage, tell: Callable[[int, int], None]
) -> WhatIf:
    """Return the three pictures.

    Args:
        snapshot: the cluster as it is.
        specs: of the pods whose requests change, as they would be.
        usage: of the pods that were measured.
        tell: called with how many pods are placed so far, and of how many.
    """
    nodes = [node for node in snapshot.nodes if node.ready and not node.unschedulable and node.allocatable]
    pods = [pod for pod in snapshot.pods if pod.active and not pod.terminating]
    changed = [msgspec.structs.replace(pod, spec=specs.get(pod.key, pod.spec)) for pod in pods]
    histories = range(min(max(_PLACEMENTS // max(len(pods), 1), 1), _MOST_HISTORIES))
    outlooks, of = [], 2 * (len(histories) + 1) * len(pods)
    for turn, each in enumerate((pods, changed)):
        done = turn * of // 2
        tell(done, of)
        packed = EmptyCluster(snapshot, each).packed()
        placed = []
        for number in histories:
            tell(done + (number + 1) * len(pods), of)
            placed.append(EmptyCluster(snapshot, each).scheduled(number))
        outlooks.append(_outlook(nodes, usage, placed, len(packed.used)))
    today, recommended = outlooks
    return WhatIf(
        nodes=len(nodes),
        pods=len(pods),
        now=_outlook(nodes, usage, [Placed({pod.key: pod.node for pod in pods if pod.node})], None),
        today=today,
        recommended=recommended,
        unmeasured=sum(pod.key not in usage for pod in pods),
        stayed=placed[0].stayed,
    )


def _outlook(nodes: Sequence[Node], usage: Usage, histories: Sequence[Placed], needed: int | None) -> ClusterOutlook:
    """Return the history whose deviation of cpu is in the middle, and between which deviations all are."""
    found = [({name: _load(nodes, each, usage, name) for name in RESOURCES}, each.nowhere) for each in histories]
    loads, nowhere = sorted(found, key=lambda each: each[0][CPU].deviation)[len(found) // 2]
    spans = {name: [each[name].deviation for each, _ in found] for name in RESOURCES}
    least, most = ({name: of(span) for name, span in spans.items()} for of in (min, max))
    return ClusterOutlook(loads, needed, nowhere, least, most)


def _load(nodes: Sequence[Node], placed: Placed, usage: Usage, resource: str) -> Load:
    used = dict.fromkeys((node.name for node in nodes), 0.0)
    for pod, node in placed.nodes.items():
        if node in used:
            used[node] += usage.get(pod, {}).get(resource, 0.0)
    offered = {node.name: node.allocatable[resource] for node in nodes if node.allocatable.get(resource)}
    percents = {name: 100 * used[name] / amount for name, amount in offered.items()}
    if not percents:
        return Load(0.0, 0.0, "")
    highest = max(percents, key=lambda name: (percents[name], name))
    return Load(pstdev(percents.values()), percents[highest], highest)
