"""Where strategies come from."""

from importlib.metadata import EntryPoint

import pytest

from rebalancer.engine.strategy import GROUP, builtin, strategies
from rebalancer.errors import UsageError
from tests.unit.offered import Own


def offer(value: str, name: str = "mine") -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def test_a_strategy_of_another_package_joins_them() -> None:
    found = strategies([offer("tests.unit.offered:Own")])

    assert found["Own"] is Own
    assert len(found) == len(builtin()) + 1


def test_two_strategies_of_one_name_are_an_error_that_names_both() -> None:
    with pytest.raises(UsageError) as error:
        strategies([offer("tests.unit.offered:Imitation")])
    assert "two strategies are called PodLifeTime" in str(error.value)
    assert "pod_life_time.PodLifeTime and tests.unit.offered.Imitation" in str(error.value)

    with pytest.raises(UsageError, match="two strategies are called Own"):
        strategies([offer("tests.unit.offered:Own"), offer("tests.unit.offered:Own", "again")])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param("tests.unit.nowhere:Own", "No module named", id="no such module"),
        pytest.param("tests.unit.offered:Other", "has no attribute 'Other'", id="no such class"),
        pytest.param("tests.unit.offered_broken:Own", "no licence found", id="a module that fails as it is imported"),
        pytest.param("tests.unit.offered:NOT_A_STRATEGY", "is not a rebalancer.api.Strategy", id="something else"),
        pytest.param("tests.unit.offered:Nameless", "lacks name and Args", id="a strategy without a name"),
    ],
)
def test_a_bad_entry_point_is_named(value: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as error:
        strategies([offer(value)])
    assert f"strategy mine of {value}" in str(error.value)
