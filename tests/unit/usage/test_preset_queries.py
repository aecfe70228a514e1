"""The presets' queries, on a real Prometheus with series of node-exporter, cAdvisor and kube-state-metrics."""

from collections.abc import Iterator
from functools import partial

import pytest

from rebalancer.run.policies import read_policy
from tests.make import cluster, pod
from tests.real_prometheus import RealPrometheus, Series, needed
from tests.unit.usage.settings import Sources, nodes, prometheus

pytestmark = needed

GI = 1 << 30


def counted(rate: float, age: int) -> float:
    """A counter that grows by `rate` a second."""
    return rate * (100_000 - age)


def node_exporter() -> Iterator[Series]:
    for number, idle in ((1, 0.1), (2, 0.6)):
        instance = f"10.0.0.{number}:9100"
        for core in range(4):
            for mode, rate in (("idle", idle), ("iowait", 0.1), ("steal", 0.05), ("user", 0.85 - idle)):
                labels = {"instance": instance, "cpu": str(core), "mode": mode, "job": "node-exporter"}
                yield Series("node_cpu_seconds_total", labels, partial(counted, rate))
        for name, amount in (("MemTotal", 16 * GI), ("MemAvailable", number * GI)):
            yield Series(f"node_memory_{name}_bytes", {"instance": instance}, lambda _, amount=amount: amount)


def cadvisor() -> Iterator[Series]:
    for number in (1, 2):
        node = {"instance": f"10.0.0.{number}:10250", "node": f"n{number}"}
        yield Series("container_cpu_usage_seconds_total", {**node, "id": "/"}, partial(counted, 3.0 / number))
        yield Series("container_memory_working_set_bytes", {**node, "id": "/"}, lambda _, n=number: (15 - n) * GI)
        named = {**node, "namespace": "default", "pod": f"p{number}"}
        for container, rate in (("main", 0.5), ("sidecar", 0.25), ("", 0.75)):  # the last one is the pod's cgroup
            labels = {**named, "container": container, "id": f"/kubepods/{container}"}
            yield Series("container_cpu_usage_seconds_total", labels, partial(counted, rate))
            yield Series("container_memory_working_set_bytes", labels, lambda _, rate=rate: rate * GI)


def kube_state_metrics() -> Iterator[Series]:
    for number in (1, 2):
        labels = {"namespace": "default", "pod": f"p{number}", "instance": "10.0.0.9:8080"}
        yield Series("kube_pod_info", {**labels, "node": f"n{number}", "uid": "new"}, lambda _: 1)
        yield Series("kube_pod_info", {**labels, "node": "n1", "uid": "old"}, lambda age: 1 if age > 600 else None)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[RealPrometheus]:
    past = [*node_exporter(), *cadvisor(), *kube_state_metrics()]
    with RealPrometheus(tmp_path_factory.mktemp("prometheus"), past) as running:
        yield running


@pytest.mark.parametrize(
    ("preset", "amounts"),
    [
        ("usage-prometheus", {"n1": (3000, 15 * GI), "n2": (1000, 14 * GI)}),
        ("usage-prometheus-kubelet", {"n1": (3000, 14 * GI), "n2": (1500, 13 * GI)}),
    ],
)
def test_a_preset_measures_nodes_and_pods(server, preset, amounts):
    """Every query gives what it should, without a warning; pods add their containers up."""
    (profile,) = read_policy(preset, strict=True).policy.profiles
    wanted = profile.args["LowNodeUtilization"].metrics_utilization.model_dump(by_alias=True, exclude_none=True)
    wanted["prometheus"].pop("query")
    on = cluster(nodes(2), [pod("p1", node="n1"), pod("p2", node="n2")])

    found = Sources(prometheus(server.url)).measure(on, **wanted)

    assert found.nodes == {name: {"cpu": cpu, "memory": memory} for name, (cpu, memory) in amounts.items()}
    assert found.peaks == found.nodes
    assert found.pods == {("default", name): {"cpu": 750, "memory": round(0.75 * GI)} for name in ("p1", "p2")}
    assert found.pod_nodes == {("default", "p1"): "n1", ("default", "p2"): "n2"}
    assert (found.missing, found.warnings) == ({}, ())
