"""The marks of a run: set while writes may begin, taken off whatever happens."""

import copy
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rebalancer.kube.marks import ANNOTATION, Mark, SteeringMarks
from rebalancer.kube.node_marks import CONFLICTS, clear_leftovers
from rebalancer.kube.run_marks import RunMarks, Taken
from rebalancer.kube.tries import Halt, Halted
from tests.fake_http import Reply
from tests.unit.kube.marked_nodes import keys_on
from tests.unit.kube.marked_nodes import on_server as node

STEERING = SteeringMarks.of("kube-rebalancer/avoid")
HELD = {"key": "kube-rebalancer/hold", "effect": "PreferNoSchedule"}
EXPIRES = datetime(2026, 1, 15, 12, 7, tzinfo=UTC)


def patches(server):
    return len(server.sent("PATCH", "*"))


@pytest.fixture
def halt(time):
    return Halt(300, time.clock)


@pytest.fixture
def of_run(client, time, halt):
    def make(run="run-1", *, may_replace=lambda _: False, policy=None):
        mark = Mark(run, (), EXPIRES)
        return RunMarks(client, STEERING, mark, halt, may_replace, policy or time.retry_policy())

    return make


@pytest.fixture(autouse=True)
def nodes(server):
    for name in ("n1", "n2", "n3"):
        server.add(node(name))


def test_marks_follow_what_is_wanted(of_run, server):
    """Only what is different is written."""
    marks = of_run()

    assert marks.adjust({"n1": 2, "n2": 1, "n3": 0}) == {}
    assert keys_on(server, "n1", "n2", "n3") == [["avoid", "avoid-more"], ["avoid"], []]
    assert patches(server) == 2
    assert marks.adjust({"n1": 1, "n2": 1, "n3": 1}) == {}
    assert keys_on(server, "n1", "n2", "n3") == [["avoid"], ["avoid"], ["avoid"]]
    assert patches(server) == 4
    assert marks.adjust({"n3": 1}) == {}
    assert keys_on(server, "n1", "n2", "n3") == [[], [], ["avoid"]]
    assert marks.adjust({"n1": 1, "n3": 1}) == {}
    assert keys_on(server, "n1", "n2", "n3") == [["avoid"], [], ["avoid"]]
    assert marks.take_off() == {}
    assert [server.node(each) for each in ("n1", "n2", "n3")] == [node("n1"), node("n2"), node("n3")]
    assert patches(server) == 9
    assert marks.take_off() == {}
    assert patches(server) == 9


@pytest.mark.parametrize("end", ["signal", "deadline"])
def test_marks_come_off_after_the_end_and_are_set_no_more(of_run, server, halt, time, end):
    """A signal and the deadline keep marks from being set, never from being taken off."""
    marks = of_run()
    marks.adjust({"n1": 2, "n2": 1})
    halt.signal("SIGTERM") if end == "signal" else time.sleep(301)

    assert {name: type(error) for name, error in marks.adjust({"n1": 2, "n2": 1, "n3": 1}).items()} == {"n3": Halted}
    assert marks.take_off() == {}
    assert [server.node(each) for each in ("n1", "n2", "n3")] == [node("n1"), node("n2"), node("n3")]


@pytest.mark.parametrize(("is_told_to_end", "seconds"), [(False, 20.0), (True, 10.0)])
def test_taking_marks_off_ends_in_time(of_run, server, halt, time, is_told_to_end, seconds):
    """A pod that is told to end has 30 s for all; what stays is said."""
    marks = of_run()
    marks.adjust({"n1": 2})
    server.fail("PATCH", "*", status=503)
    if is_told_to_end:
        halt.signal("SIGTERM")
    began = time.now

    assert list(marks.take_off()) == ["n1"]
    assert time.now - began <= seconds


