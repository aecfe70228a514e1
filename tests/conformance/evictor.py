"""DefaultEvictor: its filters, protections and arguments."""

import json

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import SYSTEM_CRITICAL_PRIORITY, Pod
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.gate import Gate
from rebalancer.engine.ledger import Ledger
from rebalancer.engine.limits import Limits
from rebalancer.engine.protections import absolute
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.policy.load import load_policy
from rebalancer.run.policies import known_plugins
from tests.conformance.answers import Answer, equal
from tests.conformance.corpus import Case
from tests.conformance.snapshots import cluster

_NAME = "DefaultEvictor"


def filters(case: Case) -> Answer:
    on = cluster(case)
    gate = Gate(on, Limits(), None, Ledger())
    evict = gate.asked_by(Evictor(on, _args_of_policy(case)), "profile", "strategy")
    asked = {"Filter": evict.filter_refusal, "PreEvictionFilter": evict.pre_eviction_refusal}
    pods = {pod.key: pod for pod in on.snapshot.pods}
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
        observed[key] = asked[function](pods[namespace, name]) is None
    return equal(observed, expected)


def initialise(case: Case) -> Answer:
    """Compare what the evictor says of each pod, built and built again for one cluster; the case lets all go."""
    on = cluster(case)
    gate = Gate(on, Limits(), None, Ledger())
    observed = {}
    for time in ("built", "built again"):
        evict = gate.asked_by(Evictor(on, _args_of_policy(case)), "profile", "strategy")
        observed |= {f"{pod} {time}": evict.evictable(pod) for pod in on.snapshot.pods}
    return equal(observed, dict.fromkeys(observed, case["expected_ok"]))


def protections(case: Case) -> Answer:
    return equal(sorted(_args(case).protections()), sorted(case["expected"]))


def storage_classes(case: Case) -> Answer:
    return equal(
        sorted(_args(case).protected_storage_classes()), sorted(each["name"] for each in case["expected"] or ())
    )


def pod_types(case: Case) -> Answer:
    """Compare by the protection that would name the type."""
    expected = case["expected"]
    on = cluster(case)
    observed = {
        each.name: {kind: value for kind, value in _types(on, each).items() if kind in expected[each.name]}
        for each in on.snapshot.pods
        if each.name in expected
    }
    return equal(observed, expected)


def _args(case: Case) -> DefaultEvictorArgs:
    return DefaultEvictorArgs.model_validate(case["evictor"])


def _args_of_policy(case: Case) -> DefaultEvictorArgs:
    policy = load_policy(json.dumps(case["policy"]), known_plugins(), source="case", runs=False).policy
    args = policy.profiles[0].args[_NAME]
    assert isinstance(args, DefaultEvictorArgs)
    return args


def _types(on: Cluster, pod: Pod) -> dict[str, bool]:
    found = {each.code for each in absolute(on) if each.reason(pod)}
    return {
        "mirror": "MirrorPods" in found,
        "static": "StaticPods" in found,
        "critical": (pod.spec.priority or 0) >= SYSTEM_CRITICAL_PRIORITY,
        "daemonset": any(owner.kind == "DaemonSet" for owner in pod.owners),
        "localStorage": pod.spec.local_storage,
    }
