"""The API server goes away in the middle of a run, and comes back; or etcd stops, and its answers are not certain."""

import os
import time
from contextlib import contextmanager

from tests.e2e.acts import cordon, uids
from tests.e2e.builders import deployment, node, pdb
from tests.e2e.program import Program, everything_in
from tests.e2e.proxy import Hold, Proxy
from tests.e2e.waiting import wait_for

REPLICAS = 60
#: How often the API server is started again while pods are evicted; 20 unless given.
RESTARTS = int(os.environ.get("REBALANCER_E2E_RESTARTS", "20"))
LIMIT = 50
RECOVERY_DEADLINE = 300  # seconds
#: The API server may be away for longer than the ten seconds after which a single run that cannot renew its Lease ends.
LONG_LEASE = ("--leader-elect-renew-deadline", "300s", "--leader-elect-lease-duration", "400s")


def test_run_goes_on_when_the_apiserver_is_back(controlplane, namespace, program):
    """Every pod is evicted once, before or after the restart, and the report names exactly those that went.

    The one whose eviction was under way may stay in doubt, if the API server is away for longer than that is settled;
    whether that pod went is open.
    """
    # Two nodes that are full: no replacement starts, so what is left of the first pods is easy to tell.
    namespace.create(*(node(name, pods=REPLICAS // 2) for name in ("a", "b")), deployment("web", replicas=REPLICAS))
    before = uids(namespace.wait_ready(REPLICAS, "web"))
    cordon(controlplane.api, "a", "b")

    with program.start(everything_in(namespace.name), *LONG_LEASE) as running:
        wait_for(lambda: before - uids(namespace.pods("web")) or not running.runs(), "the first pod to go")
        in_the_middle = running.runs()
        with stopped(controlplane):
            # Over some seconds nobody is there: longer than the Lease may be out of sight while pods are evicted.
            wait_for(lambda: looks_in_vain(running.stderr()) >= 4 or not running.runs(), "the run to notice")
        outcome = running.finish()

    assert outcome.exit_code == 0, outcome.stderr
    assert in_the_middle, f"the run was over before the restart; {REPLICAS} pods are too few"
    assert outcome.errors() == {}
    assert set(outcome.spent_uids()) == before
    assert len(outcome.spent_uids()) == len(before)
    in_doubt = {each["uid"] for each in outcome.report["unknown"]}
    assert len(in_doubt) <= 1
    assert before & uids(namespace.pods("web")) <= in_doubt
    wait_for_components(controlplane, namespace)


def looks_in_vain(stderr):
    """Return how often the run has tried to renew its Lease, or to evict, without an answer; seconds apart."""
    return stderr.count("was not renewed") + stderr.count(" failed")


def test_twenty_restarts(controlplane, namespace, program, tell):
    """Whenever the API server dies, no run exceeds its limit, and its report has every pod that went."""
    namespace.create(*(node(name, pods=REPLICAS) for name in ("a", "b")), deployment("web", replicas=REPLICAS))
    restarts, went, unknown = 0, 0, 0
    while restarts < RESTARTS:
        before = uids(namespace.wait_ready(REPLICAS, "web", RECOVERY_DEADLINE))
        with program.start(everything_in(namespace.name, maxNoOfPodsToEvictTotal=LIMIT)) as running:
            wait_for(lambda: before - uids(namespace.pods("web")) or not running.runs(), "the first pod to go")  # noqa: B023
            while running.runs() and restarts < RESTARTS:
                controlplane.restart_apiserver()
                restarts += 1
            outcome = running.finish()
        controlplane.start_components()
        gone = before - uids(namespace.pods("web"))
        assert gone <= set(outcome.spent_uids()), outcome.stderr
        assert len(gone) <= len(outcome.spent_uids()) <= LIMIT
        went, unknown = went + len(gone), unknown + len(outcome.report["unknown"])

    assert went
    tell(f"{restarts} restarts of the API server: {went} pods went, {unknown} unknown")
    wait_for_components(controlplane, namespace)


def wait_for_components(controlplane, namespace):
    """Have scheduler and controllers at work again, for whoever comes next."""
    controlplane.start_components()
    namespace.create(node("c"))
    namespace.wait_ready(REPLICAS, "web", RECOVERY_DEADLINE)
    namespace.wait_counted(REPLICAS, "web", RECOVERY_DEADLINE)


@contextmanager
def stopped(controlplane):
    controlplane.stop_apiserver()
    try:
        yield
    finally:
        controlplane.start_apiserver()


STOPS = 3
#: More than the API server waits for etcd (7 s), and less than the program waits for the API server.
SECONDS = 11


def test_no_limit_is_exceeded_while_etcd_stops(controlplane, namespace, tell):
    """No more pods go than limit and PDB allow, and the report has every pod that went, as evicted or as unknown."""
    replicas, limit = 40, 12
    full = [node(name, pods=replicas // 2) for name in ("a", "b")]
    namespace.create(*full, deployment("web", replicas=replicas), pdb("web", max_unavailable=limit + 2))
    before = uids(namespace.wait_ready(replicas, "web"))
    namespace.wait_budget("web", allowed=limit + 2)
    # No replacement starts, so what is left of the first pods is easy to tell.
    cordon(controlplane.api, "a", "b")

    hold = Hold("POST", "/eviction", before=2)
    with Proxy(controlplane, hold) as proxy:
        program = Program(proxy.kubeconfig(controlplane.kubeconfig))
        with program.start(everything_in(namespace.name, maxNoOfPodsToEvictTotal=limit)) as running:
            hold.wait()
            for _ in range(STOPS):
                with etcd_stopped(controlplane):
                    hold.release()
                    wait_seconds(SECONDS)
            outcome = running.finish()

    gone = before - uids(namespace.pods("web"))
    assert outcome.exit_code == 0, outcome.stderr
    assert gone <= set(outcome.spent_uids()), outcome.stderr
    assert len(gone) <= len(outcome.spent_uids()) <= limit
    tell(f"etcd stopped {STOPS} times: {len(gone)} pods went, {len(outcome.report['unknown'])} unknown")
    cordon(controlplane.api, "a", "b", on=False)
    namespace.wait_ready(replicas, "web", RECOVERY_DEADLINE)


@contextmanager
def etcd_stopped(controlplane):
    """Stop etcd for the time of the block, and wait until the API server is well again."""
    controlplane.processes.pause("etcd")
    try:
        yield
    finally:
        controlplane.processes.resume("etcd")
        wait_for(controlplane.api.ready, "the API server ready again", RECOVERY_DEADLINE)


def wait_seconds(seconds):
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > end, f"{seconds} s", seconds + RECOVERY_DEADLINE)
