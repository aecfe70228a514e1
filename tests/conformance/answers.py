"""What the program makes of a case, and whether the descheduler agrees."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """Observed against expected; `agrees` says whether the case's assertion holds."""

    observed: Any
    expected: Any
    agrees: bool


def equal(observed: Any, expected: Any) -> Answer:
    return Answer(observed, expected, observed == expected)


def acceptance(accepted: bool, case: Mapping[str, Any], problems: str = "") -> Answer:
    """Whether the program accepts what the descheduler accepts; texts are not compared."""
    agrees = accepted == case["expected_ok"]
    return Answer(accepted, f"{case['expected_ok']} ({case['expected_error'] or problems or 'no error'})", agrees)


def evictions(evicted: Iterable[str], wanted: Mapping[str, Any]) -> Answer:
    """Compare evicted pods (namespace/name) with `assert`; INDEX.md says what its keys mean."""
    observed = sorted(evicted)
    return Answer(observed, wanted, not list(_contradictions(observed, wanted)))


def _contradictions(observed: list[str], wanted: Mapping[str, Any]) -> Iterable[str]:
    distinct = set(observed)
    if len(distinct) != len(observed):
        yield "a pod was evicted twice"
    # The descheduler may ask twice for one pod; what counts is how many pods go.
    if len(distinct) != wanted.get("distinct_evicted_count", len(distinct)):
        yield "count"
    if not wanted.get("evicted_count_min", 0) <= len(distinct) <= wanted.get("evicted_count_max", len(distinct)):
        yield "range"
    choice = wanted.get("relaxed") or wanted
    if "exact" in choice and distinct != set(choice["exact"]):
        yield "pods"
    if not set(choice.get("include", ())) <= distinct:
        yield "left out"
    if "subset_of" in choice and not distinct <= set(choice["subset_of"]):
        yield "others"
