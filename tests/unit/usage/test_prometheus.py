"""Usage from a real Prometheus that has a past: units, bases, labels, windows, gaps, pods, and the presets' queries."""

import math
from collections.abc import Iterator
from functools import partial

import pytest

from rebalancer.errors import StrategyError
from rebalancer.run.policies import read_policy
from tests.make import cluster, pod
from tests.real_prometheus import RealPrometheus, Series, needed
from tests.unit.usage.settings import Sources, nodes, prometheus

pytestmark = needed

GI = 1 << 30
BY_ADDRESS = {"label": "instance", "match": "internalIP"}
RATIO = {"query": "cpu_ratio", "unit": "ratio", "base": "capacity", "node": BY_ADDRESS}


def gauge(number: int, value) -> Series:
    return Series("cpu_ratio", {"instance": f"10.0.0.{number}:9100"}, value)


def past() -> Iterator[Series]:
    yield gauge(1, lambda _: 0.5)
    yield gauge(2, lambda age: 0.9 if age <= 120 else 0.2)  # a spike in the last two minutes
    yield gauge(3, lambda _: math.nan)
    yield gauge(4, lambda age: 0.4 if age >= 400 else None)  # gone for longer than Prometheus looks back
    yield gauge(5, lambda age: 0.1 if age <= 120 else None)  # a new node
    yield gauge(6, lambda age: 0.3 if age >= 240 else None)  # its last sample is four minutes old
    yield gauge(7, lambda _: -0.1)
    yield gauge(8, lambda age: math.nan if age % 120 == 30 else 0.25)  # it stutters
    yield gauge(9, lambda _: 1e308)
    yield gauge(99, lambda _: 0.5)
    for number in (1, 2):
        yield Series("cpu_percent", {"node": f"n{number}"}, lambda _: 40)
        yield Series("cpu_cores", {"host": f"h{number}:9100"}, lambda _: 1.25)
        yield Series("memory_bytes", {"instance": f"n{number}:9100"}, lambda _: 3 * GI)
        yield Series("by_device", {"instance": f"n{number}", "device": "a"}, lambda _: 0.1)
        yield Series("by_device", {"instance": f"n{number}", "device": "b"}, lambda _: 0.2)
    yield from pods()


def pods() -> Iterator[Series]:
    def used(name: str, node: str, value, **labels) -> Series:
        return Series("pod_cores", {"namespace": "default", "pod": name, "node": node, **labels}, value)

    yield used("a", "n1", lambda _: 0.7)
    yield used("left", "n1", lambda age: 0.3 if age >= 420 else None)
    yield used("moved", "n2", lambda age: 0.6 if age >= 420 else None)
    yield used("moved", "n1", lambda age: 0.2 if age < 420 else None)
    yield used("nothing", "n1", lambda _: math.nan)
    yield Series("pod_cores", {"node": "n1"}, lambda _: 3)  # a cgroup of no pod
    yield Series("spiky_cores", {"namespace": "default", "pod": "a"}, lambda age: 0.9 if age <= 120 else 0.2)
    for container in ("x", "y"):
        yield Series("container_cores", {"namespace": "default", "pod": "a", "container": container}, lambda _: 0.1)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[RealPrometheus]:
    with RealPrometheus(tmp_path_factory.mktemp("prometheus"), [*past(), *of_exporters()]) as running:
        yield running


@pytest.fixture
def ask(server):
    """Ask about n1 ... n<count>, on which the pods a, moved and other run."""

    def measure(count=2, pods=None, min_fresh=0, window=None, max_age=None, missing="fail", **queries):
        on = cluster(
            nodes(count), [pod("a", node="n1", memory="1Gi"), pod("moved", node="n1"), pod("other", node="n2")]
        )
        windowed = {} if window is None else {"window": window}
        wanted = {"nodes": queries, **windowed, **({} if pods is None else {"pods": pods})}
        aged = {} if max_age is None else {"maxSampleAge": max_age}
        return Sources(prometheus(server.url)).measure(
            on, source="Prometheus", minFreshNodes=min_fresh, prometheus=wanted, whenMissing=missing, **aged
        )

    return measure


@pytest.mark.parametrize(
    ("resource", "query", "amount"),
    [
        ("cpu", RATIO, 2000),
        ("cpu", {**RATIO, "base": "allocatable"}, 1500),
        ("cpu", {"query": "cpu_percent", "unit": "percent", "base": "capacity", "node": {"label": "node"}}, 1600),
        ("cpu", {"query": "cpu_cores", "unit": "cores", "node": {"label": "host", "match": "hostname"}}, 1250),
        ("memory", {"query": "memory_bytes", "unit": "bytes"}, 3 * GI),
        # In hundredths of a percent, whatever the node has.
        ("contention", {"query": "cpu_ratio * 0.3", "unit": "ratio", "base": "time", "node": BY_ADDRESS}, 1500),
    ],
)
def test_a_value_means_what_unit_and_base_say(ask, resource, query, amount):
    """A ratio or percent is a share of what they name, cores are cores; a port is not part of a node's name."""
    assert ask(**{"cpu": RATIO, resource: query}).nodes["n1"] == {"cpu": 2000, resource: amount}


