"""How full nodes are: percentages, means and classes."""

from collections.abc import Mapping
from typing import Any, NoReturn

from rebalancer.balancing.utilization import Bounds, NodeUtilization
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import METRIC_RESOURCE, parse_resources
from rebalancer.errors import StrategyError
from rebalancer.policy.usage import MetricsProvider, MetricsUtilization
from rebalancer.policy.values import Policy
from rebalancer.usage.providers import Providers
from tests.conformance.answers import Answer, acceptance, equal
from tests.conformance.corpus import Case
from tests.conformance.snapshots import cluster
from tests.fake_servers import FakePrometheus

_Amounts = Mapping[str, str | None]


def percentages(case: Case) -> Answer:
    load = _load("node", case["usage"], case["capacity"])
    return equal(_percent(load), case["expected"])


def sorted_nodes(case: Case) -> Answer:
    loads = [_load(each["node"], each["usage"], {}) for each in case["node_usages"]]
    order = sorted(loads, key=lambda load: load.total if case["ascending"] else -load.total)
    return equal([load.node.name for load in order], case["expected_order"])


def average(case: Case) -> Answer:
    loads = _loads(case["usage"], case["limits"])
    none = dict.fromkeys((name for load in loads for name in load.used), 0.0)
    return equal(Bounds(none, none, deviation=True).of(loads).low, case["expected"])


def sums(case: Case) -> Answer:
    """A mean of one node is its own percentage."""
    loads = [_load("node", case["data"], dict.fromkeys(case["data"], "100"))]
    none = dict.fromkeys(case["data"], 0.0)
    return equal([Bounds(none, each, deviation=True).of(loads).high for each in case["deviations"]], case["expected"])


def classes_around_mean(case: Case) -> Answer:
    loads = _loads(case["usage"], case["totals"])
    given = case["deviation_thresholds"]
    band = Bounds(given["low"], given["high"], deviation=True).of(loads)
    under = {load.node.name: _percent(load) for load in loads if load.within(band.low)}
    over = {load.node.name: _percent(load) for load in loads if not load.within(band.high)}
    return equal([under, over], case["expected"])


def classes(case: Case) -> Answer:
    """The comparers are the test's own (INDEX.md); what is under test is the percentages they compare."""
    observed: list[dict[str, Any]] = [{} for _ in case["classifiers"]]
    for load in _loads(case["usage"], case["totals"]):
        percent = _percent(load)
        for number, side in enumerate(case["classifiers"]):
            threshold = case["thresholds"][load.node.name][number]
            signs = {int(percent[name] - bound) for name, bound in threshold.items()}
            if all(sign < 0 if side == "below" else sign > 0 for sign in signs):
                observed[number][load.node.name] = percent
                break
    return equal(observed, case["expected"])


def _loads(usage: Mapping[str, _Amounts], capacities: Mapping[str, _Amounts]) -> list[NodeUtilization]:
    """Return the loads, none above its capacity: the normalizer of these tests cuts off at 100 %, no plugin does."""
    loads = [_load(name, amounts, capacities[name]) for name, amounts in usage.items()]
    for load in loads:
        load.used = {name: min(used, load.node.allocatable.get(name, used)) for name, used in load.used.items()}
    return loads


def _load(name: str, usage: _Amounts, capacity: _Amounts) -> NodeUtilization:
    amounts = {name: text for name, text in capacity.items() if text is not None}
    used = {name: text for name, text in usage.items() if text is not None}
    return NodeUtilization(Node(name=name, allocatable=parse_resources(amounts)), parse_resources(used))


def _percent(load: NodeUtilization) -> dict[str, float]:
    return {name: percent for name in load.used if (percent := load.percent(name)) is not None}


def shares(case: Case) -> Answer:
    """Ask a server that answers as the case says for how full its nodes are, as LowNodeUtilization would."""
    kind = case.get("prometheus_result_type", "vector")
    with FakePrometheus(case["prometheus_samples"], kind) as server:
        provider = MetricsProvider.model_validate({"source": "Prometheus", "prometheus": {"url": server.url}})
        providers = Providers(Policy(metrics_providers=(provider,)), _never, _never, service_account=None)
        wanted = MetricsUtilization.model_validate({"source": "Prometheus", "prometheus": {"query": case["query"]}})
        try:
            found = providers.measure(cluster(case), wanted)
        except StrategyError as error:
            return acceptance(False, case, str(error))
    return equal({name: amounts[METRIC_RESOURCE] for name, amounts in found.nodes.items()}, case["expected"])


def _never(*_: object) -> NoReturn:
    raise AssertionError
