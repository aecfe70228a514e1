"""The one place where evictions are granted: protections, limits and PDBs first, the sink last."""

from typing import Protocol

from rebalancer.engine.budget import TOTAL_LIMIT, DisruptionBudgets, LimitCounter, Limits
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.errors import CycleOver
from rebalancer.model.cluster import Cluster
from rebalancer.model.objects import Pod
from rebalancer.model.verdict import GRANTED, Failed, Refused, Verdict


class Sink(Protocol):
    """Where granted evictions go; the only difference between a dry run and a live one."""

    def evict(self, pod: Pod, profile: str, strategy: str, because: str) -> Verdict:
        """Carry out an eviction and return what became of it.

        Raises:
            CycleStopped: nothing more is to be asked for; this eviction was not.
        """
        ...


class DrySink:
    """Grants all and does nothing."""

    def evict(self, pod: Pod, profile: str, strategy: str, because: str) -> Verdict:  # noqa: ARG002  the interface
        """Grant the eviction."""
        return GRANTED


class Gate:
    """Grants or refuses for all strategies of a cycle, and keeps cluster, limits and PDBs true to what it granted."""

    def __init__(self, cluster: Cluster, limits: Limits, sink: Sink, ledger: Ledger) -> None:
        self.cluster = cluster
        self.ledger = ledger
        self._sink = sink
        self._limits = LimitCounter(limits)
        self._budgets = DisruptionBudgets(cluster.snapshot.budgets or ())

    def ask(self, evictor: Evictor, profile: str, strategy: str, pod: Pod, because: str) -> Verdict:
        """Decide on one pod, carry it out, and record the verdict."""
        verdict = self._refusal(evictor, pod) or self._sink.evict(pod, profile, strategy, because)
        went = verdict.granted or (isinstance(verdict, Failed) and verdict.unknown)
        if went:
            self._limits.spend(pod)
            self._budgets.spend(pod)
        if went or (isinstance(verdict, Refused) and verdict.by == "Gone"):
            self._take_out(pod)
        self.ledger.record(Entry(profile, strategy, pod, because, verdict))
        if isinstance(verdict, Refused) and verdict.by == TOTAL_LIMIT:
            raise CycleOver
        return verdict

    def _refusal(self, evictor: Evictor, pod: Pod) -> Refused | None:
        if not self.cluster.contains(pod):
            return Refused("Gone", "already evicted in this cycle, or gone")
        return (
            evictor.protection(pod)
            or evictor.too_few_replicas(pod)
            or self._limits.refusal(pod)
            or self._budgets.refusal(pod)
        )

    def _take_out(self, pod: Pod) -> None:
        if self.cluster.contains(pod):
            self.cluster.remove(pod)


class StrategyGate:
    """The gate as one strategy of one profile sees it (`rebalancer.api.Evict`)."""

    def __init__(self, gate: Gate, evictor: Evictor, profile: str, strategy: str) -> None:
        self._gate = gate
        self._evictor = evictor
        self._profile = profile
        self._strategy = strategy

    def passes_filter(self, pod: Pod, because: str | None = None) -> bool:
        """Tell whether no protection covers the pod; record a no if `because` is given."""
        return self._passes(pod, because, self._evictor.protection(pod) or self._evictor.too_few_replicas(pod))

    def passes_pre_eviction_filter(self, pod: Pod, because: str | None = None) -> bool:
        """Tell whether the pod has somewhere to go; record a no if `because` is given."""
        return self._passes(pod, because, self._evictor.homeless(pod))

    def evictable(self, pod: Pod, because: str | None = None) -> bool:
        """Tell whether the pod passes both filters; record a no if `because` is given."""
        return self._passes(pod, because, self._evictor.refusal(pod))

    def refuse(self, pod: Pod, because: str, refusal: Refused) -> None:
        """Record that a pod stays by a rule of the strategy's own."""
        self._gate.ledger.record(Entry(self._profile, self._strategy, pod, because, refusal))

    def warn(self, text: str) -> None:
        """Put a warning into the ledger, with the strategy it comes from."""
        self._gate.ledger.warn(f"{self._profile}/{self._strategy}: {text}")

    def __call__(self, pod: Pod, because: str) -> Verdict:
        """Ask for the eviction of a pod."""
        return self._gate.ask(self._evictor, self._profile, self._strategy, pod, because)

    def stop(self, reason: str) -> None:
        """Let no further strategy run."""
        self._gate.ledger.stopped = reason

    def _passes(self, pod: Pod, because: str | None, refusal: Refused | None) -> bool:
        if refusal and because is not None:
            self.refuse(pod, because, refusal)
        return refusal is None
