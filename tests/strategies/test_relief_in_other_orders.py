"""The report names where replacements land in other orders than that of the evictions; the plan counts on one."""

from typing import Any

from rebalancer.eviction.verdict import Unknown
from rebalancer.scheduling.worlds import Worlds
from tests import make
from tests.make import decide
from tests.measured import cluster, low, low_anywhere, node, pod
from tests.unit.engine.stand_ins import AnsweringSink


def hot(*names: str, others: int = 2, **snapshot: Any) -> Any:
    """n1 at 80 of 50, 20 of which are of each named pod, of a StatefulSet; n2 has the most room, n3 a little less."""
    nodes = [node(f"n{number}") for number in range(1, others + 2)]
    goes = [pod(name, cpu="1", owners=(make.owner(name, "StatefulSet"),)) for name in names]
    stays = [pod("rest", cpu="6", owners=(make.owner("agent", "DaemonSet"),)), pod("beside", on="n3", cpu="500m")]
    usage = {**dict.fromkeys(names, 20), "rest": 80 - 20 * len(names), "beside": 5}
    return cluster(nodes, [*goes, *stays], usage, snapshot=snapshot)


def named(ledger: Any) -> dict[str, tuple[str, ...]]:
    return {each.pod.name: each.destination.nodes for each in (*ledger.evictions, *ledger.unknown)}


def test_both_nodes_are_named_where_the_one_evicted_later_may_come_first() -> None:
    """In turn db-a lands on n2; but the old db-b may end first, and its replacement takes n2."""
    assert named(decide(hot("db-a", "db-b"), low())) == {"db-a": ("n2", "n3"), "db-b": ("n2", "n3")}


def test_pods_that_may_have_gone_count_as_gone() -> None:
    sink = AnsweringSink(dict.fromkeys(("db-a", "db-b"), Unknown("no answer")))
    ledger = decide(hot("db-a", "db-b"), low(), sink=sink)

    assert named(ledger) == {"db-a": ("n2", "n3"), "db-b": ("n2", "n3")}
    assert not ledger.evictions


def test_one_that_goes_alone_lands_where_it_was_foreseen() -> None:
    """There is no other order."""
    assert named(decide(hot("db-a"), low(targets=60))) == {"db-a": ("n2",)}


def test_of_a_scheduler_that_nobody_knows_no_order_is_played() -> None:
    """The plan counts on a node with room, and names that one."""
    on = hot("db-a", "db-b")

    assert {len(nodes) for nodes in named(decide(on, low_anywhere())).values()} == {1}
    assert on.index(Worlds).questions == 0
