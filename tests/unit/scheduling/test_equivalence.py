"""Nodes that a question cannot tell apart are answered for together."""

from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.scheduling.equivalence import Demands, EquivalentNodes, asked_labels
from tests.make import node, toleration

IN_A = Requirement("zone", "In", ("a",))


def test_only_taints_and_labels_that_are_asked_about_tell_nodes_apart() -> None:
    """Each node has a serial number of its own; a missing label is a value like others."""
    labels = [{"zone": "a"}, {"zone": "b"}, {"zone": "a"}, {}, {"zone": "a"}]
    nodes = EquivalentNodes(
        node(f"n{number}", labels={**each, "serial": str(number)}, taints=["spot:NoSchedule"] if number == 4 else [])
        for number, each in enumerate(labels)
    )

    assert nodes.groups(frozenset(("zone",))) == [[0, 2], [1], [3], [4]]
    assert nodes.groups(frozenset()) == [[0, 1, 2, 3], [4]]
    assert nodes.groups(None) == [[0], [1], [2], [3], [4]]


def test_a_term_that_names_nodes_tells_each_from_the_others() -> None:
    """Labels of the selector and of all terms count, unless a term asks for fields."""
    by_label, by_name = NodeSelectorTerm((IN_A,)), NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n1",)),))

    assert asked_labels({"tier": "gold"}, [by_label]) == {"tier", "zone"}
    assert asked_labels(None, [by_label, by_name]) is None
    assert asked_labels(None, []) == frozenset()


def test_specs_have_the_same_number_only_if_they_ask_the_same() -> None:
    """The order of tolerations does not matter, nor what else a spec says."""
    demands = Demands()
    one = PodSpec(requests={}, tolerations=(toleration("a"), toleration("b")))
    same = PodSpec(requests={"cpu": 5}, tolerations=(toleration("b"), toleration("a")))
    others = [
        PodSpec(requests={}, tolerations=(toleration("a"),)),
        PodSpec(requests={}, node_selector={"zone": "a"}),
        PodSpec(requests={}, node_terms=(NodeSelectorTerm((IN_A,)),)),
        PodSpec(requests={}, node_terms=()),
        PodSpec(requests={}),
    ]

    assert demands.of(one) == demands.of(same)
    assert len({demands.of(each) for each in (one, *others)}) == 6
