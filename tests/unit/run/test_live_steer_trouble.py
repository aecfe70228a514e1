"""Waves on a live cluster in trouble: looks that fail or hang, marks that stay, nodes that are closed."""

import pytest

from rebalancer.errors import CycleStopped
from rebalancer.eviction.verdict import GRANTED
from tests.unit.run.waves import as_object, levels, move, replace, wave


def test_a_look_that_fails_is_tried_again(steer, server):
    server.add(as_object("a", node="n1"))
    steer.begin(wave(move("a")))
    replace(server, "a", as_object("a2", node="n2", ready=True))
    server.fail("GET", "*/pods", status=403, times=2)

    (placement,) = steer.settle(wave(move("a")), [(move("a"), GRANTED)])

    assert placement.node == "n2"


def test_a_look_lasts_ten_seconds_at_most(steer, server, time, halt):
    """A signal that comes while the API server does not answer leaves time to take the marks off."""
    server.add(as_object("a", node="n1"))
    steer.begin(wave(move("a")))
    server.fail("GET", "*/pods", status=503)
    server.on("GET", "*/pods", lambda _: halt.signal("SIGTERM"), times=1)
    server._rules.reverse()
    began = time.now

    steer.settle(wave(move("a")), [(move("a"), GRANTED)])

    assert time.now - began <= 10


def test_after_a_signal_marks_are_taken_off_in_one_go(steer, server, time, halt):
    """The strategy and the run both see to it; together they have the twenty seconds that one has."""
    steer.begin(wave(move("a")))
    server.fail("PATCH", "*", status=503)
    halt.signal("SIGTERM")
    began = time.now

    steer.end()
    steer.end()

    assert time.now - began <= 20
    assert list(steer.left) == ["n1"]


def test_without_a_signal_what_could_not_be_taken_off_is_tried_again(steer, server):
    steer.begin(wave(move("a")))
    server.fail("PATCH", "*", status=403, times=1)

    steer.end()
    assert list(steer.left) == ["n1"]
    steer.end()

    assert steer.left == {}
    assert levels(server) == {"n1": 0, "n2": 0, "n3": 0}


def test_a_node_that_takes_no_pods_any_more_is_told_before_the_wave(steer, server):
    """Where pods may land on many nodes, none of them is looked at."""
    server.node("n2")["spec"]["unschedulable"] = True

    assert steer.closed(wave(move("a", likely=("n2",)))) == {"n2"}
    assert steer.closed(wave(move("a", expected="n3", likely=("n3",)))) == frozenset()
    assert steer.closed(wave(move("a", expected="n3", likely=("n3", "n2")))) == {"n2"}
    asked = len(server.requests)
    assert steer.closed(wave(move("a", likely=("n2", "n3", "n4", "n5")))) == frozenset()
    assert len(server.requests) == asked


def test_a_node_that_cannot_be_looked_at_ends_the_run(steer, server):
    server.fail("GET", "/api/v1/nodes/n2", status=403)

    with pytest.raises(CycleStopped, match="a node that pods should go to could not be looked at: no permission"):
        steer.closed(wave(move("a", likely=("n2",))))
