"""Trimaran's plugins, as worked sums, and where their figures come from."""

from datetime import timedelta
from pathlib import Path

import pytest

from rebalancer.cluster.measured import LoadFigure, LoadsWanted, NodeLoads
from rebalancer.cluster.pod import Condition, ContainerCpu, Placement
from rebalancer.errors import StrategyError
from rebalancer.policy.scheduler_configuration import load_scheduler_configuration
from rebalancer.scheduling.simulator.configuration import ConfigurationError, converted, read_configuration
from rebalancer.scheduling.simulator.trimaran import PackingArgs, TrimaranArgs
from tests import make
from tests.unit.scheduling.simulator.scheduler import configured, simulator

EXAMPLE = Path(__file__).parents[4] / "examples/trimaran-scheduler.yaml"
PACKING, RISK = "TargetLoadPacking", "LoadVariationRiskBalancing"
NODES = (make.node("n1"), make.node("n2"))


def using(*plugins, **args):
    """A configuration whose one profile scores by these plugins and no others."""
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": each} for each in plugins]}
    return configured({"plugins": {"score": score}, "pluginConfig": [{"name": plugins[0], "args": args}]})


def loads(ended=make.NOW, **percents):
    """Of each node the mean cpu, or all its figures."""
    figures = {
        name: [LoadFigure("CPU", "AVG", each)] if isinstance(each, (int, float)) else each
        for name, each in percents.items()
    }
    return NodeLoads(figures, ended)


def score(configuration, found, pod, *residents, nodes=NODES):
    scheduler = simulator(nodes, residents, configuration=configuration, ask=lambda _: found)
    return sum(scheduler.ask(pod).scores("n1").values())


def using_cpu(name, limit, **fields):
    return make.pod(name, placement=Placement(cpus=(ContainerCpu(limit, 400),)), **fields)


@pytest.mark.parametrize(("bound", "points"), [(60, 78), (59, 30)])
def test_pods_too_young_to_be_measured_count_by_what_they_are_expected_to_use(bound, points):
    """Bound so many seconds before the end of the window, with a limit of 1200m: 55 % in all."""
    changed = make.NOW - timedelta(seconds=bound)
    bound_then = (Condition("PodScheduled", "True", changed=changed),)
    young = using_cpu("young", 1200, node="n1", age=3600, conditions=bound_then)

    assert score(using(PACKING), loads(n1=10), using_cpu("new", None), young) == points


@pytest.mark.parametrize(("asked", "multiplier"), [(2**63 - 1, "1.5"), (10**19, "1e300")])
def test_what_passes_all_bounds_makes_no_node_look_empty(asked, multiplier):
    pod = make.pod("huge", placement=Placement(cpus=(ContainerCpu(None, asked),)))

    assert score(using(PACKING, defaultRequestsMultiplier=multiplier), loads(n1=10), pod) == 0


def test_a_node_is_known_by_its_name_alone():
    """The plugins do not look for an address."""
    node = make.node("n1", addresses={"InternalIP": "10.0.0.1"})
    found = loads(**{"10.0.0.1": 10, "n1:9100": 10})

    assert score(using(PACKING), found, make.pod("new", node=""), nodes=[node, make.node("n2")]) == 0
    assert score(using(RISK), found, make.pod("new", node=""), nodes=[node, make.node("n2")]) == 0


@pytest.mark.parametrize(
    ("figures", "args", "points"),
    [
        ([("CPU", "AVG", 30), ("CPU", "STD", 25)], {"safeVarianceSensitivity": 0}, 75),
        ([("CPU", "AVG", 30), ("CPU", "STD", 100)], {"safeVarianceSensitivity": 0}, 25),
        ([("CPU", "AVG", 30), ("CPU", "STD", 10)], {"safeVarianceMargin": -1}, 70),  # (0.3 + 0.2 + 0.1) / 2
        ([("CPU", "AVG", 30), ("CPU", "STD", 10)], {"safeVarianceSensitivity": -2}, 70),
    ],
)
def test_a_sensitivity_of_0_counts_and_what_is_negative_stands_for_the_default(figures, args, points):
    """The pod requests a fifth of the cpu and an eighth of the memory that is allocatable."""
    pod = make.pod("a", node="", cpu="800m", memory="2Gi")
    found = loads(n1=[LoadFigure(*each) for each in figures])

    assert score(using(RISK, **args), found, pod) == points