@pytest.mark.parametrize(("window", "usual"), [(None, 3600), ("15m", 800)])
def test_sources_go_by_the_median_and_destinations_by_the_peak(ask, window, usual):
    """A spike of two minutes makes no node a source, and keeps it from being one of the destinations."""
    found = ask(cpu=RATIO, window=window)

    assert (found.nodes["n2"], found.peaks["n2"]) == ({"cpu": usual}, {"cpu": 3600})
    assert found.window.total_seconds() == (900 if window else 0)


@pytest.mark.parametrize(
    ("window", "missing"),
    [
        (None, {"n3": "cpu is nan", "n4": "no sample of cpu", "n7": "cpu is -0.1"}),
        (
            "15m",
            {
                "n3": "cpu: 0 of 30 values in the window",
                "n4": "no sample of cpu",
                "n5": "cpu: 5 of 30 values in the window",
                "n7": "cpu: 0 of 30 values in the window",
            },
        ),
    ],
)
def test_what_is_no_sample_is_missing(ask, window, missing):
    """NaN, negative and absurd values, nodes that are gone or too new have no figures; a few gaps do no harm."""
    found = ask(9, cpu=RATIO, window=window)

    assert found.missing == {**missing, "n9": "cpu is 1e+308"}
    assert found.nodes.keys() == {f"n{number}" for number in range(1, 9)} - missing.keys()
    assert found.nodes["n8"] == {"cpu": 1000}


def test_requests_stand_in_for_the_figures_alone_that_are_missing(ask):
    """A node that is full of cpu does not seem to be idle because it has no figure of memory."""
    memory = {"query": 'memory_bytes{instance="n2:9100"}', "unit": "bytes"}
    pods = {"cpu": {"query": "pod_cores", "unit": "cores"}, "memory": {"query": "1e9 * pod_cores", "unit": "bytes"}}

    found = ask(3, cpu=RATIO, memory=memory, pods=pods, missing="requests")

    assert found.nodes == {
        "n1": {"cpu": 2000, "memory": GI},
        "n2": {"cpu": 3600, "memory": 3 * GI},
        "n3": {"cpu": 0, "memory": 0},
    }
    assert found.peaks == found.nodes
    assert found.pods["default", "a"] == {"cpu": 700, "memory": GI}
    assert ask(3, cpu=RATIO, memory=memory).nodes.keys() == {"n2"}


def test_a_sample_is_stale_where_the_policy_says_so(ask):
    """Prometheus itself looks back five minutes."""
    assert "n6" in ask(6, cpu=RATIO).nodes
    assert ask(6, cpu=RATIO, max_age="3m").missing["n6"] == "cpu: its sample is 4m old, more than 3m"
    assert "n6" in ask(6, cpu=RATIO, max_age="4m").nodes


def test_too_few_fresh_nodes_fail_the_strategy(ask):
    """Three of eight are unknown: fine at 60 %, too much at 80 %; the message names them."""
    assert "neither source nor destination: n3 (cpu is nan), n4" in ask(8, cpu=RATIO, min_fresh=62).warnings[-1]
    with pytest.raises(
        StrategyError, match=r"only 5 of 8 nodes have fresh usage, .* 80 %: n3 \(cpu is nan\), n4"
    ) as error:
        ask(8, cpu=RATIO, min_fresh=80)
    assert "and" not in str(error.value).split("n7")[1]


def test_series_of_no_node_are_ignored_and_counted(ask):
    """They may be of another cluster, or the mapping may be wrong: the first one is shown."""
    (warning,) = ask(9, cpu=RATIO).warnings[:1]

    assert warning == (
        "cpu: 1 series are about no node of the cluster by instance = internalIP, "
        "the first has instance '10.0.0.99:9100'"
    )


def test_a_mapping_that_finds_no_node_says_what_it_saw(ask):
    """The error has what it takes to see that the wrong label was named."""
    with pytest.raises(
        StrategyError, match=r"only 0 of 2 nodes .*no node of the cluster by node = name, .* no label node"
    ):
        ask(cpu={**RATIO, "node": {"label": "node"}}, min_fresh=80)


def test_two_series_for_one_node_are_an_error(ask):
    """Which of them counts nobody can tell; the message shows both and what to do about it."""
    with pytest.raises(StrategyError, match=r'two series for node n1: .*device="a".*device="b".*sum by \(instance\)'):
        ask(cpu={"query": "by_device", "unit": "ratio", "base": "capacity"})


