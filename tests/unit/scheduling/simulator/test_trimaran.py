"""Trimaran's plugins, as worked sums, and where their figures come from."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from rebalancer.cluster.measured import LoadFigure, LoadsWanted, NodeLoads
from rebalancer.cluster.pod import Condition, ContainerCpu, Placement
from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.errors import StrategyError
from rebalancer.policy.scheduler_configuration import load_scheduler_configuration
from rebalancer.scheduling.simulator.configuration import ConfigurationError, read_configuration
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.trimaran import Target, Variation, loads_wanted, packed, packing, variation
from tests import make

READ = SchedulerInputs(services={}, replica_sets={}, replication_controllers={}, stateful_sets={})
EXAMPLE = Path(__file__).parents[4] / "examples/trimaran-scheduler.yaml"
PACKING, RISK = "TargetLoadPacking", "LoadVariationRiskBalancing"


def using(*plugins, **args):
    """A configuration whose one profile scores by these plugins and no others."""
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": each} for each in plugins]}
    config = [{"name": plugins[0], "args": args}]
    return read_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"score": score}, "pluginConfig": config}],
        }
    )


def loads(ended=make.NOW, **percents):
    """Of each node the mean cpu, or all its figures."""
    figures = {
        name: [LoadFigure("CPU", "AVG", each)] if isinstance(each, (int, float)) else each
        for name, each in percents.items()
    }
    return NodeLoads(figures, ended)


def simulator(configuration, found, residents=(), nodes=None):
    state = State(make.snapshot(nodes or [make.node("n1"), make.node("n2")], residents, namespaces={}), READ)
    return Simulator(state, profiles(state, configuration, ask=lambda _: found)), state


def score(configuration, found, pod, residents=(), nodes=None, name="n1"):
    asked, _ = simulator(configuration, found, residents, nodes)
    return sum(asked.ask(pod).scores(name).values())


def using_cpu(name="new", *, node="", limit=None, request=400, overhead=0, age=3600, **fields):
    placement = Placement(cpus=(ContainerCpu(limit, request),), overhead_cpu=overhead)
    return make.pod(name, node=node, cpu=f"{request or 0}m", age=age, placement=placement, **fields)


@pytest.mark.parametrize(
    ("busy", "points"),
    [(0, 40), (10, 55), (20, 70), (30, 85), (40, 100), (41, 39), (50, 33), (60, 27), (80, 13), (100, 0), (101, 0)],
)
def test_load_is_packed_up_to_the_target(busy, points):
    """With a target of 40 %."""
    assert packed(busy, 40) == points


@pytest.mark.parametrize(
    ("pod", "points"),
    [
        (using_cpu(request=400), 78),  # 10 % and 400m * 1.5 of 4 cores: 25 %
        (using_cpu(limit=1200), 100),  # 40 %
        (using_cpu(limit=1200, overhead=80), 39),  # 42 %
        (using_cpu(limit=0), 55),
        (using_cpu(request=None), 93),  # a core: 35 %, 92.5 rounded up
        (make.pod("a", node="", placement=Placement()), 55),
    ],
)
def test_a_pod_is_expected_to_use_its_limit_else_its_request_and_half(pod, points):
    """Else one core; its overhead is added."""
    assert score(using(PACKING), loads(n1=10), pod) == points


def test_what_nodes_use_is_a_share_of_their_capacity():
    """Not of what is allocatable: of 4 cores 10 %, and half a core more."""
    node = msgspec.structs.replace(make.node("n1", cpu="2"), capacity={"cpu": 4000})

    assert score(using(PACKING), loads(n1=10), using_cpu(limit=500), nodes=[node, make.node("n2")]) == 74  # 22.5 %


@pytest.mark.parametrize(
    ("bound", "points"),
    [(61, 78), (60, 78), (59, 30), (0, 30), (-30, 30)],
)
def test_pods_too_young_to_be_measured_count_by_what_they_are_expected_to_use(bound, points):
    """Bound so many seconds before the end of the window, with a limit of 1200m: 55 % in all."""
    changed = make.NOW - timedelta(seconds=bound)
    young = using_cpu("young", node="n1", limit=1200, conditions=(Condition("PodScheduled", "True", changed=changed),))

    assert score(using(PACKING), loads(n1=10), using_cpu(request=400), [young]) == points


def test_a_pod_that_is_expected_on_a_node_counts_there_until_it_leaves():
    """Where the plan puts several pods, each finds the ones before it."""
    asked, state = simulator(using(PACKING), loads(n1=35, n2=10))
    answers = []
    for number in range(3):
        pod = using_cpu(f"p{number}")
        answers.append(asked.ask(pod).nodes)
        state.place(pod, answers[-1][0])

    assert answers == [("n2",), ("n2",), ("n1",)]  # 25 %, then 40 %, then 55 % beside 50 %
    state.remove(next(iter(state.residents[1])), "n2")
    assert asked.ask(using_cpu("p3")).nodes == ("n2",)


def test_a_node_is_known_by_its_name_alone():
    """The plugins do not look for an address."""
    node = make.node("n1", addresses={"InternalIP": "10.0.0.1"})
    found = loads(**{"10.0.0.1": 10, "n1:9100": 10})

    assert score(using(PACKING), found, using_cpu(), nodes=[node, make.node("n2")]) == 0
    assert score(using(RISK), found, using_cpu(), nodes=[node, make.node("n2")]) == 0


def test_the_last_mean_or_sample_of_cpu_is_packed():
    """Neither a deviation nor memory; other spellings do not count."""
    figures = [LoadFigure(*each) for each in (("CPU", "AVG", 90), ("CPU", "Latest", 10), ("CPU", "STD", 90))]
    others = [LoadFigure("Memory", "AVG", 90), LoadFigure("cpu", "AVG", 90), LoadFigure("CPU", "", 90)]

    assert score(using(PACKING), loads(n1=[*figures, *others]), using_cpu(limit=0)) == 55


@pytest.mark.parametrize(
    ("figures", "args", "points"),
    [
        ([("CPU", "AVG", 30), ("CPU", "STD", 10)], {}, 70),  # (0.3 + 0.2 + 0.1) / 2
        ([("CPU", "Latest", 30)], {}, 75),
        ([("CPU", "AVG", 30), ("CPU", "STD", 10)], {"safeVarianceMargin": 4}, 55),
        ([("CPU", "AVG", 30), ("CPU", "STD", 25)], {"safeVarianceSensitivity": 2}, 50),  # the root: 0.5
        ([("CPU", "AVG", 30), ("CPU", "STD", 25)], {"safeVarianceSensitivity": 0}, 75),
        ([("CPU", "AVG", 30), ("CPU", "STD", 100)], {"safeVarianceSensitivity": 0}, 25),
        ([("CPU", "AVG", 30), ("CPU", "STD", 10)], {"safeVarianceMargin": -1}, 70),
        ([("CPU", "AVG", 30), ("Memory", "AVG", 50)], {}, 69),  # memory: (0.5 + 0.125) / 2
        ([("Memory", "AVG", 50)], {}, 69),
        ([("CPU", "AVG", 150)], {}, 50),
        ([("Storage", "AVG", 1)], {}, 0),
        ([], {}, 0),
    ],
)
def test_the_riskier_resource_counts(figures, args, points):
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

    state = State(make.snapshot([make.node("n1"), make.node("n2")], [], namespaces={}), READ)
    loaded = load_scheduler_configuration(EXAMPLE.read_text(), source="example")
    answers = Simulator(state, profiles(state, read_configuration(loaded.document), ask=ask))

    assert answers.ask(make.pod("a", node="")).known
    assert asked == []
    pod = make.pod("b", node="", placement=Placement(scheduler="trimaran"))
    reason = "TargetLoadPacking goes by the real usage of nodes, which is not known: load-watcher does not answer"
    assert [answers.ask(pod).unknown, answers.ask(pod).unknown] == [reason, reason]
    assert asked == [LoadsWanted("LoadWatcher")]
    assert loaded.warnings == ()


def test_all_profiles_share_the_target_of_the_last():
    """The plugin keeps one for the whole scheduler."""
    profile = {"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": PACKING}]}}}
    configuration = read_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {**profile, "pluginConfig": [{"name": PACKING, "args": {"targetUtilization": 20}}]},
                {
                    **profile,
                    "schedulerName": "b",
                    "pluginConfig": [{"name": PACKING, "args": {"targetUtilization": 80}}],
                },
                {"schedulerName": "c", "pluginConfig": [{"name": PACKING, "args": {"targetUtilization": 10}}]},
            ],
        }
    )

    assert score(configuration, loads(n1=80), using_cpu(limit=0)) == 100


@pytest.mark.parametrize(
    ("args", "target"),
    [
        ({}, Target()),
        ({"targetUtilization": 0}, Target()),
        ({"targetUtilization": 70, "defaultRequestsMultiplier": "2"}, Target(70, 2.0)),
        ({"defaultRequests": {"cpu": "250m"}}, Target(assumed=250)),
        ({"defaultRequests": {"cpu": 2}}, Target(assumed=2000)),
        ({"defaultRequests": {"memory": "1Gi"}}, Target(assumed=0)),
    ],
)
def test_arguments_of_packing(args, target):
    """What makes no sense stands for the default; default requests that leave cpu out are none."""
    assert packing(args) == target


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
    with pytest.raises(ConfigurationError, match=message):
        packing(args)


def test_arguments_of_balancing():
    """Negative values stand for the default; a sensitivity of 0 does not."""
    given = {"safeVarianceMargin": -1, "safeVarianceSensitivity": 0}

    assert variation(given) == Variation(1.0, 0.0)
    assert variation({"safeVarianceSensitivity": -2}) == Variation()


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
    assert loads_wanted(PACKING, args) == LoadsWanted(source)
