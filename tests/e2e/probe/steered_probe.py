"""MoveInWaves: a strategy of the tests' own, which steers pods to one node, one wave after the other.

It decides nothing by figures, so that a test of what happens to waves is about that alone.
"""

from rebalancer.api import Balance, Cluster, Evict, Field, Pod, PodArgs
from rebalancer.eviction.causes import as_cause
from rebalancer.eviction.steering import HOT, Move, Wave


class MoveInWavesArgs(PodArgs):
    """Where to, and how much."""

    to: str = Field(description="The node that the pods are to land on.")
    waves: int = Field(description="How many waves there are.")
    pods: int = Field(2, description="How many pods a wave moves.")


class MoveInWaves(Balance[MoveInWavesArgs]):
    """Move pods to one node, one of each owner."""

    name = "MoveInWaves"
    Args = MoveInWavesArgs

    def run(self, cluster: Cluster, evict: Evict) -> None:
        elsewhere = [pod for pod in cluster.pods() if pod.node != self.args.to and self.args.selects(pod)]
        of_owners = {owner.uid: pod for pod in elsewhere for owner in pod.owners}
        pods = sorted(of_owners.values(), key=lambda pod: pod.age_order)
        steer = evict.steer
        assert steer is not None
        try:
            for number in range(self.args.waves):
                self._move(pods[number * self.args.pods :][: self.args.pods], cluster, evict)
        finally:
            steer.end()

    def _move(self, pods: list[Pod], cluster: Cluster, evict: Evict) -> None:
        assert evict.steer is not None
        moves = tuple(Move(pod, self.args.to, (self.args.to,), as_cause("to move")) for pod in pods)
        wave = Wave({each.name: HOT for each in cluster.nodes if each.name != self.args.to}, moves)
        if evict.steer.closed(wave):
            return
        evict.steer.begin(wave)
        asked = [(move, evict(move.pod, move.because, move.destination)) for move in moves]
        evict.steer.settle(wave, [(move, verdict) for move, verdict in asked if verdict.leaving])
