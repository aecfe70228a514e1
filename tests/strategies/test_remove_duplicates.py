"""RemoveDuplicates: which replicas leave crowded nodes, in which order, and why (strategies.md 5)."""

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


def test_the_reason_has_the_numbers():
    """How many there are here and in all, how many may be, and for how many nodes."""
    ledger = decide(spread(4, 1), strategy())

    because = "4 of 5 replicas of default/web on n1, at most 3 (2 nodes take them)"
    assert [text(entry.because) for entry in ledger.evictions] == [because]


def test_a_pod_with_two_owners_goes_once():
    """It counts with each of them; what has gone with the first is not asked for again."""
    ledger = decide(spread(5, 3, 1, owners=[owner("blue"), owner("green")]), strategy())

    assert evicted(ledger) == ["n1-4", "n1-5"]
    assert ledger.refusals == []


def test_owners_come_by_name():
    """Whatever their pods are called."""
    pods = [*replicas("n1", 3, "a", owners="web"), *replicas("n1", 3, "b", owners="db")]

    assert evicted(decide(cluster([node("n1"), node("n2")], pods), strategy())) == ["b3", "a3"]


def test_the_order_of_images_does_not_matter():
    pods = [
        pod(f"p{number}", cpu=None, age=9 - number, images=images)
        for number, images in enumerate((("a", "b"), ("b", "a"), ("a", "b")))
    ]

    assert evicted(decide(cluster([node("n1"), node("n2")], pods), strategy())) == ["p2"]


def test_duplicates_that_differ_bring_the_nodes_of_each():
    """Two nodes take each of six, and three take them together: on each of these two may be."""
    nodes = [node("n1", labels={"a": "", "b": ""}), node("n2", labels={"a": ""}), node("n3", labels={"b": ""})]
    pods = [
        pod(f"p{number}", cpu=None, age=9 - number, images=("a",), node_selector={"ab"[number % 2]: ""})
        for number in range(6)
    ]

    assert evicted(decide(cluster(nodes, pods), strategy())) == ["p2", "p3", "p4", "p5"]


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