@pytest.mark.parametrize("window", [None, "10m"])
def test_a_query_may_be_any_expression(ask, window):
    query = "\n  sum by (instance) (cpu_ratio) # the busy part\n"

    assert ask(cpu={**RATIO, "query": query}, window=window, max_age="1m").nodes["n1"] == {"cpu": 2000}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("1", "gives no instant vector of numbers"),
        ("cpu_ratio[5m]", "gives no instant vector of numbers"),
        ('"text"', "gives no instant vector of numbers"),
        ("sum by (", "refuses: HTTP 400, .*parse error"),
    ],
)
def test_a_result_must_be_an_instant_vector(ask, query, message):
    """Scalars, ranges and text say nothing about nodes; a wrong query is told in the server's words."""
    with pytest.raises(StrategyError, match=message):
        ask(cpu={**RATIO, "query": query})


CORES = {"query": "pod_cores", "unit": "cores", "node": {"label": "node"}}
SHARE = {**CORES, "unit": "ratio", "base": "capacity"}
SPIKY = {"query": "spiky_cores", "unit": "cores"}
WAITING = {"query": "cpu_ratio", "unit": "ratio", "base": "time", "node": BY_ADDRESS}


@pytest.mark.parametrize(
    ("query", "more", "used"),
    [
        pytest.param(CORES, {}, {"a": 700, "moved": 200}, id="cores"),
        pytest.param(SHARE, {}, {"a": 2800, "moved": 800}, id="a share is one of its node"),
        pytest.param(CORES, {"contention": WAITING}, {"a": 700, "moved": 200}, id="no query of contention is needed"),
        pytest.param(CORES, {"window": "15m"}, {"a": 700, "left": 300, "moved": 200}, id="a window remembers who left"),
        pytest.param(SPIKY, {"window": "15m"}, {"a": 200}, id="by what it takes off its node most of the time"),
    ],
)
def test_pods_are_measured_too(ask, query, more, used):
    """With their nodes; of a pod that moved, what it uses where it is now."""
    found = ask(cpu=RATIO, pods={"cpu": query}, **more)

    assert found.pods == {("default", name): {"cpu": cpu} for name, cpu in used.items()}
    assert found.pod_nodes == (dict.fromkeys(found.pods, "n1") if "node" in query else {})


@pytest.mark.parametrize(("window", "believed"), [(None, False), ("15m", True)])
def test_a_node_and_its_pods_may_differ_in_a_window(ask, window, believed):
    """Quantiles of the two are not about the same moment; present values are, and one of them is wrong."""
    low = {**RATIO, "query": "cpu_ratio * 0.01"}

    assert ("n1" in ask(cpu=low, pods={"cpu": CORES}, window=window).nodes) is believed


def test_two_series_for_one_pod_are_an_error(ask):
    with pytest.raises(StrategyError, match=r"two series for pod default/a: .*sum by \(namespace, pod\)"):
        ask(cpu=RATIO, pods={"cpu": {"query": "container_cores", "unit": "cores"}})


def counted(rate: float, age: int) -> float:
    """A counter that grows by `rate` a second."""
    return rate * (100_000 - age)


def of_exporters() -> Iterator[Series]:
    """Series of node-exporter, cAdvisor and kube-state-metrics."""
    for number, idle in ((1, 0.1), (2, 0.6)):
        instance = f"10.0.0.{number}:9100"
        for core in range(4):
            for mode, rate in (("idle", idle), ("iowait", 0.1), ("steal", 0.05), ("user", 0.85 - idle)):
                labels = {"instance": instance, "cpu": str(core), "mode": mode, "job": "node-exporter"}
                yield Series("node_cpu_seconds_total", labels, partial(counted, rate))
        for name, amount in (("MemTotal", 16 * GI), ("MemAvailable", number * GI)):
            yield Series(f"node_memory_{name}_bytes", {"instance": instance}, lambda _, amount=amount: amount)
    for number in (1, 2):
        node = {"instance": f"10.0.0.{number}:10250", "node": f"n{number}"}
        yield Series("container_cpu_usage_seconds_total", {**node, "id": "/"}, partial(counted, 3.0 / number))
        yield Series("container_memory_working_set_bytes", {**node, "id": "/"}, lambda _, n=number: (15 - n) * GI)
        named = {**node, "namespace": "default", "pod": f"p{number}"}
        for container, rate in (("main", 0.5), ("sidecar", 0.25), ("", 0.75)):  # the last one is the pod's cgroup
            labels = {**named, "container": container, "id": f"/kubepods/{container}"}
            yield Series("container_cpu_usage_seconds_total", labels, partial(counted, rate))
            yield Series("container_memory_working_set_bytes", labels, lambda _, rate=rate: rate * GI)
    for number in (1, 2):
        labels = {"namespace": "default", "pod": f"p{number}", "instance": "10.0.0.9:8080"}
        yield Series("kube_pod_info", {**labels, "node": f"n{number}", "uid": "new"}, lambda _: 1)
        yield Series("kube_pod_info", {**labels, "node": "n1", "uid": "old"}, lambda age: 1 if age > 600 else None)


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