def test_risk_counts_requests_as_the_plugin_does():
    """A sidecar only as an init container, and nothing of the pod as a whole."""
    plain = Placement(requests_of_containers={"cpu": 400})
    pod = make.pod("a", node="", cpu="2", placement=plain)

    assert score(using(RISK), loads(n1=30), pod) == 80


def test_usage_that_is_not_known_makes_the_answer_unknown():
    """With the reason; and the source is asked no more than once, and only for pods that the plugin scores."""
    asked = []

    def ask(wanted):
        asked.append(wanted)
        raise StrategyError("load-watcher does not answer")

    loaded = load_scheduler_configuration(EXAMPLE.read_text(), source="example")
    nodes, configuration = [make.node("n1"), make.node("n2")], read_configuration(loaded.document)
    answers = simulator(nodes, configuration=configuration, ask=ask)

    assert not answers.ask(make.pod("a", node="")).unknown
    assert asked == []
    pod = make.pod("b", node="", placement=Placement(scheduler="trimaran"))
    reason = "TargetLoadPacking goes by the real usage of nodes, which is not known: load-watcher does not answer"
    assert [answers.ask(pod).unknown, answers.ask(pod).unknown] == [reason, reason]
    assert asked == [LoadsWanted("LoadWatcher")]
    assert loaded.warnings == ()


def test_all_profiles_share_the_target_of_the_last():
    """The plugin keeps one for the whole scheduler."""
    plugins = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": PACKING}]}}
    targets = [[{"name": PACKING, "args": {"targetUtilization": each}}] for each in (20, 80, 10)]
    configuration = configured(
        {"plugins": plugins, "pluginConfig": targets[0]},
        {"plugins": plugins, "pluginConfig": targets[1], "schedulerName": "b"},
        {"pluginConfig": targets[2], "schedulerName": "c"},
    )

    assert score(configuration, loads(n1=80), using_cpu("new", 0)) == 100


@pytest.mark.parametrize(
    ("args", "target"),
    [
        ({}, (40, 1.5, 1000)),
        ({"targetUtilization": 0}, (40, 1.5, 1000)),
        ({"targetUtilization": 70, "defaultRequestsMultiplier": "2"}, (70, 2.0, 1000)),
        ({"defaultRequests": {"cpu": "250m"}}, (40, 1.5, 250)),
        ({"defaultRequests": {"cpu": 2}}, (40, 1.5, 2000)),
        ({"defaultRequests": {"memory": "1Gi"}}, (40, 1.5, 0)),
    ],
)
def test_arguments_of_packing(args, target):
    """What makes no sense stands for the default; default requests that leave cpu out are none."""
    read = converted(PACKING, args, PackingArgs)

    assert (read.target(), read.multiplier(), read.assumed()) == target


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"targetUtilization": 101}, "targetUtilization is a percentage, at most 100"),
        ({"defaultRequestsMultiplier": "much"}, "defaultRequestsMultiplier 'much' is not a usable number"),
        ({"defaultRequestsMultiplier": "inf"}, "defaultRequestsMultiplier 'inf' is not a usable number"),
        ({"defaultRequestsMultiplier": "nan"}, "defaultRequestsMultiplier 'nan' is not a usable number"),
        ({"defaultRequestsMultiplier": 1.5}, "Expected `str`, got `float`"),
    ],
)
def test_arguments_that_cannot_be_used(args, message):
    """They end the run before anything is read."""
    with pytest.raises(ConfigurationError, match=f"^TargetLoadPacking: {message}"):
        converted(PACKING, args, PackingArgs)


@pytest.mark.parametrize(
    ("args", "source"),
    [
        ({}, "KubernetesMetricsServer"),
        ({"watcherAddress": "http://x:2020", "metricProvider": {"type": "Prometheus"}}, "LoadWatcher"),
        ({"metricProvider": {"type": "Prometheus", "address": "http://prometheus:9090"}}, "Prometheus"),
    ],
)
def test_whom_the_scheduler_asks(args, source):
    """load-watcher by its address, else what load-watcher would ask."""
    assert converted(PACKING, args, TrimaranArgs).source == LoadsWanted(source)
