"""Vectors of resources: integers by resource name, cpu in millicores, everything else in whole units (bytes)."""

from collections.abc import Iterable, Mapping

from rebalancer.cluster.quantity import parse_milli_quantity, parse_quantity

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
#: Stands for percent of the whole node, for a source that does not know resources; every node has a hundred of it.
METRIC_RESOURCE = "MetricResource"
#: For which part of the time some task of a node waits for CPU or memory; in hundredths of a percent.
CONTENTION = "contention"

Resources = Mapping[str, int]


def parse_resources(quantities: Mapping[str, str | float]) -> dict[str, int]:
    """Read a resource list.

    Raises:
        ValueError: a value is not a valid quantity; the message names the resource.
    """
    parsed = {}
    for name, text in quantities.items():
        try:
            parsed[name] = parse_milli_quantity(text) if name == CPU else parse_quantity(text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return parsed


def add(into: dict[str, int], amounts: Resources) -> None:
    """Add these amounts to a vector in place."""
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) + amount


def subtract(into: dict[str, int], amounts: Resources) -> None:
    """Take these amounts off a vector in place."""
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) - amount


def at_least(into: dict[str, int], amounts: Resources) -> None:
    """Raise a vector in place to the greater of itself and these amounts, name by name."""
    for name, amount in amounts.items():
        into[name] = max(into.get(name, 0), amount)


def effective_requests(
    containers: Iterable[Resources],
    init_containers: Iterable[tuple[Resources, bool]],
    pod_level: Resources,
    overhead: Resources,
) -> dict[str, int]:
    """Return what the scheduler sets aside for a pod.

    Source: the Kubernetes documentation (Init Containers, Sidecar Containers, Pod Overhead, pod-level resources).
    Containers run together with the restartable init containers; an ordinary init container runs beside those
    restartable ones that were started before it.  Pod-level requests replace cpu, memory and huge pages.

    Args:
        containers: requests of each container.
        init_containers: requests of each init container in order, and whether it is restartable (a sidecar).
        pod_level: the pod's own requests.
        overhead: what the runtime class adds.
    """
    together: dict[str, int] = {}
    for requests in containers:
        add(together, requests)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for requests, restartable in init_containers:
        if restartable:
            add(together, requests)
            add(sidecars, requests)
            at_least(peak, sidecars)
        else:
            here = dict(sidecars)
            add(here, requests)
            at_least(peak, here)
    at_least(together, peak)
    together |= {name: pod_level[name] for name in pod_level if _pod_level_counts(name)}
    add(together, overhead)
    return together


def _pod_level_counts(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def describe(name: str, amount: int) -> str:
    """Return an amount as a person writes it: `1500m` of cpu, `2.5Gi` of memory, else the number."""
    if name == CPU:
        return f"{amount}m"
    if name == MEMORY:
        return _binary(amount)
    return str(amount)


def _binary(amount: int) -> str:
    for suffix, shift in (("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if abs(amount) >= 1 << shift:
            return f"{amount / (1 << shift):.1f}{suffix}".replace(f".0{suffix}", suffix)
    return str(amount)


def arriving(amounts: Resources) -> Resources:
    """Return what a pod adds to a node to which it comes: contention is of the node that it leaves."""
    if CONTENTION not in amounts:
        return amounts
    return {name: amount for name, amount in amounts.items() if name != CONTENTION}
