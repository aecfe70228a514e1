"""A cycle in which everything happens that a report can tell."""

from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Owner
from rebalancer.engine.ledger import Ledger
from rebalancer.errors import StrategyError
from rebalancer.eviction.verdict import Failed, Unknown
from rebalancer.report.document import Finished, document
from tests.make import cluster, decide, node, pod
from tests.unit.engine.stand_ins import AnsweringSink, Greedy, Scripted

FILE = {"file": "cluster.json"}
LIVE = {"context": "prod", "server": "https://10.0.0.1"}


def fail(_cluster: Any, evict: Any) -> None:
    evict.warn("some nodes have no figures")
    raise StrategyError("no figures")


def eventful() -> tuple[Ledger, Cluster]:
    """Pods a and b go, c is refused, d fails, e may go; a second strategy warns and fails."""
    widget = Owner("Widget", "w", "1")
    pods = [pod("a"), pod("b", node="n2", owners=[widget]), pod("c", mirror=True), pod("d", node="n2"), pod("e")]
    on = cluster([node("n1"), node("n2"), node("n3", ready=False)], pods, warnings=("Pod default/x is malformed",))
    sink = AnsweringSink({"d": Failed("422: on fire"), "e": Unknown("500: in smoke")})
    return decide(on, Greedy(), Scripted(fail), sink=sink), on


def report(
    where: Any = None, *, dry_run: bool = True, warnings: tuple[str, ...] = (), **changes: Any
) -> dict[str, Any]:
    """The report of that cycle, with these keys replaced."""
    return document(Finished(*eventful(), dry_run, where or FILE, "newest", warnings)) | changes
