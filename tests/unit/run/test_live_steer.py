"""Waves on a live cluster: nodes are marked before the first pod goes, replacements are followed, marks come off."""

import pytest

from rebalancer.errors import CycleStopped
from rebalancer.eviction.causes import Code, as_cause
from rebalancer.eviction.steering import Move
from rebalancer.eviction.verdict import GRANTED, Granted, Unknown, refused
from tests import make
from tests.functional.objects import pdb
from tests.unit.run.waves import as_object, later, levels, move, replace, wave

A = move("a")


@pytest.fixture
def evicted(steer, server):
    """Carry out a wave of pods, which are on n1 before; `then` changes what is there."""

    def settle(then=lambda: None, *, going=(A,), verdict=GRANTED):
        for each in going:
            server.add(as_object(each.pod.name, owner=each.pod.controller.name, node="n1", labels=each.pod.labels))
        steer.begin(wave(*going))
        then()
        return steer.settle(wave(*going), [(each, verdict) for each in going])

    return settle


def test_nodes_are_marked_before_the_first_pod_goes(steer, server, time):
    """And kube-scheduler gets a second to see it; the next wave changes what is different; the end leaves nothing."""
    server.add(as_object("a", node="n1"))

    steer.begin(wave(move("a"), n1=2, n3=1))
    assert levels(server) == {"n1": 2, "n2": 0, "n3": 1}
    assert time.waits[-1] == 1.0
    steer.begin(wave(move("a"), n1=1))
    assert levels(server) == {"n1": 1, "n2": 0, "n3": 0}
    steer.end()
    assert levels(server) == {"n1": 0, "n2": 0, "n3": 0}
    assert steer.left == {}


def test_landings_tell_where_replacements_are(evicted, server, time):
    def then():
        replace(server, "a", as_object("a2", node="n2", ready=True, age=1))
        replace(server, "b", as_object("b2", age=2))
        later(server, time, 2, lambda: server.add(as_object("b2", node="n3", age=2)))
        later(server, time, 5, lambda: server.add(as_object("b2", node="n3", ready=True, age=2)))

    first, second = evicted(then, going=(move("a"), move("b", expected="n2", likely=("n2",))))

    assert (first.node, first.replacement, first.ready_seconds, first.foreseen) == ("n2", "a2", 0.0, True)
    assert (second.node, second.replacement, second.foreseen) == ("n3", "b2", False)
    assert second.ready_seconds >= 5


def test_after_a_rollout_the_replacement_is_of_another_replica_set(evicted, sink, server):
    """It has the Deployment's name and another hash; pods of other Deployments, however new, are not taken for it."""
    sink.restarted = lambda _: "web"
    server.add(as_object("web-5d9-old", owner="web-5d9", node="n2", ready=True))

    def then():
        for age, name in enumerate(("web-api-7f4-bbbbb", "web-7f4-ccccc")):
            server.add(as_object(name, owner=name[:-6], node="n2", ready=True, age=age))

    going = move("web-5d9-aaaaa", owner="web-5d9", labels={"pod-template-hash": "5d9"})
    (placement,) = evicted(then, going=(going,), verdict=Granted(restarted="web"))

    assert (placement.replacement, placement.node) == ("web-7f4-ccccc", "n2")


def test_only_pods_that_may_be_replacements_are_asked_for(evicted, server):
    """Those with the hashes of the ReplicaSets that lose a pod: others of the namespace never come over the wire."""
    labels = {"pod-template-hash": "5d9"}
    server.add(as_object("sibling", node="n3", ready=True, labels=labels))
    came = as_object("a2", node="n2", ready=True, age=1, labels=labels)

    (placement,) = evicted(lambda: replace(server, "a", came), going=(move("a", labels=labels),))

    assert placement.replacement == "a2"
    asked = {each.query.get("labelSelector") for each in server.sent("GET", "*/namespaces/default/pods")}
    assert asked == {"pod-template-hash in (5d9)"}


