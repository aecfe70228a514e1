"""Constraints as they apply to pods, and their domains."""

import msgspec
import pytest

from rebalancer.cluster.pod import SpreadConstraint
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.scheduling.spread import Domains, SpreadDomain, Topology, spreads
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


def test_replicas_of_one_spec_may_differ_in_the_labels_that_count():
    """Equal specs are looked at once only where the labels are equal too."""
    one = pod("p1", labels={"hash": "1"}, spread=(constraint(match_label_keys=("hash",)),))
    others = [msgspec.structs.replace(one, name="p2"), msgspec.structs.replace(one, name="p3", labels={"hash": "2"})]

    assert len(spreads([one, *others], {"DoNotSchedule"})) == 2


def test_domains_come_smallest_first_and_equal_ones_by_value():
    """Whatever the order of nodes and pods."""
    nodes = [node(f"n-{zone}", labels={"zone": zone}) for zone in "edcba"]
    pods = [pod("p1", node="n-d"), pod("p2", node="n-b"), pod("p3", node="n-b"), pod("p4", node="n-a")]
    (spread,) = spreads([pod("p", spread=(constraint(),))], {"DoNotSchedule"})

    domains = Topology(cluster(nodes, pods)).domains(spread, pods)
    assert [(each.value, len(each.pods)) for each in domains] == [("c", 0), ("e", 0), ("a", 1), ("d", 1), ("b", 2)]


@pytest.mark.parametrize(("sizes", "below"), [((1, 2, 3, 4), ["n-a", "n-b"]), ((1, 2, 2, 3), ["n-a"])])
def test_pods_should_go_below_the_average(sizes, below):
    """To the nodes of domains that have fewer pods than two and a half, not of those at the average."""
    (spread,) = spreads([pod("p", spread=(constraint(),))], {"DoNotSchedule"})
    nodes = [node(f"n-{zone}", labels={"zone": zone}) for zone in "abcd"]
    domains = [SpreadDomain(each.name, [each], ["pod"] * size) for each, size in zip(nodes, sizes, strict=True)]

    assert [each.name for each in Domains(spread, domains, len(domains)).below_average()] == below
