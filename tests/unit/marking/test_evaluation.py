"""What marking decides, by examples."""

from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.marking.evaluation import Pressure, PressureReading, RuleAnswer, evaluate
from rebalancer.marking.rules import MarkingRules

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)


def rules(share="50%", **more):
    rule = {"query": "load", "above": 80, "below": 70}
    names = more.pop("names", ("cpu",))
    return MarkingRules.model_validate({"rules": dict.fromkeys(names, rule), "maxNodes": share, **more})


def values(**by_node):
    return RuleAnswer({node: PressureReading.of(value) for node, value in by_node.items()})


def standing(*nodes, rule="cpu", left=timedelta(minutes=10)):
    return {node: (Pressure(rule, NOW - timedelta(hours=1), NOW + left, 85.0),) for node in nodes}


def marked(answer, before=None, share="50%"):
    nodes = tuple(answer.readings)
    return tuple(sorted(evaluate(rules(share), nodes, {"cpu": answer}, before or {}, NOW).marks))


def test_nodes_that_are_about_as_hot_do_not_take_turns():
    """A marked node gives way only to one that is hotter by as much as `above` is more than `below`."""
    assert marked(values(a=81, b=84, c=10, d=10), standing("a"), "25%") == ("a",)
    assert marked(values(a=81, b=97, c=10, d=10), standing("a"), "25%") == ("b",)


@pytest.mark.parametrize(("left", "renewed"), [(8, False), (7, True), (1, True), (60, True)])
def test_a_mark_is_renewed_when_half_of_its_time_is_over(left, renewed):
    """15 minutes here; one that would last longer is cut to that."""
    before = standing("a", left=timedelta(minutes=left))
    answer = values(a=90, b=10, c=10)

    (found,) = evaluate(rules(), ("a", "b", "c"), {"cpu": answer}, before, NOW).marks["a"]

    assert found == (
        Pressure("cpu", NOW - timedelta(hours=1), NOW + timedelta(minutes=15), 90) if renewed else before["a"][0]
    )


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param(standing("z") | standing("y", left=timedelta(0)), standing("z"), id="nodes that take no part"),
        pytest.param(
            standing("a", rule="disk") | standing("z", rule="disk"), {}, id="a rule that is not in the file any more"
        ),
    ],
)
def test_marks_that_nothing_speaks_for(before, expected):
    """Of a node that is cordoned meanwhile they stay until they expire: it is neither counted nor cleared."""
    for load in (10, 99):  # where all are hot none is marked, and these still stay
        assert evaluate(rules(), ("a", "b"), {"cpu": values(a=load, b=load)}, before, NOW).marks == expected


def test_a_mark_without_a_sample_stays_though_others_are_hotter():
    """It counts for the share, and nothing is known that would clear it."""
    asked = {"cpu": values(b=99, c=95, d=10)}

    found = evaluate(rules("25%"), ("a", "b", "c", "d"), asked, standing("a"), NOW)

    assert found.marks == standing("a")
    assert found.left_out == ("b", "c")
