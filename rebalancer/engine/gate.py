"""The one place where evictions are granted: protections, limits and PDBs first, the sink last.

1. The first rule that holds refuses the pod: it has left already, a protection, an eviction in progress, minReplicas,
   patience (`rebalancer.engine.patience`), a limit (all, node, namespace), a PDB, where a strategy asks for it the
   share of an owner without a PDB, and with `nodeFit: scheduler` that its replacement may find no node.
2. If none refuses, the sink carries the eviction out; in a dry run it only grants it.
3. If the pod goes, or may have gone, it is counted and leaves the cluster before the next pod is asked for.
4. The verdict is recorded.  At the limit on all evictions the strategy ends.

An example: a node may lose 2 pods and n1 has lost 1; a PDB allows 1 disruption.  Pod a of n1, under the PDB, is
granted: n1 has lost 2, the PDB allows 0.  Then pod b of n1 is refused by the limit, and pod c of n2 by the same PDB.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Protocol

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.in_flight import InFlight
from rebalancer.engine.ledger import Entry, Ledger, RecordedSteer
from rebalancer.engine.limits import LimitCounter, Limits
from rebalancer.engine.owner_shares import Cooldown, OwnerShares
from rebalancer.engine.patience import Patience
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.errors import CycleOver
from rebalancer.eviction.causes import Cause, Code, as_cause, cause
from rebalancer.eviction.destination import Destination
from rebalancer.eviction.evict import Outlook
from rebalancer.eviction.holding import Holder
from rebalancer.eviction.observation import Observation
from rebalancer.eviction.steering import Steer
from rebalancer.eviction.verdict import GRANTED, Refused, Verdict, refused
from rebalancer.memory.document import owner_key

#: Returns what keeps a pod that has changed since it was decided upon; None if it may still go.
Recheck = Callable[[Pod], Refused | None]


class Sink(Protocol):
    """Where granted evictions go; the only difference between a dry run and a live one."""

    def evict(self, pod: Pod, profile: str, strategy: str, because: Cause, recheck: Recheck) -> Verdict:
        """Carry out an eviction and return what became of it.

        Args:
            pod: the pod, as it was when it was decided upon.
            profile: the profile that evicts it.
            strategy: the strategy that evicts it.
            because: why.
            recheck: what keeps the pod, if it has changed meanwhile.

        Raises:
            CycleStopped: nothing more may be asked for; this eviction was not asked for either.
        """
        ...


class DrySink:
    """Grants all and does nothing."""

    def evict(self, pod: Pod, profile: str, strategy: str, because: Cause, recheck: Recheck) -> Verdict:  # noqa: ARG002
        """Grant the eviction."""
        return GRANTED


class Gate:
    """Grants or refuses for all strategies of a cycle, and updates cluster, limits and PDBs with what it granted."""

    def __init__(
        self,
        cluster: Cluster,
        limits: Limits,
        sink: Sink,
        ledger: Ledger,
        steer: Steer | None = None,
        holder: Holder | None = None,
        patience: Patience | None = None,
        most_in_flight: int = 1,
        restarted: Callable[[Pod], object] = lambda _: False,
    ) -> None:
        self.cluster = cluster
        self.ledger = ledger
        self.steer = RecordedSteer(steer, ledger, self._replaced) if steer else None
        self._holder = holder
        self._restarted = restarted
        self.patience = patience
        self._sink = sink
        self._most_in_flight = most_in_flight
        self.flight = InFlight(most_in_flight)
        self._limits = LimitCounter(limits, cluster.snapshot.pods)
        self._budgets = DisruptionBudgets(cluster.snapshot.budgets or (), cluster.snapshot.pods)
        self._shares = OwnerShares(cluster.snapshot.pods)
        self._spend_in_progress()

    def ask(
        self,
        evictor: Evictor,
        profile: str,
        strategy: str,
        pod: Pod,
        because: Cause,
        destination: Destination | None,
        *,
        owner_limit: bool,
        balance: bool = False,
    ) -> Verdict:
        """Decide on one pod, carry out the eviction if it is granted, and record the verdict.

        Args:
            evictor: the filters of the profile.
            profile: its name.
            strategy: who asks.
            pod: the pod in question.
            because: why it should go.
            destination: where its replacement will likely run; None if that was not looked up.
            owner_limit: whether an owner without a PDB keeps most of its pods.
            balance: whether the strategy balances, and leaves more alone.

        Raises:
            CycleOver: the limit on all evictions is reached.
        """
        refusal = self._refusal(evictor, pod, owner_limit=owner_limit, balance=balance)
        verdict = refusal or self._sink.evict(pod, profile, strategy, because, partial(self._kept, evictor))
        self._conclude(Entry(profile, strategy, pod, because, verdict, destination))
        return verdict

    def ask_ahead(
        self, evictor: Evictor, profile: str, strategy: str, pod: Pod, because: Cause, *, owner_limit: bool
    ) -> None:
        """Decide on one pod of a list that no verdict changes, and do not wait for its own (see `in_flight`).

        Raises:
            CycleOver: as `ask`.
            CycleStopped: as `Sink.evict`.
        """

        def conclude(verdict: Verdict) -> None:
            self._conclude(Entry(profile, strategy, pod, because, verdict))

        def settle(verdict: Verdict | None) -> None:
            self._limits.spend(pod, -1)
            if verdict is not None:
                conclude(verdict)

        if refusal := self.surely(pod, partial(self._refusal, evictor, owner_limit=owner_limit, balance=False)):
            conclude(refusal)
            return
        self._limits.spend(pod)
        recheck = partial(self._kept, evictor)
        ask = partial(self._sink.evict, pod, profile, strategy, because, recheck)
        self.flight.send(self._keys(pod), ask, settle)

    def surely(self, pod: Pod, ask: Callable[[Pod], Refused | None]) -> Refused | None:
        """Return an answer about a pod that nothing in flight can change."""
        if not self.flight:
            return ask(pod)
        self.flight.make_way(self._keys(pod))
        refusal = ask(pod)
        if refusal and self.flight:
            self.flight.land()
            refusal = ask(pod)
        return refusal

    def flies(self, evictor: Evictor) -> bool:
        """Return whether requests may be in flight: not where a pod's room depends on which others go."""
        return self._most_in_flight > 1 and not evictor.asks_scheduler

    def record(self, entry: Entry) -> None:
        """Record a verdict after those of all that was asked for before."""
        if self.flight:
            self.flight.afterwards(partial(self.ledger.record, entry))
        else:
            self.ledger.record(entry)

    def _keys(self, pod: Pod) -> list[object]:
        """Return the pod's owners and PDBs: two pods that share one are never in flight at once."""
        return [owner_key(pod), *(owner.uid for owner in pod.owners), *self._budgets.keys(pod)]

    def _conclude(self, entry: Entry) -> None:
        if entry.verdict.leaving and not isinstance(entry.verdict, Refused):
            self._spend(entry.pod)
        if entry.verdict.gone:
            self._take_out(entry.pod)
        self.ledger.record(entry)
        if isinstance(entry.verdict, Refused) and entry.verdict.cause.code is Code.TOTAL_LIMIT:
            raise CycleOver

    def impatience(self, pod: Pod, *, balance: bool) -> Refused | None:
        """Return why a pod is left alone for now, whatever protects it; None if it is not."""
        return self.patience.refusal(pod, balance=balance) if self.patience else None

    def first_refusal(
        self, evictor: Evictor, pods: Sequence[Pod], *, owner_limit: bool, balance: bool = False
    ) -> tuple[Pod, Refused] | None:
        """Return the first of these pods that would be refused if the earlier ones had gone; change nothing."""
        with self.cluster.scope():
            for pod in pods:
                if refusal := self._forecast(evictor, pod, owner_limit=owner_limit, balance=balance):
                    return pod, refusal
                if pod is not pods[-1]:
                    self._try(pod)
        return None

    def try_out(self, evictor: Evictor, pod: Pod, *, owner_limit: bool, balance: bool) -> Refused | None:
        """Return why a pod would be refused; if it would not, it counts as gone until the present scope ends."""
        refusal = self._forecast(evictor, pod, owner_limit=owner_limit, balance=balance)
        if not refusal:
            self._try(pod)
        return refusal

    def _forecast(self, evictor: Evictor, pod: Pod, *, owner_limit: bool, balance: bool) -> Refused | None:
        refusal = evictor.protection(pod) or evictor.without_destination(pod)
        return refusal or self._refusal(evictor, pod, owner_limit=owner_limit, balance=balance)

    def emptied(self, node: Node) -> None:
        """Hold a node that was emptied, if the run holds nodes."""
        if self._holder:
            self.cluster.hold(node)
            self.ledger.held.append(self._holder.hold(node.name))

    def _refusal(self, evictor: Evictor, pod: Pod, *, owner_limit: bool, balance: bool) -> Refused | None:
        if not self.cluster.contains(pod):
            return refused(Code.GONE)
        return (
            evictor.not_planned(pod)
            or evictor.protection(pod)
            or _in_progress(pod)
            or evictor.too_few_replicas(pod)
            or self.impatience(pod, balance=balance)
            or self._limits.refusal(pod)
            or self._over_budget(pod)
            or (self._shares.refusal(pod) if owner_limit and not self._budgets.select(pod) else None)
            or evictor.without_certain_room(pod)  # asked again, since others have gone since the strategy asked
        )

    def _kept(self, evictor: Evictor, pod: Pod) -> Refused | None:
        """Return what keeps a pod as it is now, which has changed since the snapshot; limits do not depend on that."""
        return evictor.protection(pod) or _in_progress(pod) or evictor.too_few_replicas(pod) or self._over_budget(pod)

    def _over_budget(self, pod: Pod) -> Refused | None:
        return None if self._restarted(pod) else self._budgets.refusal(pod)

    def _try(self, pod: Pod) -> None:
        """Remove a pod until the present scope ends, and count it against limits, PDBs and its owner's share."""
        self.cluster.remove(pod)
        self._spend(pod)
        self.cluster.undo_with(partial(self._spend, pod, -1))

    def _spend(self, pod: Pod, count: int = 1) -> None:
        self._limits.spend(pod, count)
        self._budgets.spend(pod, count)
        self._shares.spend(pod, count)
        if self.patience:
            self.patience.spend(pod, count)

    def _spend_in_progress(self) -> None:
        """Count the evictions of earlier cycles that another controller has taken over and not finished."""
        pods = [pod for pod in self.cluster.snapshot.pods if pod.evacuating]
        for pod in pods:
            self._spend(pod)
        if pods:
            self.ledger.warn(cause(Code.STILL_IN_PROGRESS, pods=sorted(str(pod) for pod in pods)))

    def _replaced(self, pod: Pod) -> None:
        """Give back what a pod has cost its PDB and its owner, once its replacement is Ready; limits stay spent."""
        self._budgets.spend(pod, -1)
        self._shares.spend(pod, -1)

    def _take_out(self, pod: Pod) -> None:
        if self.cluster.contains(pod):
            self.cluster.evicted(pod)