def test_a_node_that_cannot_be_changed_does_not_keep_the_others(of_run, server):
    """What went wrong is said by node, when setting and when taking off."""
    marks = of_run()
    server.fail("PATCH", "/api/v1/nodes/n2", status=400, times=1)
    assert list(marks.adjust({"n1": 1, "n2": 1, "n3": 1})) == ["n2"]
    assert keys_on(server, "n1", "n2", "n3") == [["avoid"], [], ["avoid"]]

    server.fail("PATCH", "/api/v1/nodes/n3", status=400, times=1)
    assert list(marks.take_off()) == ["n3"]
    assert keys_on(server, "n1", "n2", "n3") == [[], [], ["avoid"]]
    assert marks.take_off() == {}
    assert keys_on(server, "n3") == [[]]


def test_what_may_have_been_set_is_taken_off_too(of_run, server):
    """The answer was lost, and then the node could not be read: nobody knows."""
    server.reset("PATCH", "*", processed=True)
    marks = of_run()
    server.on("PATCH", "*", lambda _: server.fail("GET", "/api/v1/nodes/n1", status=403, times=1), times=1)
    server._rules.reverse()
    assert list(marks.adjust({"n1": 1})) == ["n1"]
    assert keys_on(server, "n1") == [["avoid"]]

    assert marks.take_off() == {}
    assert server.node("n1") == node("n1")


@pytest.mark.parametrize(("taking_off", "most"), [(False, 60), (True, 20)])
def test_a_node_that_stays_in_the_way_is_given_up_in_time(of_run, server, time, taking_off, most):
    """Taking off comes at the end, and a pod has thirty seconds to end."""
    wait = most / 3 + 0.1
    marks = of_run(policy=time.retry_policy(seconds=3600, first_wait=wait, longest_wait=wait))
    if taking_off:
        marks.adjust({"n1": 1})
    server.fail("PATCH", "*", status=409 if taking_off else 422)
    began = time.now

    problems = marks.take_off() if taking_off else marks.adjust({"n1": 1})
    assert {name: str(error) for name, error in problems.items()} == {
        "n1": "PATCH /api/v1/nodes/n1: others write to this node all the time"
    }
    assert most / 2 < time.now - began <= most


@pytest.mark.parametrize("then", ["the same", "a signal", "no connection", "another answer"])
def test_a_try_without_an_answer_stays_in_doubt_whatever_the_next_one_says(of_run, server, time, halt, then):
    """The first try of a patch may still be carried out, however the second one failed, and after the run gave up."""
    held = []

    def lose(request):
        held.append(request)
        if then == "a signal":
            halt.signal("SIGTERM")
        if then != "the same":
            server.heal()
        if then == "no connection":
            server.reset("GET", "/api/v1/nodes/n1", times=None)
        if then == "another answer":
            server.fail("PATCH", "/api/v1/nodes/n1", status=403)
        return Reply(503, "later")

    server.on("PATCH", "*", lose)
    marks = of_run()
    assert list(marks.adjust({"n1": 1})) == ["n1"]

    # The server carries the patch out after the run has looked at the node, and before it looks again.
    server.heal()
    waits, acted = len(time.waits), []
    late = {"times": 1, "when": lambda _: len(time.waits) > waits}
    server.on("GET", "/api/v1/nodes/n1", lambda _: acted.append(server.process(held[0]).status), **late)
    assert marks.take_off() == {}
    assert acted == [200]
    assert server.node("n1") == node("n1")


def test_what_went_wrong_is_said_beside_a_doubt(of_run, server):
    """The node in doubt is cleared in a second round; what failed in the first one has failed."""
    server.fail("PATCH", "/api/v1/nodes/n1", status=503)
    marks = of_run()
    assert list(marks.adjust({"n1": 1, "n2": 1})) == ["n1"]
    server.heal()
    server.fail("PATCH", "/api/v1/nodes/n2", status=400)
    server.fail("GET", "/api/v1/nodes/n1", status=403, times=1)

    assert list(marks.take_off()) == ["n2"]
    assert keys_on(server, "n1") == [[]]


