"""Quantities ("250m", "1Gi", "1e3") as integers, and vectors of resources: cpu in millicores, else whole units (bytes).

Source: the Kubernetes documentation, Quantity: a signed decimal number with a binary suffix (Ki .. Ei), a decimal
one (n, u, m, k .. E) or a decimal exponent.  Fractions are rounded up, as Quantity.Value() does.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
#: Stands for percent of the whole node, for a source that does not know resources; every node has a hundred of it.
METRIC_RESOURCE = "MetricResource"
#: For which part of the time some task of a node waits for CPU or memory; in hundredths of a percent.
CONTENTION = "contention"

Resources = Mapping[str, int]

_QUANTITY = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LARGEST_EXPONENT = 30
_LONGEST = 100  # characters: far more than any number that fits 64 bits
_SHOWN = 20
_MILLI = 3


def parse_quantity(text: str | float) -> int:
    """Return the quantity in whole units, rounded up: bytes, a count of pods; raises ValueError if it is not valid."""
    return _scaled(str(text), 0)


def parse_milli_quantity(text: str | float) -> int:
    """Return the quantity in thousandths, rounded up: millicores of cpu; raises ValueError if it is not valid."""
    return _scaled(str(text), _MILLI)


@lru_cache(maxsize=65_536)
def _scaled(text: str, shift: int) -> int:
    if len(text) > _LONGEST:
        raise ValueError(f"{text[:_SHOWN]!r}... is not a valid quantity: it has {len(text)} characters")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a valid quantity (examples: 250m, 1.5, 2Gi)")
    sign, number, exponent, suffix = match.groups()
    whole, _, fraction = number.partition(".")
    power = int(exponent[1:]) if exponent else _DECIMAL.get(suffix or "", 0)
    if abs(power) > _LARGEST_EXPONENT:
        raise ValueError(f"{text!r} is not a valid quantity: its exponent is out of range")
    amount = int(whole + fraction or "0") << _BINARY.get(suffix or "", 0)
    amount, places = -amount if sign == "-" else amount, power + shift - len(fraction)
    return amount * int(10**places) if places >= 0 else -(-amount // int(10**-places))


def parse_resources(quantities: Mapping[str, str | float]) -> dict[str, int]:
    """Read a resource list; raises ValueError, which names the resource, if a value is not a valid quantity."""
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
    restartable ones (sidecars) that were started before it.  Pod-level requests replace cpu, memory and huge pages; the
    runtime class adds the overhead.  Init containers come in their order, each with whether it is restartable.
    """
    together: dict[str, int] = {}
    for requests in containers:
        add(together, requests)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for requests, restartable in init_containers:
        here = dict(sidecars)
        add(here, requests)
        at_least(peak, here)
        if restartable:
            sidecars = here
            add(together, requests)
    at_least(together, peak)
    counting = [name for name in pod_level if name in (CPU, MEMORY) or name.startswith("hugepages-")]
    together |= {name: pod_level[name] for name in counting}
    add(together, overhead)
    return together


def describe(name: str, amount: int) -> str:
    """Return an amount as a person writes it: `1500m` of cpu, `2.5Gi` of memory, else the number."""
    if name == CPU:
        return f"{amount}m"
    for suffix, shift in (("Gi", 30), ("Mi", 20), ("Ki", 10)) if name == MEMORY else ():
        if abs(amount) >= 1 << shift:
            return f"{amount / (1 << shift):.1f}{suffix}".replace(f".0{suffix}", suffix)
    return str(amount)


def arriving(amounts: Resources) -> Resources:
    """Return what a pod adds to a node to which it comes: contention is of the node that it leaves."""
    if CONTENTION not in amounts:
        return amounts
    return {name: amount for name, amount in amounts.items() if name != CONTENTION}
