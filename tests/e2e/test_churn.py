"""Thousands of evictions on a cluster that changes all the time."""

import itertools
import os
import random
import threading
import time
from collections import Counter

from tests.e2e.acts import uids
from tests.e2e.api import ApiError
from tests.e2e.builders import LOCAL_STORAGE, daemonset, node, pdb, pod, replicaset
from tests.e2e.program import Outcome, policy
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
#: Seconds between two acts of one kind, so that the test leaves the control plane time for the rest.
PACE = 0.4
#: What the API server says of a pod that is gone, has changed, or may not go now; 504 where its PDB changes too often.
EXPECTED = frozenset({404, 409, 429, 504})


def test_evictions_under_churn(controlplane, namespace, program, tell):
    """No PDB is exceeded at any moment, and no protected pod goes, in thousands of evictions while pods come and go."""
    settle(namespace)
    protected = uids(pod for pod in namespace.pods() if pod["metadata"]["labels"].get("protected"))
    assert len(protected) == 24
    offset, start = controlplane.audit_offset(), time.monotonic()

    with ReadyWatch(controlplane.api, namespace.name, GUARD) as watch:
        with Churn(namespace) as churn:
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


def run_until_evicted(program, namespace):
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


def half_of(namespace, half):
    selector = {"matchLabels": {"half": half}}
    within = {"include": [namespace.name]}
    return policy({"PodLifeTime": {"states": ["Running"], "namespaces": within, "labelSelector": selector}})


def settle(namespace):
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


def labels_of(name):
    """Labels of a workload's pods; those with even numbers are one run's, the others another's."""
    return {"app": name, "half": HALVES[int(name[-1]) % 2]}


class Churn:
    """Creates, deletes, scales and evicts pods in threads of its own, from `with` on to its end.

    Pods of guarded workloads are evicted, as another program would, within their PDBs.
    """

    def __init__(self, namespace):
        self._api = namespace.api
        self._namespace = namespace.name
        self._random = random.Random(1)
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self._problems: list[Exception] = []
        acts = (self._create_and_delete, self._delete, self._scale, self._evict)
        self._threads = [threading.Thread(target=self._repeat, args=(act,), daemon=True) for act in acts]
        self.done: Counter[str] = Counter()  # how often each act succeeded

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        """End, and raise what went wrong."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._problems and kind is None:
            raise self._problems[0]

    def _repeat(self, act):
        while not self._stop.wait(PACE):
            try:
                self.done[act()] += 1
            except Exception as error:  # noqa: BLE001  raised again in the test's own thread
                if not isinstance(error, ApiError) or error.status not in EXPECTED:
                    self._problems.append(error)
                    return

    def _create_and_delete(self):
        """Make a pod without an owner, and delete one that was made some time before."""
        number = next(self._numbers)
        self._api.create(pod(f"loose-{number}"), self._namespace)
        if number >= 20:
            self._api.delete("Pod", f"loose-{number - 20}", self._namespace, grace=0)
        return "pods without an owner made and deleted"

    def _delete(self):
        self._api.delete("Pod", self._some_pod(FREE), self._namespace)
        return "pods deleted"

    def _scale(self):
        replicas = REPLICAS + self._random.randrange(-2, 3)
        name = self._random.choice(FREE)
        self._api.patch("ReplicaSet", name, self._namespace, {"spec": {"replicas": replicas}})
        return "ReplicaSets scaled"

    def _evict(self):
        self._api.evict(self._some_pod(GUARDED), self._namespace)
        return "pods evicted by another"

    def _some_pod(self, apps):
        app = self._random.choice(apps)
        pods = self._api.list("Pod", self._namespace, labelSelector=f"app={app}", limit=20)
        return str(self._random.choice(pods)["metadata"]["name"]) if pods else "none"
