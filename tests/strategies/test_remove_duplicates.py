"""RemoveDuplicates: which replicas leave crowded nodes, in which order, and why (strategies.md 5)."""

import pytest

from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.remove_duplicates import RemoveDuplicates, RemoveDuplicatesArgs
from tests.make import cluster, decide, evicted, node, owner, pod, refused


def strategy(**args):
    return RemoveDuplicates(RemoveDuplicatesArgs.model_validate(args))


def replicas(on, count, prefix=None, **fields):
    """`n1-1` is the oldest of n1; without cpu, so that everything fits."""
    fields = {"cpu": None, "images": ("web:1",), **fields}
    name = prefix or f"{on}-"
    return [pod(f"{name}{each}", node=on, age=10_000 - each, **fields) for each in range(1, count + 1)]


def spread(*counts, nodes=None, **fields):
    """So many replicas of one owner on n1, n2, ..."""
    names = [f"n{each + 1}" for each in range(len(counts))]
    found = [each for name, count in zip(names, counts, strict=True) for each in replicas(name, count, **fields)]
    return cluster(nodes or [node(name) for name in names], found)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param((3, 0), ["n1-3"], id="at most two of three"),
        pytest.param((5, 3, 1), ["n1-4", "n1-5"], id="at most three of nine"),
        pytest.param((2, 0, 0), ["n1-2"], id="at most one of two"),
        pytest.param((2, 1), [], id="as even as can be"),
        pytest.param((1, 0), [], id="one replica"),
        pytest.param((4, 4), [], id="even"),
    ],
)
def test_no_node_keeps_more_than_the_upper_average(counts, expected):
    """The oldest replicas of a node stay."""
    assert evicted(decide(spread(*counts), strategy())) == expected


def test_the_reason_has_the_numbers():
    """How many there are here and in all, how many may be, and for how many nodes."""
    ledger = decide(spread(4, 1), strategy())

    because = "4 of 5 replicas of default/web on n1, at most 3 (2 nodes take them)"
    assert [text(entry.because) for entry in ledger.evictions] == [because]


def test_replicas_share_namespace_owner_and_images():
    """Pods that differ in one of these do not crowd each other; init containers are not looked at."""
    together = {"images": ("a", "b")}
    for_each = [
        pod("base", **together),
        pod("namespace", namespace="other", **together),
        pod("owner", owners="db", **together),
        pod("kind", owners=[owner("web", kind="StatefulSet")], **together),
        pod("images", images=("a", "c")),
        pod("fewer", images=("a",)),
        pod("twice", images=("a", "b", "b")),
    ]
    twin = pod("twin", images=("b", "a"), age=1)

    assert evicted(decide(cluster([node("n1"), node("n2")], for_each), strategy())) == []
    assert evicted(decide(cluster([node("n1"), node("n2")], [*for_each, twin]), strategy())) == ["twin"]


def test_namespaces_and_kinds_of_owners():
    """Pods of other namespaces, and those with any owner of an excluded kind, are not looked at."""
    two = [owner("web"), owner("job", kind="Job")]
    on = [*replicas("n1", 3, "dev-", namespace="dev"), *replicas("n1", 3, "test-", namespace="test", owners=two)]

    def run(**args):
        return evicted(decide(cluster([node("n1"), node("n2")], on), strategy(**args)))

    assert run() == ["dev-3", "test-3"]
    assert run(namespaces={"include": ["dev"]}) == ["dev-3"]
    assert run(namespaces={"exclude": ["dev"]}) == ["test-3"]
    assert run(excludeOwnerKinds=["Job"]) == ["dev-3"]
    assert run(excludeOwnerKinds=["ReplicaSet"]) == []


def test_pods_without_an_owner_are_left_alone():
    """Even where the protection of bare pods does not apply."""
    evictor = {"podProtections": {"defaultDisabled": ["FailedBarePods"]}}
    on = spread(3, 0, owners=None, phase="Pending", evict_annotation=True)

    assert evicted(decide(on, strategy(), evictor=evictor)) == []


def test_protected_replicas_are_invisible():
    """Two protected replicas on n2 do not count: two are left, for two nodes."""
    on = cluster([node("n1"), node("n2")], [*replicas("n1", 2), *replicas("n2", 2, local_storage=True)])
    ledger = decide(on, strategy())

    assert evicted(ledger) == ["n1-2"]
    assert refused(ledger) == {}


def test_completed_replicas_do_not_count():
    """They take no room."""
    assert evicted(decide(spread(3, 0, phase="Succeeded"), strategy())) == []


def test_with_node_fit_what_fits_nowhere_does_not_count():
    """The other node is too small for the large replicas, so the small ones are alone."""
    nodes = [node("n1"), node("n2", cpu="1")]
    on = [*replicas("n1", 3, "large-", cpu="1100m"), *replicas("n1", 2, "small-", cpu="100m")]

    assert evicted(decide(cluster(nodes, on), strategy(), evictor={"nodeFit": True})) == ["small-2"]