@pytest.mark.parametrize(
    ("verdict", "comes", "is_missing"),
    [
        pytest.param(GRANTED, True, False, id="pending"),
        pytest.param(GRANTED, False, True, id="never: a quota, or its owner was scaled down"),
        pytest.param(Granted(background=True), False, False, id="later: a virtual machine migrates for minutes"),
        pytest.param(refused(Code.IN_PROGRESS), False, False, id="later: another controller moves it"),
    ],
)
def test_a_replacement_is_waited_for_no_longer_than_settle(evicted, server, time, verdict, comes, is_missing):
    """A minute; then it is named as pending, or as missing, and the run goes on."""
    came = as_object("a2") if comes else as_object("other", owner="db")
    began = time.now

    (placement,) = evicted(lambda: replace(server, "a", came), verdict=verdict)

    assert (placement.is_pending, placement.is_missing, placement.node) == (comes, is_missing, None)
    assert 60 <= time.now - began < 66


@pytest.mark.parametrize(
    "goes",
    [
        lambda server: server.remove_pod("default", "a2"),
        lambda server: server.add(as_object("a2", node="n2", ready=True, leaving=30, age=1)),
        lambda server: server.add(as_object("a2", node="n2", age=1, phase="Failed")),
    ],
    ids=["its node is deleted", "its node is drained", "the kubelet does not admit it"],
)
@pytest.mark.parametrize("ready", [True, False])
def test_a_replacement_that_goes_is_followed_by_the_next(evicted, server, time, goes, ready):
    """What counts is where the owner's pod is in the end, and whether that one is Ready."""

    def then():
        server.remove_pod("default", "b")
        replace(server, "a", as_object("a2", node="n2", ready=ready, age=1))
        later(server, time, 2, lambda: goes(server))
        later(server, time, 8, lambda: server.add(as_object("a3", node="n3", ready=True, age=9)))
        later(server, time, 20, lambda: server.add(as_object("b2", owner="db", node="n2", ready=True, age=20)))

    placement, _ = evicted(then, going=(move("a"), move("b", owner="db")))

    assert (placement.node, placement.replacement) == ("n3", "a3")
    assert 8 <= placement.ready_seconds < 15


def test_a_replacement_that_has_done_its_work_is_not_waited_for(evicted, server, time):
    """A Job's pod may have ended before it is looked at."""
    (placement,) = evicted(lambda: replace(server, "a", as_object("a2", node="n2", age=1, phase="Succeeded")))

    assert (placement.node, placement.ready_seconds) == ("n2", 0.0)
    assert time.waits == [1.0]


def test_a_controller_that_waits_for_the_old_pod_gets_its_grace_period(evicted, server, time):
    """A StatefulSet makes the next pod, of the same name, when the old one has gone."""

    def then():
        server.add(as_object("db-0", owner="db", node="n1", leaving=120))
        later(server, time, 110, lambda: server.add(as_object("db-0", uid="new", owner="db", node="n2", ready=True)))

    (placement,) = evicted(then, going=(move("db-0", owner="db"),))

    assert placement.node == "n2"
    assert placement.ready_seconds >= 110


def test_a_pod_that_nobody_replaces_is_not_waited_for(steer, server, time):
    """It has no controller; and one whose eviction is in doubt, and that is still there, has not gone."""
    alone = Move(make.pod("alone", node="n1", namespace="default", owners=()), "n2", ("n2",), as_cause("it should"))
    server.add(as_object("b", node="n1"))
    steer.begin(wave(alone, move("b")))
    began = time.now

    placements = steer.settle(wave(alone, move("b")), [(alone, GRANTED), (move("b"), Unknown("no answer"))])

    assert [(each.node, each.is_pending) for each in placements] == [(None, False)] * 2
    assert time.now - began < 5


def test_a_signal_ends_the_wait(evicted, steer, server, time, halt):
    """What was seen until then is told; nothing is called pending that was not waited for; no wave begins any more."""
    began = time.now

    def then():
        replace(server, "a", as_object("a2", node="n2", age=1))
        replace(server, "b", as_object("b2", age=2))
        later(server, time, 2, lambda: halt.signal("SIGTERM"))

    first, second = evicted(then, going=(move("a"), move("b")))

    assert (first.node, second.node, second.is_pending, second.is_missing) == ("n2", None, False, False)
    assert time.now - began < 11
    with pytest.raises(CycleStopped, match="SIGTERM"):
        steer.begin(wave(move("c")))
    steer.end()
    assert levels(server) == {"n1": 0, "n2": 0, "n3": 0}


def test_no_wave_begins_that_would_not_settle_before_the_deadline(steer, server, time):
    time.sleep(241)

    with pytest.raises(CycleStopped, match=r"--deadline comes before another wave would have settled \(60 s\)"):
        steer.begin(wave(move("a")))
    assert server.sent("PATCH", "*") == []


