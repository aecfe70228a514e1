"""What samples do not show: how much it raises, and when it is only told; and which neighbours are heavy."""

from dataclasses import replace

import pytest
from msgspec import Raw

from rebalancer.recommendation.findings import heavy_neighbours
from rebalancer.recommendation.rules import MEBI, Need
from rebalancer.recommendation.workloads import ContainerCircumstances, Workload, adjusted
from rebalancer.usage.history import RangeAnswer, RangeSeries, Span
from rebalancer.usage.past import THROTTLING_QUERY, Trouble, read_trouble
from tests import make

NEED = Need(75, 100, 75 * MEBI, 100 * MEBI, "the rule")


@pytest.mark.parametrize(
    ("limit", "days", "now", "request_", "raised", "told"),
    [
        (100, 3, 200, 210, 280, "on 3 days: its limit of cpu raised to 280m"),
        (100, 2, 200, 75, 100, "on 2 days"),
        (100, 1, 200, 75, 100, "on 1 day"),
        (100, 3, 50, 75, 100, "on 3 days"),
        (None, 9, 200, 75, 280, "on 9 days: its limit of cpu raised to 280m"),
    ],
)
def test_throttling_on_three_days_raises_the_limit(limit, days, now, request_, raised, told):
    """On fewer days, or where the rule asks for more anyway, it is only told."""
    asked = replace(NEED, cpu_limit=limit)
    need, remarks = adjusted(asked, ContainerCircumstances(throttled=0.4, throttled_days=days), now, 0)

    assert (need.cpu_request, need.cpu_limit) == (request_, raised)
    assert remarks == (f"throttled in 40 % of its cpu periods {told}",)


def test_a_container_is_throttled_in_all_its_periods_at_most():
    """Not where the server counts none, and divides by nothing."""
    name = b'{"namespace": "shop", "pod": "web-0", "container": "app"}'
    series = RangeSeries(Raw(name), Raw(b'[[3600, "+Inf"]]'))

    found = read_trouble(lambda query, *_: RangeAnswer([series] * (query == THROTTLING_QUERY)), Span(0, 7200, 300))

    assert found.throttled == {("shop", "web-0", "app"): {0: 1.0}}


def test_the_days_of_all_pods_of_a_workload_count_with_their_worst_hours():
    one, two, other = (("shop", name, "app") for name in ("web-0", "web-1", "db-0"))
    trouble = Trouble(throttled={one: {0: 0.5, 1: 0.3}, two: {0: 0.4}, other: {2: 0.9}})

    assert trouble.throttling({one, two}) == (pytest.approx(0.4), 2)
    assert trouble.throttling({two}) == (0.4, 1)


def test_heavy_neighbours_are_told_with_their_namespaces_and_with_themselves():
    """A quarter of four cores is 1000m; DaemonSets are everywhere and nobody's neighbour."""
    pods = [
        make.pod("web-0", "n1", labels={"app": "web", "pod-template-hash": "5d9"}),
        make.pod("web-1", "n1", labels={"app": "web", "pod-template-hash": "5d9"}),
        make.pod("db-0", "n1", namespace="data", labels={"app": "db"}),
        make.pod("light", "n1", labels={"app": "light"}),
        make.pod("agent", "n1", labels={"app": "agent"}),
    ]
    web, db = Workload("default", "Deployment", "web"), Workload("data", "StatefulSet", "db")
    owners = [web, web, db, Workload("default", "Pod", "light"), Workload("default", "DaemonSet", "agent")]
    usage = dict(zip((pod.key for pod in pods), ({"cpu": cpu} for cpu in (1000, 2000, 1500, 999, 2000)), strict=True))

    found = heavy_neighbours(
        make.snapshot([make.node("n1")], pods), dict(zip((pod.key for pod in pods), owners, strict=True)), usage
    )

    assert [(each.first, each.other, each.nodes) for each in found] == [(db, web, ("n1",)), (web, web, ("n1",))]
    terms = [each.affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0] for each in found]
    own = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    assert [each["podAffinityTerm"] for each in terms] == [{**own, "namespaces": ["default"]}, own]
