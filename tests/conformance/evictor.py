"""DefaultEvictor: its filters, protections, limits and sink."""

import contextlib
import json

from rebalancer.app.policies import known_plugins
from rebalancer.engine.budget import Limits
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.evictor_args import DefaultEvictorArgs
from rebalancer.engine.gate import DrySink, Gate, Sink, StrategyGate
from rebalancer.engine.ledger import Ledger
from rebalancer.engine.protections import ABSOLUTE
from rebalancer.errors import CycleOver
from rebalancer.model.cluster import Cluster
from rebalancer.model.objects import SYSTEM_CRITICAL_PRIORITY, Pod
from rebalancer.model.verdict import Failed, Verdict
from rebalancer.policy import decode_policy
from tests.conformance.answers import Answer, equal
from tests.conformance.corpus import Case
from tests.conformance.snapshots import cluster, pods_by_key, snapshot

_NAME = "DefaultEvictor"
#: What the reference's limit errors say, by the cause the gate gives.
_LIMITS = {"TotalLimit": "per a descheduling cycle", "NodeLimit": "per node", "NamespaceLimit": "per namespace"}


def filters(case: Case) -> Answer:
    on = cluster(case)
    gate = _gate(on, DrySink(), Limits())
    evict = StrategyGate(gate, Evictor(on, _args_of_policy(case)), "profile", "strategy")
    asked = {"Filter": evict.passes_filter, "PreEvictionFilter": evict.passes_pre_eviction_filter}
    pods = pods_by_key(on)
    expected = {
        f"{function} {each['namespace']}/{each['pod']}": each[function]
        for each in case.get("observed_checks") or ()
        for function in asked
    }
    expected |= {f"{each['function']} {each['namespace']}/{each['pod']}": each["expected"] for each in case["checks"]}
    observed = {}
    for key in expected:
        function, _, name = key.partition(" ")
        namespace, _, name = name.partition("/")
        observed[key] = asked[function](pods[namespace, name])
    return equal(observed, expected)


def initialise(case: Case) -> Answer:
    on = cluster(case)
    args = _args_of_policy(case)
    return equal(bool(Evictor(on, args) and Evictor(on, args)), case["expected_ok"])


def protections(case: Case) -> Answer:
    return equal(sorted(_args(case).protections()), sorted(case["expected"]))


def storage_classes(case: Case) -> Answer:
    return equal(
        sorted(_args(case).protected_storage_classes()), sorted(each["name"] for each in case["expected"] or ())
    )


def pod_types(case: Case) -> Answer:
    """Compare by the protection that would name the type."""
    expected = case["expected"]
    observed = {
        each.name: {kind: value for kind, value in _types(each).items() if kind in expected[each.name]}
        for each in snapshot(case).pods
        if each.name in expected
    }
    return equal(observed, expected)


def limits(case: Case) -> Answer:
    """Ask for one eviction under limits, with a sink that fails as the case injects it; Events are told elsewhere."""
    given = case["limits"]
    maximums = Limits(
        given["maxNoOfPodsToEvictPerNode"],
        given["maxNoOfPodsToEvictPerNamespace"],
        given["maxNoOfPodsToEvictTotal"],
    )
    ledger = _ask(case, maximums)
    counts = {"count": len(ledger.evictions), "nodes": {case["evict"]["spec"]["nodeName"]: len(ledger.evictions)}}
    expected = {"count": case["expected_evicted_count"], "nodes": case["expected_node_evictions"]}
    return equal(counts | {"error": _error(ledger)}, expected | {"error": _said(case["expected_error"])})


def evict(case: Case) -> Answer:
    return equal(len(_ask(case, Limits()).evictions) == 1, case["expected_ok"])


def _args(case: Case) -> DefaultEvictorArgs:
    return DefaultEvictorArgs.model_validate(case["evictor"])


def _args_of_policy(case: Case) -> DefaultEvictorArgs:
    policy = decode_policy(json.dumps(case["policy"]), known_plugins(), source="case").policy
    args = policy.profiles[0].args[_NAME]
    assert isinstance(args, DefaultEvictorArgs)
    return args


def _types(pod: Pod) -> dict[str, bool]:
    absolute = {each.name for each in ABSOLUTE if each.refusal(pod)}
    return {
        "mirror": "MirrorPods" in absolute,
        "static": "StaticPods" in absolute,
        "critical": (pod.spec.priority or 0) >= SYSTEM_CRITICAL_PRIORITY,
        "daemonset": any(owner.kind == "DaemonSet" for owner in pod.owners),
        "localStorage": pod.spec.local_storage,
    }


class _FailingSink:
    """Answers every eviction with the error of the case."""

    def __init__(self, error: str) -> None:
        self._error = error

    def evict(self, pod: Pod, profile: str, strategy: str, because: str) -> Verdict:
        return Failed(self._error)


def _gate(on: Cluster, sink: Sink, maximums: Limits) -> Gate:
    return Gate(on, maximums, sink, Ledger())


def _ask(case: Case, maximums: Limits) -> Ledger:
    """Ask for the case's pod; its annotation lifts the protections, which the reference's test leaves out too."""
    metadata = case["evict"]["metadata"] | {"annotations": {"descheduler.alpha.kubernetes.io/evict": "true"}}
    on = cluster({"now": case["now"], "nodes": case["nodes"], "pods": [case["evict"] | {"metadata": metadata}]})
    injected = case["injected_eviction_error"]
    gate = _gate(on, _FailingSink(str(case["expected_error"])) if injected else DrySink(), maximums)
    with contextlib.suppress(CycleOver):
        gate.ask(Evictor(on, DefaultEvictorArgs()), "profile", "strategy", on.snapshot.pods[0], "the case says so")
    return gate.ledger


def _error(ledger: Ledger) -> str | None:
    for entry in ledger.refusals:
        return _LIMITS.get(entry.verdict.by, entry.verdict.by)
    return next((entry.verdict.error for entry in ledger.failures), None)


def _said(error: str | None) -> str | None:
    return next((words for words in _LIMITS.values() if error and words in error), error)
