"""Rules: what a container should request, from what it used; and what a kubelet should keep for the system.

A rule is a function of samples, of which one at least is in a peak window; of the share of limits that others than core
workloads request; and of whether this is a core workload.  Its docstring is its manual.  Samples have cores and bytes;
what is recommended is in millicores and bytes.  All rules round up, to whole millicores and to whole Mi, and stay above
10m and 32Mi.

What a kubelet keeps lets it evict pods before the kernel kills processes (docs/recommend.md has the two rules).  CPU is
reserved only where the system's use was measured.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from math import ceil

import numpy as np

from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import CPU, MEMORY, Resources
from rebalancer.errors import UsageError
from rebalancer.recommendation.samples import Samples, millicores

#: The group of entry points in which a package offers rules.
GROUP = "rebalancer.recommendation_rules"

MEBI = 1 << 20
FLOOR_CPU = 10
FLOOR_MEMORY = 32 * MEBI
_MARGIN = 1.15
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a container has or should have: millicores and bytes, None where nothing is set, or is to stay as it is."""

    cpu_request: int | None = None
    cpu_limit: int | None = None
    memory_request: int | None = None
    memory_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Need(Amounts):
    """What is recommended, and why."""

    why: str = ""


Rule = Callable[[Samples, float, bool], Need]


def peak_mean(samples: Samples, share: float, core: bool, margin: float = _MARGIN) -> Need:
    """peak-mean: the mean over days of the day's highest value in the peak windows.

    The highest value is that of any replica.  Core workloads request that mean and are limited to it.  Others are
    limited to it and request a share of it (`--request-share 0.75`).  A limit of memory is never below the highest
    value ever seen plus 15 %, since the mean of peaks is exceeded on many days, and that would be an OOM kill.
    """
    # Limits go by the peaks of all samples, requests by those of the steady ones.
    cpu_limit = _millicores(_mean_peak(samples, "cpu"))
    memory_limit = _whole_mebi(max(_mean_peak(samples, "memory"), samples.highest("memory") * margin))
    if core:
        return Need(cpu_limit, cpu_limit, memory_limit, memory_limit, "core: the mean of the days' peaks")
    steady = _steady(samples)
    cpu = _millicores(_mean_peak(steady, "cpu") * share)
    memory = _whole_mebi(_mean_peak(steady, "memory") * share)
    why = f"{share:.0%} of the mean of the days' peaks".replace("%", " %")
    return Need(cpu, max(cpu, cpu_limit), memory, max(memory, memory_limit), why)


def seed_literal(samples: Samples, share: float, core: bool) -> Need:
    """seed-literal: as peak-mean, with a memory limit of the mean of peaks as well.

    On about half of the days the highest value is above that limit: expect OOM kills.
    """
    return peak_mean(samples, share, core, margin=0.0)


def quantile(samples: Samples, _share: float, _core: bool) -> Need:
    """quantile: request 95 % of the measured CPU, and the highest memory plus 15 %.

    As krr's `simple`: the CPU request is the highest 95 % quantile of any pod, without a limit; request and limit of
    memory are the highest value plus 15 %.  Windows do not matter.
    """
    # As Prometheus' quantile_over_time: between two neighbours by distance.
    pods = (np.floor(np.asarray(each.cpu, float) * 1000 + 0.5) for _, each in _steady(samples).columns())
    cpu = _millicores(max(float(np.quantile(each, 0.95)) for each in pods))
    memory = _whole_mebi(samples.highest("memory") * _MARGIN)
    return Need(cpu, None, memory, memory, f"95 % of the measured cpu is below {cpu}m; highest memory plus 15 %")


def target(samples: Samples, _share: float, _core: bool) -> Need:
    """target: the 90 % quantile plus 15 %, where yesterday counts half as much as today.

    As the VerticalPodAutoscaler's target, without its buckets of 5 %: each CPU sample has a weight that halves every
    24 hours of age; of memory, the highest value of each 24 hours counts.  It recommends requests and no limits.
    """
    newest = max(each.times[-1] for _, each in samples.columns())
    peaks: dict[int, float] = {}
    for _, each in samples.columns():
        ages, memory = (newest - np.asarray(each.times)) // _DAY_SECONDS, np.asarray(each.memory)
        for age in map(int, np.unique(ages)):
            peaks[age] = max(peaks.get(age, 0.0), float(memory[ages == age].max()))
    weights: dict[float, float] = {}
    for _, each in _steady(samples).columns():
        for time, cpu in zip(each.times, each.cpu, strict=True):
            weights[cpu] = weights.get(cpu, 0.0) + _weight(newest - time)
    most_cpu = weighted(weights.items(), 0.9)
    most_memory = weighted(((each, _weight(age * _DAY_SECONDS)) for age, each in peaks.items()), 0.9)
    why = "the 90 % quantile of the last days plus 15 %"
    return Need(_millicores(millicores(most_cpu) * _MARGIN), None, _whole_mebi(most_memory * _MARGIN), None, why)