@pytest.mark.parametrize(
    ("third", "tolerations", "expected"),
    [
        pytest.param({}, (), ["n1-3", "n1-4"], id="three nodes take them"),
        pytest.param({"unschedulable": True}, (), ["n1-3", "n1-4"], id="a cordoned node counts"),
        pytest.param({"taints": ["a:NoSchedule"]}, (), ["n1-4"], id="a hard taint keeps it out"),
        pytest.param({"taints": ["a:NoExecute"]}, (), ["n1-4"], id="and so does NoExecute"),
        pytest.param({"taints": ["a:PreferNoSchedule"]}, (), ["n1-3", "n1-4"], id="a preference does not"),
        pytest.param({"taints": ["a:NoSchedule"]}, ["a"], ["n1-3", "n1-4"], id="nor a tolerated taint"),
    ],
)
def test_which_nodes_take_them_by_taints(third, tolerations, expected):
    """Four and one replicas: at most two a node on three nodes, three on two."""
    on = spread(4, 1, 0, nodes=[node("n1"), node("n2"), node("n3", **third)], tolerations=tolerations)

    assert evicted(decide(on, strategy())) == expected


def one_of(key, *values, operator="In"):
    return NodeSelectorTerm(expressions=(Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"node_selector": {"pool": "a"}}, ["n1-4"], id="node selector"),
        pytest.param({"node_terms": (one_of("pool", "a"),)}, ["n1-4"], id="required affinity"),
        pytest.param({"node_terms": (one_of("pool", operator="DoesNotExist"),)}, [], id="one node alone"),
        pytest.param({"node_terms": (one_of("pool", "x"),)}, [], id="none"),
        pytest.param(
            {"node_terms": (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("n1", "n3")),)),)},
            ["n1-4"],
            id="by name",
        ),
    ],
)
def test_which_nodes_take_them_by_labels(fields, expected):
    """Of five replicas two nodes hold at most three each; with fewer than two nodes nothing happens."""
    nodes = [node("n1", labels={"pool": "a"}), node("n2", labels={"pool": "a"}), node("n3")]
    ledger = decide(spread(4, 1, 0, nodes=nodes, **fields), strategy())

    assert evicted(ledger) == expected
    assert ledger.runs[0].error is None


def test_replicas_that_differ_bring_the_nodes_of_each():
    """One kind may go to n1 and n2, the other to n1 and n3: three nodes in all; one that only n4 takes adds none."""
    nodes = [node(f"n{i}", labels={"at": f"{i}"}) for i in (1, 2, 3, 4)]
    some = [
        pod("original", age=99),
        pod("to-2", age=9, node_terms=(one_of("at", "1", "2"),)),
        pod("to-3", age=8, node_terms=(one_of("at", "1", "3"),)),
        pod("to-4", age=7, node_terms=(one_of("at", "4"),)),
        pod("elsewhere", node="n2"),
    ]
    ledger = decide(cluster(nodes, some), strategy())

    assert evicted(ledger) == ["to-3", "to-4"]
    assert "at most 2 (3 nodes take them)" in text(ledger.evictions[0].because)


def test_a_pod_with_two_owners_goes_once():
    """It counts with each of them; what has gone with the first is not asked for again."""
    ledger = decide(spread(5, 3, 1, owners=[owner("blue"), owner("green")]), strategy())

    assert evicted(ledger) == ["n1-4", "n1-5"]
    assert ledger.refusals == []


def test_limits():
    """A node at its limit ends this owner there and not elsewhere, the namespace limit ends nothing, the total all."""

    def fresh():
        return spread(4, 4, 0, 0)

    on_each = decide(spread(5, 5, 0, 0, 0), strategy(), limits=Limits(per_node=1))
    assert evicted(on_each) == ["n1-3", "n2-3"]
    assert refused(on_each) == {"n1-4": "NodeLimit", "n2-4": "NodeLimit"}
    one = decide(fresh(), strategy(), limits=Limits(per_namespace=1))
    assert evicted(one) == ["n1-3"]
    assert refused(one) == dict.fromkeys(("n1-4", "n2-3", "n2-4"), "NamespaceLimit")
    assert evicted(decide(fresh(), strategy(), limits=Limits(total=3))) == ["n1-3", "n1-4", "n2-3"]


def test_the_owners_come_in_the_order_of_their_names():
    """By namespace, kind and name, so that a limit hits the same ones every time."""
    on = [*replicas("n1", 3, "z-", owners="z"), *replicas("n2", 3, "a-", owners="a")]

    assert evicted(decide(cluster([node("n1"), node("n2")], on), strategy())) == ["a-3", "z-3"]


def test_include_and_exclude_do_not_go_together():
    """As everywhere."""
    with pytest.raises(ValueError, match="either include or exclude"):
        RemoveDuplicatesArgs.model_validate({"namespaces": {"include": ["a"], "exclude": ["b"]}})
