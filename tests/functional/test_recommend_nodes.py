"""`rebalancer recommend nodes`: what kubelets keep for the system."""

import pytest
import yaml

from tests.fake_http import Reply
from tests.fake_servers import FakeServer
from tests.functional import objects
from tests.functional.objects import node_usage, pod_usage
from tests.make import NOW
from tests.real_prometheus import RealPrometheus, Series, needed

GIB, HOUR = 1 << 30, 3600


def node(name, allocatable="10Gi"):
    made = objects.node(name, memory="10Gi")
    made["status"]["allocatable"] = {**made["status"]["allocatable"], "memory": allocatable}
    return made


def pod(name, on, request=None):
    made = objects.pod(name, on)
    made["spec"]["containers"][0]["resources"] = {"requests": {"memory": request}} if request else {}
    return made


@pytest.fixture
def asked(rebalancer):
    """Recommend for the nodes of these objects."""
    return lambda objects, *arguments: rebalancer(
        "recommend", "nodes", "--snapshot", rebalancer.cluster(*objects), *arguments
    )


def only(outcome):
    (found,) = outcome.report["sizes"]
    return found


def test_ten_gibibytes_give_the_sum_of_the_method(asked):
    """5 % are 512Mi, and with 10 % on top 1.5Gi are the system's; other thresholds stay what they are by default."""
    outcome = asked([node("n1")], "-o", "yaml")

    assert outcome.stdout.startswith("# 1 node with 10240Mi: n1\n")
    assert yaml.safe_load(outcome.stdout) == {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "evictionHard": {
            "memory.available": "512Mi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
            "imagefs.available": "15%",
            "imagefs.inodesFree": "5%",
        },
        "systemReserved": {"memory": "1536Mi"},
    }
    assert "nobody measured what the system uses" in outcome.stderr


def test_what_the_system_uses_is_the_node_without_its_pods(asked):
    """2Gi of the node are no pod's: 2355Mi with 15 %, and the threshold; one snippet for nodes of one size."""
    items = [
        *(node("n1"), node("n2"), pod("web", "n1")),
        *(node_usage("n1", "1500m", "5Gi"), pod_usage("web", "1", "3Gi")),
        node_usage("n2", "100m", "1Gi"),
    ]

    found = only(asked(items, "-o", "json"))

    assert found["nodes"] == ["n1", "n2"]
    assert found["systemUses"] == {"cpu": "500m", "memory": "2048Mi"}
    assert found["kubeletConfiguration"]["systemReserved"] == {"cpu": "580m", "memory": "2868Mi"}


def test_nodes_closer_to_the_edge_are_warned_of(asked):
    """Little is left, little is kept, or pods request what would be kept; n2 is fine.

    What the system of n3 uses is not known, since a pod there was not measured.
    """
    items = [
        *(node("n1"), node("n2", allocatable="8Gi"), pod("web", "n1", "9Gi")),
        *(node_usage("n1", "1", "10000Mi"), pod_usage("web", "1", "9900Mi")),
        *(node_usage("n2", "1", "1Gi"), node("n3", allocatable="8Gi"), node_usage("n3", "1", "9Gi")),
        *(pod("new", "n3"), pod("done", "n2")),
    ]
    items[-1]["status"]["phase"] = "Succeeded"

    words = " ".join(asked(items).stdout.split())

    assert "Warning: n1: 240Mi was left of 10240Mi: below 512Mi pods would be evicted" in words
    assert "Warning: n1: keeps 0Mi from pods today, so that the kernel may kill before the kubelet evicts" in words
    assert "Warning: n1: its pods request 9216Mi, more than the 8038Mi that would be allocatable" in words
    assert "Warning: n3: 1024Mi was left of 10240Mi, less than the 1690Mi to keep" in words
    assert "Warning: n2" not in words


def test_a_value_beyond_all_bounds_counts_for_nothing(asked):
    class Strange(FakeServer):
        def answer(self, request):
            values = [[int(request.query["end"]), "1.7e308"]]
            return Reply(
                200, {"data": {"resultType": "matrix", "result": [{"metric": {"node": "n1"}, "values": values}]}}
            )

    with Strange() as server:
        found = only(asked([node("n1")], "-o", "json", "--prometheus", server.url))

    assert found["kubeletConfiguration"]["systemReserved"] == {"memory": "1536Mi"}


@needed
def test_the_most_of_days_counts(asked, tmp_path):
    """Once the system used 3Gi, two days ago, for an hour; the pods' part is not the system's."""

    def node_bytes(age):
        return (5 if 48 * HOUR <= age < 49 * HOUR else 3) * GIB

    name, of_pod = "container_memory_working_set_bytes", {"namespace": "shop", "pod": "web", "container": "app"}
    past = [
        Series(name, {"node": "n1", "id": "/"}, node_bytes, 72 * HOUR, 300),
        Series(name, {"node": "n1", "id": "/kubepods/x", **of_pod}, lambda _: 2 * GIB, 72 * HOUR, 300),
    ]
    with RealPrometheus(tmp_path, past) as server:
        history = ("--history", "72h", "--now", NOW.isoformat())
        found = only(asked([node("n1")], "-o", "json", "--prometheus", server.url, *history))

    assert found["systemUses"] == {"memory": "3072Mi"}
