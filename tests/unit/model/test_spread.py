"""Constraints as they apply to pods, and their domains."""

import msgspec
import pytest

from rebalancer.model.objects import PodAffinityTerm, SpreadConstraint
from rebalancer.model.selectors import NodeSelectorTerm, Requirement
from rebalancer.model.spread import Destinations, Topology, spreads
from tests.make import cluster, node, pod, selector

SSD = (NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),)),)


def constraint(**fields):
    return SpreadConstraint(1, "zone", "DoNotSchedule", selector(app="web"), **fields)


@pytest.mark.parametrize(
    ("fields", "spread", "number"),
    [
        pytest.param({}, {}, 1, id="the same constraint"),
        pytest.param({"priority": 5}, {}, 1, id="what a constraint does not look at"),
        pytest.param({"node_selector": {"disk": "ssd"}}, {}, 2, id="another nodeSelector"),
        pytest.param({"node_terms": SSD}, {}, 2, id="another required affinity"),
        pytest.param({"node_terms": SSD}, {"node_affinity_policy": "Ignore"}, 1, id="affinity that is ignored"),
        pytest.param({"tolerations": ["k"]}, {}, 1, id="tolerations that are ignored"),
        pytest.param({"tolerations": ["k"]}, {"node_taints_policy": "Honor"}, 2, id="tolerations that count"),
        pytest.param({"labels": {"hash": "2"}}, {"match_label_keys": ("hash",)}, 2, id="another hash"),
    ],
)
def test_constraints_that_mean_the_same_are_one(fields, spread, number):
    """Two pods declare it; they differ in these fields."""
    pods = [
        pod("p1", labels={"hash": "1"}, spread=(constraint(**spread),)),
        pod("p2", **{"labels": {"hash": "1"}, "spread": (constraint(**spread),), **fields}),
    ]

    assert len(spreads(pods, {"DoNotSchedule"})) == number


def test_domains_come_smallest_first_and_equal_ones_by_value():
    """Whatever the order of nodes and pods."""
    nodes = [node(f"n-{zone}", labels={"zone": zone}) for zone in "dcba"]
    pods = [pod("p1", node="n-d"), pod("p2", node="n-b"), pod("p3", node="n-b"), pod("p4", node="n-a")]
    (spread,) = spreads([pod("p", spread=(constraint(),))], {"DoNotSchedule"})

    domains = Topology(cluster(nodes, pods)).domains(spread, pods)
    assert [(each.value, len(each.pods)) for each in domains] == [("c", 0), ("a", 1), ("d", 1), ("b", 2)]


def test_pods_of_one_spec_may_fit_differently():
    """Their own node is no destination, and a namesake of a repelled pod is not repelled."""
    here = pod("p1", node="n1")
    on = cluster([node("n1"), node("n2")], [here])
    elsewhere = msgspec.structs.replace(here, name="p2", node="n2")
    assert _fit(on, elsewhere, here) == [True, False]

    namesake = pod("p1", node="n2", anti_affinity=(PodAffinityTerm("kubernetes.io/hostname", selector()),))
    other = msgspec.structs.replace(namesake, name="p2")
    assert _fit(on, namesake, other) == [True, False]


def _fit(on, *pods):
    destinations = Destinations(on, [each for each in on.nodes if each.name == "n1"])
    return [destinations.fit(each) for each in pods]
