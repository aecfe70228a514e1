"""Builders: a test says only what it is about, the rest has a default."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Owner, Pod, PodSpec
from rebalancer.cluster.resources import parse_resources
from rebalancer.cluster.selectors import LabelSelector, Requirement
from rebalancer.cluster.snapshot import DisruptionBudget, Snapshot
from rebalancer.cluster.taints import Taint, Toleration
from rebalancer.engine.cycle import ProfilePlan, run_cycle
from rebalancer.engine.gate import Sink
from rebalancer.engine.ledger import Ledger
from rebalancer.engine.limits import Limits
from rebalancer.engine.patience import Recollection
from rebalancer.eviction.causes import Code
from rebalancer.eviction.steering import Hold, Steer
from rebalancer.eviction.verdict import Refused
from rebalancer.eviction.verdict import refused as refusal
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.report.words import text

NOW = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)


def owner(name: str, kind: str = "ReplicaSet") -> Owner:
    return Owner(kind=kind, name=name, uid=f"{kind}-{name}", controller=True)


def taint(text: str) -> Taint:
    """`key=value:Effect` or `key:Effect`."""
    label, _, effect = text.partition(":")
    key, _, value = label.partition("=")
    return Taint(key, value, effect or "NoSchedule")


def toleration(text: str) -> Toleration:
    """`key=value:Effect`, `key:Effect`, `key` (any value) or `*` (everything)."""
    label, _, effect = text.partition(":")
    key, equals, value = label.partition("=")
    return Toleration("" if key == "*" else key, "Equal" if equals else "Exists", value, effect)


def selector(**labels: str) -> LabelSelector:
    return LabelSelector(tuple(sorted(Requirement(key, "In", (value,)) for key, value in labels.items())))


def node(
    name: str,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    **fields: Any,
) -> Node:
    allocatable = parse_resources({"cpu": cpu, "memory": memory, "pods": str(pods), **fields.pop("extra", {})})
    return Node(
        name=name,
        labels={"kubernetes.io/hostname": name, **(labels or {})},
        taints=tuple(taint(each) for each in taints),
        allocatable=allocatable,
        capacity=allocatable,
        **fields,
    )


#: What a pod says itself is not set through its spec.
_SPEC_FIELDS = set(PodSpec.__struct_fields__) - set(Pod.__struct_fields__)


def pod(
    name: str,
    node: str = "n1",
    namespace: str = "default",
    cpu: str | None = "100m",
    memory: str | None = None,
    age: float = 3600,
    owners: Iterable[Owner] | str | None = "web",
    tolerations: Iterable[str] = (),
    requests: Mapping[str, str] | None = None,
    **fields: Any,
) -> Pod:
    """`age` in seconds; `owners` a ReplicaSet's name, owners, or None; fields of the spec and of the pod by name."""
    amounts = {key: text for key, text in (("cpu", cpu), ("memory", memory)) if text} | dict(requests or {})
    spec = {key: fields.pop(key) for key in list(fields) if key in _SPEC_FIELDS}
    spec.setdefault("requests", parse_resources(amounts))
    spec.setdefault("requested", frozenset(amounts))
    if isinstance(owners, str):
        owners = (owner(owners),)
    born = NOW - timedelta(seconds=age)
    state = {"phase": "Running", "ready": True, "qos": "Burstable", "started": born}
    defaults = {"uid": f"uid-{namespace}-{name}", **state}
    return Pod(
        namespace=namespace,
        name=name,
        node=node,
        created=born,
        owners=tuple(owners or ()),
        spec=PodSpec(tolerations=tuple(toleration(each) for each in tolerations), **spec),
        **{**defaults, **fields},
    )


def pdb(name: str, allowed: int, namespace: str = "default", **fields: Any) -> DisruptionBudget:
    """A PDB over labels app=<name>."""
    return DisruptionBudget(
        **{
            "namespace": namespace,
            "name": name,
            "selector": selector(app=name),
            "disruptions_allowed": allowed,
            "current_healthy": 0,
            "desired_healthy": 1,
            **fields,
        }
    )


def snapshot(nodes: Iterable[Node], pods: Iterable[Pod], **fields: Any) -> Snapshot:
    return Snapshot(now=NOW, nodes=tuple(nodes), pods=tuple(pods), **fields)


def cluster(nodes: Iterable[Node], pods: Iterable[Pod], **fields: Any) -> Cluster:
    return Cluster(snapshot(nodes, pods, **fields))


def decide(
    on: Cluster,
    *strategies: Any,
    evictor: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),  # noqa: B008  immutable
    sink: Sink | None = None,
    steer: Steer | None = None,
    hold: Hold | None = None,
    recollection: Recollection | None = None,
    most_in_flight: int = 1,
    only: Collection[str] | None = None,
) -> Ledger:
    """Run strategies (instances) in one profile `test` and return the ledger; `evictor` as a policy spells it.

    `only` are UIDs of the pods that may go, as a plan names them.
    """
    plan = ProfilePlan(
        "test",
        DefaultEvictorArgs.model_validate(evictor or {}),
        tuple(each for each in strategies if each.point == "deschedule"),
        tuple(each for each in strategies if each.point == "balance"),
        only=only,
    )
    parts = {"steer": steer, "hold": hold, "recollection": recollection, "most_in_flight": most_in_flight}
    return run_cycle(on, [plan], limits, sink, timer=lambda: 0.0, **parts)


def evicted(ledger: Ledger) -> list[str]:
    """Names of the pods granted, in order."""
    return [entry.pod.name for entry in ledger.evictions]


def refused(ledger: Ledger) -> dict[str, str]:
    """By name of the pod: the first cause of its refusal."""
    return {entry.pod.name: entry.verdict.by for entry in ledger.refusals}


def why(ledger: Ledger) -> dict[str, str]:
    """By name of the pod: why it stays, in words."""
    return {entry.pod.name: text(entry.verdict.cause) for entry in ledger.refusals}


def because(ledger: Ledger) -> dict[str, str]:
    """By name of the pod: why it goes, in words."""
    return {entry.pod.name: text(entry.because) for entry in ledger.evictions}


def lands(ledger: Ledger) -> dict[str, str]:
    """By name of the pod: the node on which the plan counts."""
    return {entry.pod.name: entry.destination.nodes[0] for entry in ledger.evictions}


def says_no(code: str, message: str) -> Refused:
    """A refusal in the words of a server."""
    return refusal(Code(code), message=message)