def test_a_node_that_cannot_be_marked_ends_the_run(steer, server):
    """The wave would not land as foreseen; what was marked comes off."""
    server.fail("PATCH", "/api/v1/nodes/n3", status=403, message='admission webhook "w" denied the request: no')

    with pytest.raises(CycleStopped, match=r"nodes could not be marked.*node n3: .*denied the request: no"):
        steer.begin(wave(move("a"), n1=2, n3=1))
    steer.end()
    assert levels(server) == {"n1": 0, "n2": 0, "n3": 0}


@pytest.fixture
def unready(evicted, server):
    """Pod a of web has gone, its replacement a2 is not Ready, and pod b is next."""
    server.add(as_object("b", node="n1", ready=True))
    (placement,) = evicted(lambda: replace(server, "a", as_object("a2", node="n2", age=1)))
    assert (placement.node, placement.ready_seconds) == ("n2", None)


@pytest.mark.usefixtures("unready")
def test_an_owner_loses_its_next_pod_only_when_the_last_replacement_is_ready(steer, server, time):
    """Another owner's pod may go meanwhile."""
    steer.begin(wave(move("c", owner="db")))
    later(server, time, 10, lambda: server.add(as_object("a2", node="n2", ready=True, age=1)))
    began = time.now
    steer.begin(wave(move("b")))
    assert 10 <= time.now - began < 20


@pytest.mark.usefixtures("unready")
def test_a_pod_that_has_failed_holds_up_nobody(steer, server, time):
    """Its controller does not count it any more, and its object may stay for days."""
    server.add(as_object("crumb", node="n3", phase="Failed"))
    server.add(as_object("a2", node="n2", ready=True, age=1))
    began = time.now

    steer.begin(wave(move("b")))

    assert time.now - began < 5


@pytest.mark.usefixtures("unready")
def test_an_owner_whose_replacement_never_gets_ready_ends_the_run(steer):
    with pytest.raises(CycleStopped, match="is not Ready, and its owner would lose another pod: default/b"):
        steer.begin(wave(move("b")))


@pytest.mark.parametrize("ending", [True, False])
def test_a_pod_stays_whose_owner_is_being_deleted(server, sink, steer, ending):
    """With `--cascade=orphan` the owner lets its pods live, and makes no more: an eviction would lose the pod."""
    deleted = {"deletionTimestamp": "2026-01-15T12:00:00Z"} if ending else {}
    web = {"namespace": "default", "name": "web", "uid": A.pod.controller.uid, **deleted}
    server.add({"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": web})
    server.add(as_object("a", node="n1"))

    steer.begin(wave(A))
    verdict = sink.evict(A.pod, "default", "S", as_cause("it should"), lambda _: None)

    assert verdict.granted is not ending
    assert server.evicted == ([] if ending else ["default/a"])


@pytest.mark.parametrize("came", [True, False])
def test_a_pod_stays_that_another_pdb_selects_than_before(server, sink, steer, came):
    """Whether it came or went: what was decided on may not hold any more.  How many it allows, the server knows."""
    going = move("a", labels={"app": "web"})
    server.add(as_object("a", node="n1", labels=going.pod.labels))
    if came:
        server.add(pdb("web", allowed=1, app="web"))

    steer.begin(wave(going))

    refusal = sink.closures.refusal(going.pod)
    assert (refusal.by if refusal else None) == ("PDB" if came else None)


def test_without_the_permission_to_list_owners_a_run_steers_all_the_same(server, steer):
    server.add(as_object("a", node="n1"))
    server.forbid("list", "replicasets.apps")

    steer.begin(wave(move("a"), n1=2))
    assert levels(server)["n1"] == 2


@pytest.mark.parametrize("status", [404, 400])
def test_an_owner_that_the_server_does_not_list_in_a_namespace_stops_no_other_pod(server, steer, status):
    """Who creates a pod names its owner: a Node is in no namespace, and a name with a comma selects nothing."""
    server.add(as_object("a", node="n1"))
    server.fail("GET", "*/namespaces/default/nodes", status=status)

    steer.begin(wave(move("a", [make.owner("n1", "Node")]), n1=2))
    assert levels(server)["n1"] == 2


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