def test_the_mark_of_a_run_at_work_is_neither_replaced_nor_taken_off(of_run, server):
    """A leader that has lost its Lease takes off only its own."""
    of_run("run-2").adjust({"n1": 1})
    lost, before = of_run("run-1"), copy.deepcopy(server.node("n1"))

    assert {name: type(error) for name, error in lost.adjust({"n1": 2, "n2": 2}).items()} == {"n1": Taken}
    assert lost.take_off() == {}
    assert (server.node("n1"), server.node("n2")) == (before, node("n2"))


def test_the_mark_of_a_run_that_is_over_is_replaced(of_run, server):
    """And comes off with ours; the run that has lost it does not take it off."""
    old = of_run("run-1")
    old.adjust({"n1": 2})
    new = of_run("run-2", may_replace=lambda mark: mark.run == "run-1")

    assert new.adjust({"n1": 1}) == {}
    assert old.take_off() == {}
    assert [each["value"] for each in server.node("n1")["spec"]["taints"]] == ["run-2"]
    assert new.take_off() == {}
    assert server.node("n1") == node("n1")


def test_leftovers_are_taken_off_unless_they_are_in_use(client, server, of_run):
    """Also a taint that has lost its annotation, those of other keys whose run is on record, and what nobody can read.

    Each node is read again before it is written: a mark set meanwhile stays.
    """
    of_before = {"key": "old/avoid", "value": "run-0", "effect": "PreferNoSchedule"}
    orphan = {"key": STEERING.first, "value": "run-9", "effect": "PreferNoSchedule"}
    kept = {"key": "old/avoid", "effect": "NoSchedule"}
    server.add(node("n3", orphan, kept))
    note = Mark("run-0", ("old/avoid",), EXPIRES).text()
    server.add(node("n4", of_before, kept, annotations={ANNOTATION: note}))
    unread = {ANNOTATION: "{}"}
    server.add(node("n5", annotations=unread), node("n6", annotations=unread))
    late = node("n6", annotations={ANNOTATION: Mark("run-2", (), EXPIRES).text()})
    server.on("GET", "/api/v1/nodes/n6", lambda _: server.add(late), times=1)
    of_run("run-1").adjust({"n1": 2})
    of_run("run-2").adjust({"n2": 1})

    found = clear_leftovers(client, replace(STEERING, runs={"run-0"}), lambda mark: mark.run != "run-2")

    assert found.problems == {}
    assert [each.name for each in found.in_use] == ["n2"]
    assert [each.name for each in found.over] == ["n1", "n3", "n4", "n5", "n6"]
    assert [server.node(each) for each in ("n1", "n5", "n6")] == [node("n1"), node("n5"), late]
    assert keys_on(server, "n2") == [["avoid"]]
    assert server.node("n3")["spec"]["taints"] == [kept]
    assert server.node("n4")["spec"]["taints"] == [kept]
    assert "annotations" not in server.node("n4")["metadata"]


def test_a_change_that_conflicts_is_made_again_almost_at_once(of_run, server, time):
    """Somebody else has written the node meanwhile: nobody is in need of a pause."""
    server.fail("PATCH", "*", status=409, times=1)
    marks = of_run(policy=replace(CONFLICTS, clock=time.clock, sleep=time.sleep, jitter=lambda _, high: high))

    assert marks.adjust({"n1": 1}) == {}
    assert time.waits == [0.05]


def test_the_taint_of_a_held_node_counts_as_one_of_steerings(of_run, server):
    """So that no node carries three: each would be worth less with the scheduler.  A node may be held meanwhile."""
    server.add(node("n1", HELD))
    marks = of_run()
    assert marks.adjust({"n1": 1, "n2": 2}) == {}
    assert keys_on(server, "n1", "n2") == [["hold"], ["avoid", "avoid-more"]]

    server.node("n2")["spec"]["taints"].append(HELD)
    marks.recount("n2")
    assert marks.adjust({"n1": 2, "n2": 2}) == {}
    assert keys_on(server, "n1", "n2") == [["hold", "avoid"], ["hold", "avoid"]]
    assert marks.take_off() == {}
    assert keys_on(server, "n1", "n2") == [["hold"], ["hold"]]
