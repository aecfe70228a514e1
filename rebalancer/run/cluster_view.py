"""A view of a live cluster: what was read, and when."""

from dataclasses import dataclass

from rebalancer.cluster.cluster import Cluster, Measure
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.kube.halt import Halt
from rebalancer.kube.wire.companions import SCHEDULER_KINDS
from rebalancer.run import live, policies
from rebalancer.run.cluster_lists import read_cluster
from rebalancer.run.live_usage import live_usage
from rebalancer.run.options import Options
from rebalancer.run.telemetry import Telemetry
from rebalancer.run.work import Work


@dataclass(frozen=True, slots=True)
class LiveView:
    """A cluster as it was read.

    Attributes:
        snapshot: nodes, pods and all else that the policy needs.
        measure: real usage; each source is asked once, so that all plans of this view use the same figures.
        taken_at: the time before the first request, in seconds on the clock of the retry policy.
    """

    snapshot: Snapshot
    measure: Measure
    taken_at: float

    def cluster(self, work: Work) -> Cluster:
        """Return the cluster as the cycle begins."""
        return work.cluster(self.snapshot, self.measure)


def view_cluster(cluster: live.LiveCluster, options: Options, work: Work, telemetry: Telemetry) -> LiveView:
    """Read the cluster as it is now.

    Raises:
        ClusterError: it cannot be read, or not in time for the deadline.
    """
    taken_at = cluster.retry_policy.clock()
    halt = Halt(options.deadline, cluster.retry_policy.clock, began=taken_at)
    with telemetry.stage("read"):
        needed, helpful = policies.kinds_needed(work.plans), SCHEDULER_KINDS if work.asks_scheduler else ()
        snapshot = work.seen(read_cluster(cluster, needed, halt, helpful, telemetry.progress.reading))
    measure = telemetry.measure(live_usage(work.policy, cluster, halt.deadline, telemetry.samples))
    return LiveView(snapshot, measure, taken_at)