def _in_progress(pod: Pod) -> Refused | None:
    return refused(Code.IN_PROGRESS) if pod.evacuating else None


class StrategyGate:
    """The gate as one strategy of one profile sees it (`rebalancer.api.Evict`)."""

    def __init__(
        self,
        gate: Gate,
        evictor: Evictor,
        profile: str,
        strategy: str,
        *,
        owner_limit: bool = False,
        balance: bool = False,
    ) -> None:
        self._gate = gate
        self._who = (evictor, profile, strategy)
        self._balance = balance
        self._evictor = evictor
        self._profile = profile
        self._strategy = strategy
        self._owner_limit = owner_limit

    @property
    def steer(self) -> Steer | None:
        """What carries out waves."""
        return self._gate.steer

    @property
    def outlook(self) -> Outlook | None:
        """What earlier cycles tell of nodes and moves."""
        return self._gate.patience

    def filter_refusal(self, pod: Pod, because: Cause | str | None = None) -> Refused | None:
        """Return what protects the pod; record it if `because` is given."""
        return self._recorded(pod, because, self._evictor.protection(pod) or self._gate.surely(pod, self._own))

    def pre_eviction_refusal(self, pod: Pod, because: Cause | str | None = None) -> Refused | None:
        """Return why the pod has nowhere to go; record it if `because` is given."""
        return self._recorded(pod, because, self._gate.surely(pod, self._evictor.without_destination))

    def evictable(self, pod: Pod, because: Cause | str | None = None) -> bool:
        """Return whether the pod passes both filters; record a refusal if `because` is given."""
        return not self._recorded(pod, because, self._evictor.protection(pod) or self._gate.surely(pod, self._any))

    def each(self, listed: Iterable[tuple[Pod, Cause | str]]) -> None:
        """Ask for the eviction of each of these pods, in this order."""
        ask: Callable[[Pod, Cause], object] = self
        if not self._balance and self._gate.flies(self._evictor):
            ask = partial(self._gate.ask_ahead, *self._who, owner_limit=self._owner_limit)
        for pod, because in listed:
            ask(pod, as_cause(because))

    def first_refusal(self, pods: Sequence[Pod]) -> tuple[Pod, Refused] | None:
        """Return the first of these pods that would be refused if all were asked for in this order, and why."""
        self._gate.flight.land()
        return self._gate.first_refusal(self._evictor, pods, owner_limit=self._owner_limit, balance=self._balance)

    def try_out(self, pod: Pod) -> Refused | None:
        """Return why a pod would be refused; if it would not, it counts as gone until the present scope ends."""
        self._gate.flight.land()
        return self._gate.try_out(self._evictor, pod, owner_limit=self._owner_limit, balance=self._balance)

    def resting(self, pod: Pod, rest: timedelta) -> Refused | None:
        """Return a refusal if the pod replaced another one within this time."""
        return self._gate.cluster.index(Cooldown).refusal(pod, rest)

    def with_owner_limit(self) -> "StrategyGate":
        """Return a gate that also limits what owners without a PDB lose."""
        return StrategyGate(self._gate, *self._who, owner_limit=True, balance=self._balance)

    def refuse(self, pod: Pod, because: Cause | str, refusal: Refused) -> None:
        """Record that a pod stays because of a rule of the strategy."""
        self._gate.record(Entry(self._profile, self._strategy, pod, as_cause(because), refusal))

    def emptied(self, node: Node) -> None:
        """Tell that a node was emptied."""
        self._gate.emptied(node)

    def warn(self, what: Cause | str) -> None:
        """Put a warning into the ledger, with the strategy it comes from."""
        self._gate.ledger.warn(as_cause(what), f"{self._profile}/{self._strategy}")

    def count(self, counts: Mapping[str, int], **figures: float) -> None:
        """Add to what the strategy has counted."""
        self.observe(Observation(counts, figures))

    def observe(self, observation: Observation) -> None:
        """Add to what the strategy has looked at."""
        self._gate.ledger.look(observation)

    def __call__(self, pod: Pod, because: Cause | str, destination: Destination | None = None) -> Verdict:
        """Ask for the eviction of a pod."""
        self._gate.flight.land()
        return self._gate.ask(
            *self._who, pod, as_cause(because), destination, owner_limit=self._owner_limit, balance=self._balance
        )

    def land(self) -> None:
        """Wait for the requests that are under way.

        Raises:
            CycleStopped: nothing more may be asked for.
        """
        self._gate.flight.land()

    def stop(self, reason: str, *, rests: bool = False) -> None:
        """End the cycle: no further strategy runs."""
        self._gate.ledger.stopped = reason
        self._gate.ledger.rested = rests

    def _own(self, pod: Pod) -> Refused | None:
        return self._evictor.too_few_replicas(pod) or self._gate.impatience(pod, balance=self._balance)

    def _any(self, pod: Pod) -> Refused | None:
        return self._evictor.refusal(pod) or self._gate.impatience(pod, balance=self._balance)

    def _recorded(self, pod: Pod, because: Cause | str | None, refusal: Refused | None) -> Refused | None:
        if refusal and because is not None:
            self.refuse(pod, because, refusal)
        return refusal
