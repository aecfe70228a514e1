"""What a kubelet should keep for the system, so that it evicts pods before the kernel kills processes.

1. Eviction begins when less than 5 % of the node's memory is available, and at least at 500 Mi.
2. The system gets 10 % of the memory, or what it was seen to use plus 15 % if that is more; and that threshold on top,
   so that pods that use what they request do not come near it.

Example: 10 Gi give 512 Mi and 1024 Mi + 512 Mi = 1.5 Gi.  CPU is reserved only where the system's use was measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import CPU, MEMORY, Resources

#: Of each node by name: millicores and bytes.
NodeAmounts = Mapping[str, Resources]

MEBI = 1 << 20
_EVICTION_SHARE = 0.05
_EVICTION_LEAST = 500 * MEBI
_SYSTEM_SHARE = 0.1
_MARGIN = 1.15


@dataclass(frozen=True, slots=True)
class Reservation:
    """What the kubelets of some nodes of one size should keep.

    Attributes:
        capacity: bytes of memory that each of them has.
        nodes: their names.
        system: the most that the system of one of them was seen to use; empty if nobody measured.
        eviction: bytes available below which pods are evicted.
        reserved: for the system; cpu only if it was measured.
        now: the least that one of them keeps from pods today.
        warnings: nodes that run closer to the edge than that, in words.
    """

    capacity: int
    nodes: tuple[str, ...]
    system: Resources
    eviction: int
    reserved: Resources
    now: int
    warnings: tuple[str, ...]


def reservations(
    nodes: Sequence[Node], used: NodeAmounts, system: NodeAmounts, requested: NodeAmounts
) -> list[Reservation]:
    """Return the reservations by size of the nodes, the largest first.

    Args:
        nodes: all nodes.
        used: the most that was used in all, where somebody measured.
        system: the most that was used by other than pods.
        requested: what pods request.
    """
    sizes: dict[int, list[Node]] = {}
    for node in nodes:
        # Nodes of one kind differ by some pages that firmware keeps.
        sizes.setdefault(round(node.capacity.get(MEMORY, 0) / (256 * MEBI)), []).append(node)
    return [_reservation(each, used, system, requested) for size, each in sorted(sizes.items(), reverse=True) if size]


def _reservation(
    nodes: Sequence[Node], used: NodeAmounts, by_system: NodeAmounts, requested: NodeAmounts
) -> Reservation:
    capacity = min(node.capacity[MEMORY] for node in nodes)
    measured = [by_system.get(node.name, {}) for node in nodes]
    system = {name: max(each[name] for each in measured if name in each) for name in set().union(*measured)}
    eviction = _mebi(max(capacity * _EVICTION_SHARE, _EVICTION_LEAST))
    memory = eviction + _mebi(max(capacity * _SYSTEM_SHARE, system.get(MEMORY, 0) * _MARGIN))
    cpu = {CPU: ceil(system[CPU] * _MARGIN / 10) * 10} if system.get(CPU) else {}
    reserved = {**cpu, MEMORY: memory}
    return Reservation(
        capacity,
        tuple(sorted(node.name for node in nodes)),
        system,
        eviction,
        reserved,
        min(node.capacity[MEMORY] - node.allocatable.get(MEMORY, 0) for node in nodes),
        tuple(
            text
            for node in nodes
            for text in _warnings(
                node, used.get(node.name, {}), requested.get(node.name, {}), eviction, reserved[MEMORY]
            )
        ),
    )


def _warnings(node: Node, used: Resources, requests: Resources, eviction: int, keep: int) -> Iterator[str]:
    capacity = node.capacity[MEMORY]
    left = capacity - used.get(MEMORY, 0)
    kept = capacity - node.allocatable.get(MEMORY, 0)
    allocatable, requested = capacity - eviction - keep, requests.get(MEMORY, 0)
    if left < eviction:
        yield f"{node.name}: {_size(left)} was left of {_size(capacity)}: below {_size(eviction)} pods would be evicted"
    elif left < keep:
        yield f"{node.name}: {_size(left)} was left of {_size(capacity)}, less than the {_size(keep)} to keep"
    if kept < eviction:
        yield f"{node.name}: keeps {_size(kept)} from pods today, so that the kernel may kill before the kubelet evicts"
    if requested > allocatable:
        told = f"more than the {_size(allocatable)} that would be allocatable"
        yield f"{node.name}: its pods request {_size(requested)}, {told}"


def _mebi(value: float) -> int:
    return ceil(value / MEBI) * MEBI


def _size(value: int) -> str:
    return f"{value // MEBI}Mi"
