"""A node's mark is set and taken off, whatever else is written to the node; nothing of others is changed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from rebalancer.errors import ClusterError, Forbidden, Interrupted
from rebalancer.kube.answers import Rejected
from rebalancer.kube.marks import Mark, SteeringMarks, without_run
from rebalancer.kube.node_marks import NodeMarks, on_each
from rebalancer.kube.tries import Deadline
from tests.fake_http import Reply, failure
from tests.unit.kube.marked_nodes import on_server

STEERING = SteeringMarks.of("kube-rebalancer/avoid")
HOT = Mark("run-1", STEERING.at(2), datetime(2026, 1, 15, 12, 7, tzinfo=UTC))
MIDDLING = Mark("run-1", STEERING.at(1), HOT.expires)
SPOT = {"key": "spot", "value": "run-1", "effect": "NoSchedule"}  # as if a run had set it
NODE = "/api/v1/nodes/n1"


def node(*taints, uid="uid-of-n1", **annotations):
    """A node with a label and a network, which stay."""
    found = on_server(
        "n1", *taints, uid=uid, labels={"zone": "a"}, **({"annotations": annotations} if annotations else {})
    )
    return found | {"spec": {"podCIDR": "10.0.0.0/24", **found["spec"]}}


def ours(*names, run="run-1"):
    return [{"key": f"kube-rebalancer/{name}", "value": run, "effect": "PreferNoSchedule"} for name in names]


@pytest.fixture(autouse=True)
def alone(server):
    server.add(node())


@pytest.fixture
def change(client, time):
    marks = NodeMarks(client, time.retry_policy())
    return lambda wanted: marks.change("n1", wanted, Deadline.after(60, time.clock))


def setting(mark):
    return lambda found: STEERING.on(found, mark)


def of_run(run):
    return lambda found: without_run(found, run)


AMONG_OTHERS = node(SPOT, **{"example.com/owner": "team"})


def test_the_patch_names_nothing_but_taints_and_our_annotation(change, server):
    """And tests the UID, the whole list of taints and the annotation as they were read."""
    server.add(AMONG_OTHERS)
    change(setting(MIDDLING))

    (request,) = server.sent("PATCH", NODE)
    annotation = "/metadata/annotations/kube-rebalancer~1avoid"
    read = {"/metadata/uid": "uid-of-n1", "/spec/taints": [SPOT], annotation: None}
    assert request.headers["content-type"] == "application/json-patch+json"
    assert request.body[:3] == [{"op": "test", "path": path, "value": value} for path, value in read.items()]
    assert [(each["op"], each["path"]) for each in request.body[3:]] == [("add", "/spec/taints"), ("add", annotation)]


def test_what_another_writes_in_between_survives(change, server):
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    server.on("PATCH", NODE, lambda _: server.add(node(cordon)), times=1)

    change(setting(MIDDLING))

    assert server.node("n1")["spec"]["taints"] == [cordon, *ours("avoid")]
    assert len(server.sent("PATCH", NODE)) == 2


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_node_that_is_gone_is_no_error(change, server, method):
    server.on(method, NODE, lambda _: server.remove_node("n1"), times=1)

    change(setting(HOT))

    assert len(server.sent(method, NODE)) == 1


@pytest.mark.parametrize("processed", [True, False], ids=["after it acted", "before it acted"])
def test_an_answer_that_is_lost_is_looked_for_at_the_node(change, server, processed):
    """Done once, whether or not the first request went through."""
    server.add(node(SPOT))
    server.reset("PATCH", NODE, processed=processed)

    change(setting(HOT))

    assert server.node("n1")["spec"]["taints"] == [SPOT, *ours("avoid", "avoid-more")]
    assert len(server.sent("PATCH", NODE)) == (1 if processed else 2)


def test_a_page_of_a_proxy_in_place_of_the_node_ends_nothing(change, server):
    """The mark stays as it is until the API server itself has answered; a 404 of a proxy takes no node away."""
    change(setting(MIDDLING))
    server.fail("PATCH", NODE, status=200, body="<html>Please log in</html>", times=1)
    server.fail("GET", NODE, status=404, body="404 page not found", times=1)

    with pytest.raises(Rejected, match="answers 404 to GET"):
        change(of_run("run-1"))
    change(of_run("run-1"))

    assert server.node("n1") == node()
    assert len(server.sent("PATCH", NODE)) == 3


INVALID = {"kind": "Status", "message": "is invalid", "details": {"causes": [{"message": "spec.taints[0].key"}]}}
BY_WEBHOOK = failure(403, 'admission webhook "w" denied the request: no')


@pytest.mark.parametrize(
    ("method", "status", "body", "error", "words"),
    [
        ("GET", 200, failure(200, "fine"), ClusterError, "with a Node"),
        # without a UID it might be another
        ("GET", 200, {"kind": "Node", "metadata": {"name": "n1"}}, Rejected, "with a Node"),
        ("GET", 403, failure(403, "no"), Forbidden, "no permission to get nodes"),
        ("PATCH", 403, failure(403, "no"), Forbidden, "no permission to patch nodes"),
        ("PATCH", 403, BY_WEBHOOK, Rejected, "refused by the cluster's admission.*: no"),
        ("PATCH", 422, INVALID, Rejected, "is invalid"),
    ],
)
def test_a_refusal_ends_it(change, server, method, status, body, error, words):
    """Nor is a node patched that could not be read."""
    server.on(method, NODE, lambda _: Reply(status, body))

    with pytest.raises(error, match=words):
        change(setting(HOT))
    assert len(server.sent("PATCH", "*")) == (method == "PATCH")
    assert server.node("n1") == node()


def test_an_interruption_leaves_the_nodes_that_have_not_begun_as_they_are(monkeypatch):
    """Ctrl-C is not answered by hundreds of writes; what has begun is waited for."""
    heard, begun, ended = threading.Event(), [], []
    shutdown = ThreadPoolExecutor.shutdown

    def shut(pool, **settings):
        shutdown(pool, **{**settings, "wait": False})
        heard.set()
        shutdown(pool, **settings)

    def act(name):
        if name == "n000":
            raise Interrupted("stopped by SIGINT", 130)
        begun.append(name)
        heard.wait(120.0)
        ended.append(name)

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shut)
    with pytest.raises(Interrupted):
        on_each((f"n{number:03}" for number in range(200)), act)
    assert len(begun) <= 8
    assert sorted(ended) == sorted(begun)
