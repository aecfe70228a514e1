"""A view of a live cluster: what was read, and when."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from rebalancer.cluster.cluster import Cluster, Measure
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.patience import Recollection
from rebalancer.kube.halt import Halt
from rebalancer.kube.wire.companions import SCHEDULER_KINDS
from rebalancer.run import policies
from rebalancer.run.cluster_lists import read_cluster
from rebalancer.run.interruption import Interruption
from rebalancer.run.live import LiveCluster
from rebalancer.run.live_usage import live_usage
from rebalancer.run.memory import MemoryView, leases_of, memory_map, read_memory, recollect
from rebalancer.run.options import Deliver, Options
from rebalancer.run.telemetry import Telemetry
from rebalancer.run.work import Work


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What all cycles of one process share.

    Attributes:
        options: dry run or not, the deadline, the Lease.
        cluster: the way to the API server.
        telemetry: is told what happens.
        interruption: entered; once evictions may begin, a signal only stops the evictions.
        deliver: shows the outcome of a cycle.
        sleep: waits for that many seconds while another run holds the Lease.
    """

    options: Options
    cluster: LiveCluster
    telemetry: Telemetry
    interruption: Interruption
    deliver: Deliver
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class LiveView:
    """A cluster as it was read.

    Attributes:
        snapshot: nodes, pods and all else that the policy needs.
        measure: real usage; each source is asked once, so that all plans of this view use the same figures.
        taken_at: the time before the first request, in seconds on the clock of the retry policy.
        memory: what is known of earlier cycles; None where the policy does not ask.
    """

    snapshot: Snapshot
    measure: Measure
    taken_at: float
    memory: MemoryView | None = None

    @property
    def recollection(self) -> Recollection | None:
        """What is known of earlier cycles."""
        return self.memory.recollection if self.memory else None

    def cluster(self, work: Work) -> Cluster:
        """Return the cluster as the cycle begins."""
        return work.cluster(self.snapshot, self.measure)


def view_cluster(run: LiveRun, work: Work) -> LiveView:
    """Read the cluster as it is now.

    Raises:
        ClusterError: it cannot be read, or not in time for the deadline.
    """
    options, cluster, telemetry = run.options, run.cluster, run.telemetry
    taken_at = cluster.retry_policy.clock()
    halt = Halt(options.deadline, cluster.retry_policy.clock, began=taken_at)
    with telemetry.stage("read"):
        needed, helpful = policies.kinds_needed(work.plans), work.helpful_kinds
        helpful |= {"Namespace"} if options.identify else frozenset()
        helpful |= SCHEDULER_KINDS if options.explains else frozenset()
        source, leases = memory_map(cluster, options.lease), leases_of(cluster, options.lease)
        found = read_memory(source, leases, datetime.now(UTC)) if work.trust else None
        reading, evicts = telemetry.progress.reading, not options.dry_run
        snapshot = work.seen(read_cluster(cluster, needed, halt, helpful, reading, evicts=evicts))
    if options.chosen:
        options.chosen.demand(snapshot)
    measure = telemetry.measure(live_usage(work.policy, cluster, halt.deadline, telemetry.samples))
    memory = None
    if work.trust and found:
        memory = MemoryView(source, leases, found, recollect(found, work.trust, snapshot))
    return LiveView(snapshot, measure, taken_at, memory)