BUILTIN: Mapping[str, Rule] = {
    "peak-mean": peak_mean,
    "seed-literal": seed_literal,
    "quantile": quantile,
    "target": target,
}
WARNINGS = {
    "seed-literal": ["seed-literal limits memory to the mean of the days' peaks: above it containers are OOM killed"]
}


def rules() -> dict[str, Rule]:
    """Return all rules by name: the built-in ones, then those that other packages offer."""
    found = dict(BUILTIN)
    for entry in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        if entry.name in found:
            raise UsageError(f"two rules are called {entry.name}; uninstall the package of {entry.value}")
        try:
            found[entry.name] = entry.load()
        except Exception as error:  # importing it runs foreign code, which may raise anything
            raise UsageError(f"rule {entry.name} of {entry.value} cannot be loaded: {error}") from error
    return found


def weighted(values: Iterable[tuple[float, float]], quantile: float) -> float:
    """Return the lowest value that, with all below it, has the share `quantile` of the weight."""
    ordered = sorted(values)
    reached = np.cumsum([weight for _, weight in ordered])
    return ordered[int(np.searchsorted(reached, quantile * reached[-1]))][0]


def _mean_peak(samples: Samples, resource: str) -> float:
    peaks = samples.daily_peaks(resource)
    return sum(peaks.values()) / len(peaks)


def _steady(samples: Samples) -> Samples:
    """Return the samples after start-up; all of them where none in a window would be left."""
    steady = samples.steady()
    return steady if any(True for _ in steady.in_windows()) else samples


@cache
def _weight(age: int) -> float:
    return float(0.5 ** (age / _DAY_SECONDS))


def _millicores(value: float) -> int:
    return max(FLOOR_CPU, ceil(round(value, 6)))


def _whole_mebi(value: float) -> int:
    return max(FLOOR_MEMORY, ceil(round(value / MEBI, 6)) * MEBI)


def in_whole_mebi(value: float) -> int:
    """Return bytes rounded up to whole Mi."""
    return ceil(value / MEBI) * MEBI


#: Of each node by name: millicores and bytes.
NodeAmounts = Mapping[str, Resources]

_EVICTION_SHARE = 0.05
_EVICTION_LEAST = 500 * MEBI
_SYSTEM_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Reservation:
    """What the kubelets of some nodes of one size should keep."""

    capacity: int  # bytes of memory that each of them has
    nodes: tuple[str, ...]
    system: Resources  # the most that the system of one of them was seen to use; empty if nobody measured
    eviction: int  # bytes available below which pods are evicted
    reserved: Resources  # for the system; cpu only if it was measured
    now: int  # the least that one of them keeps from pods today
    warnings: tuple[str, ...]  # nodes that run closer to the edge than that, in words


def reservations(
    nodes: Sequence[Node], used: NodeAmounts, system: NodeAmounts, requested: NodeAmounts
) -> list[Reservation]:
    """Return the reservations by size of the nodes, the largest first.

    `used` and `system` are the most that was used in all and by other than pods, where somebody measured; `requested`
    is what pods request.
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
    eviction = in_whole_mebi(max(capacity * _EVICTION_SHARE, _EVICTION_LEAST))
    memory = eviction + in_whole_mebi(max(capacity * _SYSTEM_SHARE, system.get(MEMORY, 0) * _MARGIN))
    cpu = {CPU: ceil(system[CPU] * _MARGIN / 10) * 10} if system.get(CPU) else {}
    reserved = {**cpu, MEMORY: memory}
    return Reservation(
        capacity,
        tuple(sorted(node.name for node in nodes)),
        system,
        eviction,
        reserved,
        min(node.capacity[MEMORY] - node.allocatable.get(MEMORY, 0) for node in nodes),
        tuple(text for node in nodes for text in _warnings(node, used, requested, eviction, memory)),
    )


def _warnings(node: Node, used: NodeAmounts, requests: NodeAmounts, eviction: int, keep: int) -> Iterator[str]:
    capacity = node.capacity[MEMORY]
    left = capacity - used.get(node.name, {}).get(MEMORY, 0)
    kept = capacity - node.allocatable.get(MEMORY, 0)
    allocatable, requested = capacity - eviction - keep, requests.get(node.name, {}).get(MEMORY, 0)
    was_left = f"{node.name}: {in_mebi(left)} was left of {in_mebi(capacity)}"
    if left < eviction:
        yield f"{was_left}: below {in_mebi(eviction)} pods would be evicted"
    elif left < keep:
        yield f"{was_left}, less than the {in_mebi(keep)} to keep"
    if kept < eviction:
        why = "so that the kernel may kill before the kubelet evicts"
        yield f"{node.name}: keeps {in_mebi(kept)} from pods today, {why}"
    if requested > allocatable:
        told = f"more than the {in_mebi(allocatable)} that would be allocatable"
        yield f"{node.name}: its pods request {in_mebi(requested)}, {told}"


def in_mebi(value: int) -> str:
    """Return bytes as whole Mi, rounded down."""
    return f"{value // MEBI}Mi"
