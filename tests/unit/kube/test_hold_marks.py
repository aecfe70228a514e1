"""Marks of held nodes: what is ours on a node, when it comes off, and how it counts beside steering's."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.kube.halt import Halt
from rebalancer.kube.marks import HoldMark, Keys, Mark, MarkedNode, any_mark, held, hold_marks
from rebalancer.kube.node_marks import patch
from rebalancer.kube.run_marks import RunMarks
from rebalancer.policy.moving import HOLD_KEY
from tests.unit.kube.marked_nodes import after, keys_on, on_server, taints

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
AVOID = Keys.of("kube-rebalancer/avoid")
OURS = {"key": HOLD_KEY, "effect": "PreferNoSchedule"}
HELD = hold_marks(any_mark)
MARK = HoldMark("run-1", NOW + timedelta(minutes=15))

TAINTS = taints((HOLD_KEY, AVOID.first, AVOID.second, "spot"), ("", "run-1"))
TIMES = st.integers(-20, 20).map(lambda minutes: NOW + timedelta(minutes=minutes))
NOTES = st.builds(HoldMark, st.just("run-0"), TIMES).map(HoldMark.text) | st.sampled_from(
    (
        "",
        "{}",
        "null",
        '{"run": "r"}',
        '{"run": "r", "expires": "soon"}',
        '{"run": "r", "expires": "2026-01-15T12:00:00"}',
    )
)


@st.composite
def nodes(draw):
    annotations = draw(st.dictionaries(st.sampled_from(("a", AVOID.first)), st.just("x")))
    annotations |= {HOLD_KEY: draw(NOTES)} if draw(st.booleans()) else {}
    return MarkedNode("n1", "uid", draw(TAINTS) or None, annotations or None)


def others(node):
    taints = [each for each in node.taints or () if each["key"] != HOLD_KEY or each["effect"] == "NoSchedule"]
    return taints, {key: value for key, value in (node.annotations or {}).items() if key != HOLD_KEY}


@given(nodes())
def test_a_held_node_carries_the_mark_and_all_of_others(node):
    """Once; holding it again changes nothing, and a later expiry stays."""
    found = after(node, held(node, MARK))

    assert others(found) == others(node)
    assert [each for each in found.taints if each not in others(found)[0]] == [OURS]
    assert found.hold.expires == max(filter(None, [MARK.expires, before.expires if (before := node.hold) else None]))
    assert patch(found, held(found, HoldMark("run-2", MARK.expires))) == []


@given(nodes())
def test_a_released_node_has_nothing_of_ours_and_all_of_others(node):
    found = after(node, HELD.off(node))

    assert not HELD.is_on(found)
    assert others(found) == others(node)


@given(nodes(), TIMES)
def test_after_its_expiry_nothing_is_left_and_before_it_nothing_is_taken_off(node, now):
    """What cannot be read is used by nobody, and goes at once."""
    mark = node.hold
    found = after(node, hold_marks(lambda each: each.expires <= now).cleared(node))

    assert HELD.is_on(found) is (mark is not None and mark.expires > now)
    assert found == node if HELD.is_on(found) else others(found) == others(node)


@pytest.fixture
def of_run(client, time):
    mark = Mark("run-1", (), NOW)
    return RunMarks(client, AVOID, mark, Halt(300, time.clock), lambda _: False, time.retry_policy())


def test_the_taint_of_a_held_node_counts_as_one_of_steerings(of_run, server):
    """So that no node carries three: each taint would be worth less with the scheduler."""
    server.add(on_server("n1", OURS))
    server.add(on_server("n2", OURS))
    server.add(on_server("n3"))

    assert of_run.adjust({"n1": 2, "n2": 1, "n3": 2}) == {}

    assert keys_on(server, "n1", "n2", "n3") == [
        ["hold", "avoid"],
        ["hold"],
        ["avoid", "avoid-more"],
    ]


def test_a_node_that_is_held_meanwhile_is_looked_at_again(of_run, server):
    """At the next wave it carries one taint of steering less; at the end only that of the hold."""
    server.add(on_server("n1"))
    of_run.adjust({"n1": 2})
    server.node("n1")["spec"]["taints"].append(OURS)

    of_run.recount("n1")
    assert of_run.adjust({"n1": 2}) == {}
    assert keys_on(server, "n1") == [["hold", "avoid"]]
    assert of_run.take_off() == {}
    assert keys_on(server, "n1") == [["hold"]]
