"""etcd stops for seconds while pods are evicted: the API server's answers then say nothing certain."""

import time
from contextlib import contextmanager

from tests.e2e.acts import cordon, uids
from tests.e2e.builders import deployment, node, pdb
from tests.e2e.program import Program, everything_in
from tests.e2e.proxy import Hold, Proxy
from tests.e2e.waiting import wait_for

REPLICAS = 40
LIMIT = 12
STOPS = 3
#: More than the API server waits for etcd (7 s), and less than the program waits for the API server.
SECONDS = 11
RECOVERY_DEADLINE = 300  # seconds


def test_no_limit_is_exceeded_while_etcd_stops(controlplane, namespace, tell):
    """No more pods go than limit and PDB allow, and the report has every pod that went, as evicted or as unknown."""
    namespace.create(
        *(node(name, pods=REPLICAS // 2) for name in ("a", "b")),
        deployment("web", replicas=REPLICAS),
        pdb("web", max_unavailable=LIMIT + 2),
    )
    before = uids(namespace.wait_ready(REPLICAS, "web"))
    namespace.wait_budget("web", allowed=LIMIT + 2)
    # No replacement starts, so what is left of the first pods is easy to tell.
    cordon(controlplane.api, "a", "b")

    hold = Hold("POST", "/eviction", before=2)
    with Proxy(controlplane, hold) as proxy:
        program = Program(proxy.kubeconfig(controlplane.kubeconfig))
        with program.start(everything_in(namespace.name, maxNoOfPodsToEvictTotal=LIMIT)) as running:
            hold.wait()
            for _ in range(STOPS):
                with etcd_stopped(controlplane):
                    hold.release()
                    wait_seconds(SECONDS)
            outcome = running.finish()

    gone = before - uids(namespace.pods("web"))
    assert outcome.exit_code == 0, outcome.stderr
    assert gone <= set(outcome.spent_uids()), outcome.stderr
    assert len(gone) <= len(outcome.spent_uids()) <= LIMIT
    tell(f"etcd stopped {STOPS} times: {len(gone)} pods went, {len(outcome.report['unknown'])} unknown")
    cordon(controlplane.api, "a", "b", on=False)
    namespace.wait_ready(REPLICAS, "web", RECOVERY_DEADLINE)


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
