"""Thousands of evictions on a cluster that changes all the time."""

import os
import time
from collections import Counter
from collections.abc import Callable

from tests.e2e.acts import uids
from tests.e2e.api import Object
from tests.e2e.builders import LOCAL_STORAGE, daemonset, node, pdb, pod, replicaset
from tests.e2e.churn import Churn
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Outcome, Program, policy
from tests.e2e.watching import ReadyWatch

EVICTIONS = int(os.environ.get("REBALANCER_E2E_EVICTIONS", "5000"))
#: More runs than this, and something keeps pods from going.
MOST_RUNS = 200
REPLICAS = 40
FREE = [f"free-{number}" for number in range(10)]
#: Few, since the server takes half a second for an eviction whenever a PDB's status changes at the same time.
GUARDED_REPLICAS = 10
MIN_AVAILABLE = 7
GUARDED = [f"guarded-{number}" for number in range(4)]
GUARD = {"guarded": "yes"}
HALVES = ("even", "odd")


def test_evictions_under_churn(
    controlplane: ControlPlane, namespace: Namespace, program: Program, tell: Callable[[str], None]
) -> None:
    """No PDB is exceeded at any moment, and no protected pod goes, in thousands of evictions while pods come and go."""
    settle(namespace)
    protected = uids(pod for pod in namespace.pods() if pod["metadata"]["labels"].get("protected"))
    assert len(protected) == 24
    offset, start = controlplane.audit_offset(), time.monotonic()

    with ReadyWatch(controlplane.api, namespace.name, GUARD) as watch:
        with Churn(controlplane.api, namespace.name, FREE, GUARDED, REPLICAS) as churn:
            outcomes = run_until_evicted(program, namespace)
        for app in GUARDED:
            namespace.wait_ready(GUARDED_REPLICAS, app)

    answers = Counter(
        request.status for request in controlplane.requests_since(offset) if request.subresource == "eviction"
    )
    evicted = [uid for outcome in outcomes for uid in outcome.evicted_uids()]
    tell(
        f"{len(evicted)} evictions in {len(outcomes)} runs and {time.monotonic() - start:.0f} s; "
        f"answers {dict(sorted(answers.items()))}; fewest ready {min(watch.fewest.values())} of {MIN_AVAILABLE}; "
        f"refused {dict(Counter(by for outcome in outcomes for by in outcome.refused().values()))}; "
        f"meanwhile {dict(churn.done)}"
    )
    assert watch.fewest.keys() == set(GUARDED)
    assert min(watch.fewest.values()) >= MIN_AVAILABLE
    assert len(evicted) == len(set(evicted))
    assert answers[201] == len(evicted) >= EVICTIONS
    assert protected.isdisjoint(evicted)
    assert protected <= uids(namespace.pods())
    assert all(churn.done.values())
    assert len(churn.done) == 4


def run_until_evicted(program: Program, namespace: Namespace) -> list[Outcome]:
    """Run again and again until so many pods are evicted, two runs at a time; every run must be sound."""
    policies = [half_of(namespace, half) for half in HALVES]
    outcomes: list[Outcome] = []
    while sum(len(outcome.evicted()) for outcome in outcomes) < EVICTIONS:
        assert len(outcomes) < MOST_RUNS, [len(outcome.evicted()) for outcome in outcomes]
        with program.start(policies[0]) as one, program.start(policies[1]) as other:
            outcomes += [one.finish(), other.finish()]
        for outcome in outcomes[-2:]:
            assert outcome.exit_code == 0, outcome.stderr
            assert outcome.errors() == {}
    return outcomes


def half_of(namespace: Namespace, half: str) -> Object:
    """A policy by which every running pod with a label should go."""
    selector = {"matchLabels": {"half": half}}
    within = {"include": [namespace.name]}
    return policy({"PodLifeTime": {"states": ["Running"], "namespaces": within, "labelSelector": selector}})


def settle(namespace: Namespace) -> None:
    """Workloads with a PDB and without, and protected pods of several kinds."""
    namespace.create(*(node(f"n{number}", cpu="64", pods=120) for number in range(10)))
    safe = {"protected": "yes", "half": HALVES[0]}
    namespace.create(
        daemonset("agent", labels={"app": "agent", **safe}),
        replicaset(
            "critical", replicas=5, priority_class="system-cluster-critical", labels={"app": "critical", **safe}
        ),
        replicaset("scratch", replicas=5, volumes=[LOCAL_STORAGE], labels={"app": "scratch", **safe}),
        *(pod(f"bare-{number}", labels={"app": "bare", **safe}) for number in range(3)),
        pod("mirror", node="n0", labels={"app": "mirror", **safe}, annotations={"kubernetes.io/config.mirror": "hash"}),
    )
    namespace.create(*(pdb(name, min_available=MIN_AVAILABLE) for name in GUARDED))
    namespace.create(*(replicaset(name, GUARDED_REPLICAS, labels=labels_of(name) | GUARD) for name in GUARDED))
    # Bound past the scheduler and gone without grace: that halves what a replacement costs the control plane.
    free = (
        replicaset(name, REPLICAS, node=f"n{number}", grace=0, labels=labels_of(name))
        for number, name in enumerate(FREE)
    )
    namespace.create(*free)
    total = 24 + GUARDED_REPLICAS * len(GUARDED) + REPLICAS * len(FREE)
    namespace.wait_ready(total)
    for name in GUARDED:
        namespace.wait_budget(name, allowed=GUARDED_REPLICAS - MIN_AVAILABLE)


def labels_of(name: str) -> dict[str, str]:
    """Labels of a workload's pods; those with even numbers are one run's, the others another's."""
    return {"app": name, "half": HALVES[int(name[-1]) % 2]}
