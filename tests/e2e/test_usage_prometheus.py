"""Real usage from a real Prometheus, which scrapes what the kubelets of a real cluster serve."""

from pathlib import Path

from tests.e2e.acts import by_node, cordon, uids
from tests.e2e.api import Object
from tests.e2e.builders import daemonset, deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy
from tests.e2e.waiting import wait_for
from tests.real_prometheus import RealPrometheus, needed

pytestmark = needed

# The scrape tells the node's name, so `instance` is that here; a kubelet's pods have no label for their node.
# Where the machine is busy scrapes fail and come late: these figures hardly change with some of them.
NODES = {
    "cpu": ("deriv(node_cpu_usage_seconds_total[30s])", "cores"),
    "memory": ("last_over_time(node_memory_working_set_bytes[1m])", "bytes"),
}
PODS = {
    "cpu": ("deriv(pod_cpu_usage_seconds_total[30s])", "cores"),
    "memory": ("last_over_time(pod_memory_working_set_bytes[1m])", "bytes"),
}
ENOUGH = "count_over_time(node_cpu_usage_seconds_total[30s]) >= 15"
#: What the pods of the busy node use: two points from where none would go, and from where two would.
CORES = 8 * 0.87
BY_NAME = {"label": "instance", "match": "name"}


def queries(texts: dict[str, tuple[str, str]]) -> Object:
    """The queries of a policy, by resource."""
    return {name: {"query": text, "unit": unit, "node": BY_NAME} for name, (text, unit) in texts.items()}


def relief(url: str) -> Object:
    """A policy that takes pods off nodes above 65 % of cpu, as Prometheus has them right now."""
    args = {
        "thresholds": {"cpu": 45, "memory": 60},
        "targetThresholds": {"cpu": 65, "memory": 80},
        "metricsUtilization": {
            "source": "Prometheus",
            "selection": "relief",
            "prometheus": {"nodes": queries(NODES), "pods": queries(PODS)},
        },
    }
    provider = {"source": "Prometheus", "prometheus": {"url": url}}
    return policy({"LowNodeUtilization": args}, {"nodeFit": True}, metricsProviders=[provider])


def all_measured(prometheus: RealPrometheus, namespace: Namespace) -> bool:
    """Whether Prometheus knows what each pod uses, and, about, what each node does."""
    pods = {each["metadata"]["name"] for each in namespace.pods()}
    seen = {each["metric"]["pod"] for each in prometheus.query(PODS["cpu"][0])}
    nodes = {each["metric"]["instance"]: float(each["value"][1]) for each in prometheus.query(NODES["cpu"][0])}
    enough = len(prometheus.query(ENOUGH)) == len(nodes) == 2
    return pods <= seen and enough and abs(nodes["a"] - CORES) < 0.1


def test_a_busy_node_is_relieved(
    controlplane: ControlPlane, namespace: Namespace, program: Program, tmp_path: Path
) -> None:
    """Of eight pods that request 1 % and use 8.7 % each, one moves to the other node: the busy one is then at 61 %."""
    namespace.create(node("a", cpu="10"), node("b", cpu="10"))
    namespace.create(daemonset("agent"))
    cordon(controlplane.api, "b")
    namespace.create(deployment("crowded", replicas=8, cpu="100m", usage="870m"))
    before = namespace.wait_ready(8, "crowded")
    cordon(controlplane.api, "b", on=False)
    kubelets = {name: controlplane.kubelet_metrics_url(name) for name in ("a", "b")}

    with RealPrometheus(tmp_path, instances=kubelets) as prometheus:
        wait_for(lambda: all_measured(prometheus, namespace), "figures of all pods and nodes")
        outcome = program.run(relief(prometheus.url), "--strict")
        after = namespace.wait_ready(8, "crowded")

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.errors() == {}
    assert len(outcome.evicted_uids()) == 1
    assert uids(before) - uids(after) == set(outcome.evicted_uids())
    assert by_node(before) == {"a": 8}
    assert by_node(after) == {"a": 7, "b": 1}
