"""The one place where evictions are granted: protections, limits and PDBs first, the sink last."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.errors import CycleOver
from rebalancer.eviction.verdict import GRANTED, IN_PROGRESS, Refused, Verdict
from rebalancer.guards.budget import TOTAL_LIMIT, DisruptionBudgets, LimitCounter, Limits, OwnerShares
from rebalancer.guards.evictor import Evictor


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
        self._budgets = DisruptionBudgets(cluster.snapshot.budgets or (), cluster.snapshot.pods)
        self._shares = OwnerShares(cluster.snapshot.pods)
        self._spend_in_progress()

    def ask(
        self, evictor: Evictor, profile: str, strategy: str, pod: Pod, because: str, *, sparing: bool = False
    ) -> Verdict:
        """Decide on one pod, carry it out, and record the verdict.

        Args:
            evictor: the filters of the profile.
            profile: its name.
            strategy: who asks.
            pod: the pod in question.
            because: why it should go.
            sparing: whether an owner without a PDB keeps most of its pods.
        """
        refusal = self._refusal(evictor, pod, sparing=sparing)
        verdict = refusal or self._sink.evict(pod, profile, strategy, because)
        if verdict.leaving and not isinstance(verdict, Refused):
            self._spend([pod])
        if verdict.gone:
            self._take_out(pod)
        self.ledger.record(Entry(profile, strategy, pod, because, verdict))
        if isinstance(verdict, Refused) and verdict.by == TOTAL_LIMIT:
            raise CycleOver
        return verdict

    def first_refusal(
        self, evictor: Evictor, pods: Sequence[Pod], *, sparing: bool = False
    ) -> tuple[Pod, Refused] | None:
        """Return the first of these pods that would be refused if the earlier ones had gone; change nothing."""
        gone: Counter[str] = Counter()
        for number, pod in enumerate(pods):
            siblings = sum(gone[owner.uid] for owner in pod.owners)
            refusal = evictor.protection(pod) or evictor.homeless(pod)
            refusal = refusal or self._refusal(evictor, pod, siblings, sparing=sparing)
            if refusal:
                self._spend(pods[:number], -1)
                return pod, refusal
            self._spend([pod])
            gone.update(owner.uid for owner in pod.owners)
        self._spend(pods, -1)
        return None

    def _refusal(self, evictor: Evictor, pod: Pod, gone: int = 0, *, sparing: bool = False) -> Refused | None:
        if not self.cluster.contains(pod):
            return Refused("Gone", "already evicted in this cycle, or gone")
        return (
            evictor.protection(pod)
            or _in_progress(pod)
            or evictor.too_few_replicas(pod, gone)
            or self._limits.refusal(pod)
            or self._budgets.refusal(pod)
            or (self._shares.refusal(pod) if sparing and not self._budgets.select(pod) else None)
        )

    def _spend(self, pods: Iterable[Pod], count: int = 1) -> None:
        for pod in pods:
            self._limits.spend(pod, count)
            self._budgets.spend(pod, count)
            self._shares.spend(pod, count)

    def _spend_in_progress(self) -> None:
        """Count the evictions of earlier cycles that another controller has taken over and not finished."""
        pods = [pod for pod in self.cluster.snapshot.pods if pod.evacuating]
        self._spend(pods)
        if pods:
            names = ", ".join(sorted(str(pod) for pod in pods))
            self.ledger.warn(f"evictions still in progress, which count against the limits of this cycle: {names}")

    def _take_out(self, pod: Pod) -> None:
        if self.cluster.contains(pod):
            self.cluster.remove(pod)


def _in_progress(pod: Pod) -> Refused | None:
    return Refused(IN_PROGRESS, "another controller is already moving it") if pod.evacuating else None


class StrategyGate:
    """The gate as one strategy of one profile sees it (`rebalancer.api.Evict`)."""

    def __init__(self, gate: Gate, evictor: Evictor, profile: str, strategy: str, *, sparing: bool = False) -> None:
        self._gate = gate
        self._evictor = evictor
        self._profile = profile
        self._strategy = strategy
        self._sparing = sparing

    def passes_filter(self, pod: Pod, because: str | None = None) -> bool:
        """Tell whether no protection covers the pod; record a no if `because` is given."""
        return self._passes(pod, because, self._evictor.protection(pod) or self._evictor.too_few_replicas(pod))

    def passes_pre_eviction_filter(self, pod: Pod, because: str | None = None) -> bool:
        """Tell whether the pod has somewhere to go; record a no if `because` is given."""
        return self._passes(pod, because, self._evictor.homeless(pod))

    def evictable(self, pod: Pod, because: str | None = None) -> bool:
        """Tell whether the pod passes both filters; record a no if `because` is given."""
        return self._passes(pod, because, self._evictor.refusal(pod))

    def first_refusal(self, pods: Sequence[Pod]) -> tuple[Pod, Refused] | None:
        """Return the first of these pods that would be refused if all were asked for in this order, and why."""
        return self._gate.first_refusal(self._evictor, pods, sparing=self._sparing)

    def sparing_owners(self) -> "StrategyGate":
        """Return a gate that also spares owners without a PDB."""
        return StrategyGate(self._gate, self._evictor, self._profile, self._strategy, sparing=True)

    def refuse(self, pod: Pod, because: str, refusal: Refused) -> None:
        """Record that a pod stays by a rule of the strategy's own."""
        self._gate.ledger.record(Entry(self._profile, self._strategy, pod, because, refusal))

    def warn(self, text: str) -> None:
        """Put a warning into the ledger, with the strategy it comes from."""
        self._gate.ledger.warn(f"{self._profile}/{self._strategy}: {text}")

    def __call__(self, pod: Pod, because: str) -> Verdict:
        """Ask for the eviction of a pod."""
        return self._gate.ask(self._evictor, self._profile, self._strategy, pod, because, sparing=self._sparing)

    def stop(self, reason: str) -> None:
        """Let no further strategy run."""
        self._gate.ledger.stopped = reason

    def _passes(self, pod: Pod, because: str | None, refusal: Refused | None) -> bool:
        if refusal and because is not None:
            self.refuse(pod, because, refusal)
        return refusal is None
