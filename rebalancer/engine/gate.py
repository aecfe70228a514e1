"""The one place where evictions are granted: protections, limits and PDBs first, the sink last.

1. The first rule that holds refuses the pod: it has left already, the plan that is applied does not name it, a
   protection, an eviction in progress, minReplicas, patience (`rebalancer.engine.patience`), a limit (all, node,
   namespace), a PDB, where a strategy asks for it the share of an owner without a PDB, and with `nodeFit: scheduler`
   that its replacement may find no node.
2. If none refuses, the sink carries the eviction out; in a dry run it only grants it.
3. If the pod goes, or may have gone, it is counted and leaves the cluster before the next pod is asked for.
4. The verdict is recorded.  At the limit on all evictions the strategy ends.

An example: a node may lose 2 pods and n1 has lost 1; a PDB allows 1 disruption.  Pod a of n1, under the PDB, is
granted: n1 has lost 2, the PDB allows 0.  Then pod b of n1 is refused by the limit, and pod c of n2 by the same PDB.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.in_flight import InFlight
from rebalancer.engine.ledger import Entry, Ledger, SteeredWaves
from rebalancer.engine.limits import Cooldown, LimitCounter, Limits, OwnerShares
from rebalancer.engine.patience import Patience
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.engine.restarts import Restarted
from rebalancer.errors import CycleOver, CycleStopped
from rebalancer.eviction.causes import Cause, Code, as_cause, cause
from rebalancer.eviction.evict import Evict, Outlook
from rebalancer.eviction.observation import Observation
from rebalancer.eviction.steering import ActualPlacement, Destination, Hold, Move, Steer, Wave
from rebalancer.eviction.verdict import GRANTED, Granted, Refused, Verdict, refused
from rebalancer.memory.document import owner_key

_NAMED = 5  # pods that are named

#: Returns what keeps a pod that has changed since it was decided upon; None if it may still go.
Recheck = Callable[[Pod], Refused | None]

#: Carries out an eviction that was granted, and returns what became of it; the only difference between a dry run and a
#: live one.  It is given the pod as it was when it was decided upon, the profile and the strategy that evict it, why,
#: and what to ask if the pod has changed meanwhile.  Raises CycleStopped where nothing more may be asked for; then this
#: eviction was not asked for either.
Sink = Callable[[Pod, str, str, Cause, Recheck], Verdict]


class Gate:
    """What the strategies of a cycle share: what is spent of limits, PDBs and shares of owners, and the sink."""

    def __init__(
        self,
        cluster: Cluster,
        limits: Limits,
        sink: Sink | None,
        ledger: Ledger,
        steer: Steer | None = None,
        hold: Hold | None = None,
        patience: Patience | None = None,
        most_in_flight: int = 1,
        restarted: Restarted = lambda _: "",
    ) -> None:
        self.cluster = cluster
        self.ledger = ledger
        self.steer = _RecordedSteer(steer, ledger, self._replaced) if steer else None
        self.hold = hold
        self.patience = patience
        self.sink = sink or self._grant
        self.most_in_flight = most_in_flight
        self.flight = InFlight(most_in_flight)
        self.limits = LimitCounter(limits, cluster.snapshot.pods)
        self.budgets = DisruptionBudgets(cluster.snapshot.budgets or (), cluster.snapshot.pods)
        self.shares = OwnerShares(cluster.snapshot.pods)
        self._restarted = restarted
        if underway := [pod for pod in cluster.snapshot.pods if pod.evacuating]:  # taken over by another controller
            for pod in underway:
                self._spend(pod)
            ledger.warn(cause(Code.STILL_IN_PROGRESS, pods=_named(sorted(map(str, underway)))))

    def asked_by(self, evictor: Evictor, profile: str, strategy: str, *, balance: bool = False) -> Evict:
        """Return the gate as one strategy of one profile sees it; with `balance` patience has more rules."""
        return _StrategyGate(self, evictor, profile, strategy, balance)

    def surely(self, pod: Pod, ask: Callable[[Pod], Refused | None]) -> Refused | None:
        """Ask about a pod, and return an answer that no eviction in flight can change."""
        if not self.flight:
            return ask(pod)
        self.flight.make_way(self.keys(pod))
        refusal = ask(pod)
        if refusal and self.flight:
            self.flight.land()
            refusal = ask(pod)
        return refusal

    def keys(self, pod: Pod) -> list[object]:
        """Return the pod's owners and PDBs: two pods that share one are never in flight at once."""
        budgets = [(budget.namespace, budget.name) for budget in self.budgets.selecting(pod)]
        return [owner_key(pod), *(owner.uid for owner in pod.owners), *budgets]

    def conclude(self, entry: Entry) -> None:
        """Count a pod that leaves, take it out, record the verdict; raises CycleOver at the limit on all evictions."""
        if entry.verdict.leaving and not isinstance(entry.verdict, Refused):
            self._spend(entry.pod)
        if entry.verdict.leaving and entry.destination:
            self.cluster.awaiting.update(entry.destination.nodes)
        if entry.verdict.gone and self.cluster.contains(entry.pod):
            self.cluster.evicted(entry.pod)
        self.ledger.record(entry)
        if isinstance(entry.verdict, Refused) and entry.verdict.cause.code is Code.TOTAL_LIMIT:
            raise CycleOver

    def over_budget(self, pod: Pod) -> Refused | None:
        """Return why a PDB forbids the eviction; it does not count where a rollout keeps the number of pods."""
        return None if self._restarted(pod) else self.budgets.refusal(pod)

    def take_for_gone(self, pod: Pod) -> None:
        """Remove a pod until the present scope ends, and count it against limits, PDBs and its owner's share."""
        self.cluster.remove(pod)
        self._spend(pod)
        self.cluster.undo_with(partial(self._spend, pod, -1))

    def _spend(self, pod: Pod, count: int = 1) -> None:
        self.limits.spend(pod, count)
        self.budgets.spend(pod, count)
        self.shares.spend(pod, count)
        if self.patience:
            self.patience.spend(pod, count)

    def _grant(self, pod: Pod, *_: object) -> Verdict:
        name = self._restarted(pod)
        return Granted(restarted=name) if name else GRANTED

    def _replaced(self, pod: Pod) -> None:
        """Give back what a pod has cost its PDB and its owner, once its replacement is Ready; limits stay spent."""
        self.budgets.spend(pod, -1)
        self.shares.spend(pod, -1)


def _in_progress(pod: Pod) -> Refused | None:
    return refused(Code.IN_PROGRESS) if pod.evacuating else None


class _RecordedSteer(Steer):
    """Writes down what it does, and ends the cycle when replacements find no node, or do not come.

    `replaced` is called with each pod whose replacement is Ready: its owner and its PDB can then spare another one.
    A wave that is planned anew, since its nodes take no pods, is not written down; one that could not be begun is.
    """

    def __init__(self, steer: Steer, ledger: Ledger, replaced: Callable[[Pod], None]) -> None:
        super().__init__(steer.min_gain, steer.keys)
        self._steer = steer
        self._ledger = ledger
        self._replaced = replaced

    def closed(self, wave: Wave) -> frozenset[str]:
        return self._steer.closed(wave)

    def begin(self, wave: Wave) -> None:
        self._ledger.waves.append(SteeredWaves(wave))
        self._steer.begin(wave)

    def settle(self, wave: Wave, moved: Sequence[tuple[Move, Verdict]]) -> tuple[ActualPlacement, ...]:
        placements = self._steer.settle(wave, moved)
        self._ledger.waves[-1] = SteeredWaves(wave, placements)
        for pod in [each.move.pod for each in placements if each.ready_seconds is not None]:
            self._replaced(pod)
        if pending := [f"{each.move.pod.namespace}/{each.replacement}" for each in placements if each.is_pending]:
            raise CycleStopped(f"replacements stay pending, so nothing more is evicted: {_named(pending)}")
        if missing := [str(each.move.pod) for each in placements if each.is_missing]:
            why = "pods were not replaced (a quota, a webhook, or an owner that was scaled down?)"
            raise CycleStopped(f"{why}, so nothing more is evicted: {_named(missing)}")
        return placements

    def end(self) -> None:
        self._steer.end()


def _named(pods: Sequence[str]) -> str:
    more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
    return ", ".join(pods[:_NAMED]) + more


@dataclass(eq=False)
class _StrategyGate:
    """The gate as one strategy of one profile sees it (`rebalancer.api.Evict`)."""

    _gate: Gate
    _evictor: Evictor
    _profile: str
    _strategy: str
    _balance: bool  # whether it evens out nodes: then patience has more rules
    _owner_limit: bool = False  # whether an owner without a PDB keeps most of its pods

    def __post_init__(self) -> None:
        self.steer: Steer | None = self._gate.steer
        self.outlook: Outlook | None = self._gate.patience

    def filter_refusal(self, pod: Pod, because: Cause | str | None = None) -> Refused | None:
        return self._recorded(pod, because, self._evictor.protection(pod) or self._gate.surely(pod, self._by_filter))

    def pre_eviction_refusal(self, pod: Pod, because: Cause | str | None = None) -> Refused | None:
        return self._recorded(pod, because, self._gate.surely(pod, self._evictor.without_destination))

    def evictable(self, pod: Pod, because: Cause | str | None = None) -> bool:
        return not self._recorded(pod, because, self._evictor.protection(pod) or self._gate.surely(pod, self._by_both))

    def each(self, listed: Iterable[tuple[Pod, Cause | str]]) -> None:
        """Ask for each of these pods, in this order; in flight only where no pod's room depends on others."""
        flies = self._gate.most_in_flight > 1 and not self._balance and not self._evictor.args.asks_scheduler
        for pod, because in listed:
            (self._ask_ahead if flies else self)(pod, as_cause(because))

    def first_refusal(self, pods: Sequence[Pod]) -> tuple[Pod, Refused] | None:
        self._gate.flight.land()
        with self._gate.cluster.scope():
            for pod in pods:
                if refusal := self._forecast(pod):
                    return pod, refusal
                if pod is not pods[-1]:
                    self._gate.take_for_gone(pod)
        return None

    def try_out(self, pod: Pod) -> Refused | None:
        self._gate.flight.land()
        refusal = self._forecast(pod)
        if not refusal:
            self._gate.take_for_gone(pod)
        return refusal

    def resting(self, pod: Pod, rest: timedelta) -> Refused | None:
        return self._gate.cluster.index(Cooldown).refusal(pod, rest)

    def with_owner_limit(self) -> "_StrategyGate":
        return replace(self, _owner_limit=True)

    def refuse(self, pod: Pod, because: Cause | str, refusal: Refused) -> None:
        """Record that a pod stays because of a rule of the strategy, after the verdicts that were asked for before."""
        entry = Entry(self._profile, self._strategy, pod, as_cause(because), refusal)
        self._gate.flight.afterwards(partial(self._gate.ledger.record, entry))

    def emptied(self, node: Node) -> None:
        if self._gate.hold:
            self._gate.cluster.hold(node)
            self._gate.ledger.held.append(self._gate.hold(node.name))

    def warn(self, what: Cause | str) -> None:
        self._gate.ledger.warn(as_cause(what), f"{self._profile}/{self._strategy}")

    def count(self, counts: Mapping[str, int], **figures: float) -> None:
        self.observe(Observation(counts, figures))

    def observe(self, observation: Observation) -> None:
        self._gate.ledger.observed += observation

    def __call__(self, pod: Pod, because: Cause | str, destination: Destination | None = None) -> Verdict:
        self._gate.flight.land()
        why = as_cause(because)
        verdict = self._refusal(pod) or self._gate.sink(pod, self._profile, self._strategy, why, self._recheck)
        self._gate.conclude(Entry(self._profile, self._strategy, pod, why, verdict, destination))
        return verdict

    def _ask_ahead(self, pod: Pod, because: Cause) -> None:
        """Decide on one pod of a list that no verdict changes, and do not wait for its own (see `in_flight`)."""
        gate, profile, strategy = self._gate, self._profile, self._strategy

        def settle(verdict: Verdict | None) -> None:
            gate.limits.spend(pod, -1)
            if verdict is not None:
                gate.conclude(Entry(profile, strategy, pod, because, verdict))

        if refusal := gate.surely(pod, self._refusal):
            gate.conclude(Entry(profile, strategy, pod, because, refusal))
            return
        gate.limits.spend(pod)
        ask = partial(gate.sink, pod, profile, strategy, because, self._recheck)
        gate.flight.send(gate.keys(pod), ask, settle)

    def _refusal(self, pod: Pod) -> Refused | None:
        gate, evictor = self._gate, self._evictor
        if not gate.cluster.contains(pod):
            return refused(Code.GONE)
        return (
            evictor.not_planned(pod)
            or evictor.protection(pod)
            or _in_progress(pod)
            or evictor.too_few_replicas(pod)
            or self._impatience(pod)
            or gate.limits.refusal(pod)
            or gate.over_budget(pod)
            or (gate.shares.refusal(pod) if self._owner_limit and not gate.budgets.select(pod) else None)
            or evictor.without_certain_room(pod)  # asked again, since others have gone since the strategy asked
        )

    def _recheck(self, pod: Pod) -> Refused | None:
        """Return what keeps a pod as it is now, which has changed since the snapshot; limits do not depend on that."""
        evictor = self._evictor
        return (
            evictor.protection(pod)
            or _in_progress(pod)
            or evictor.too_few_replicas(pod)
            or self._impatience(pod)
            or self._gate.over_budget(pod)
        )

    def _forecast(self, pod: Pod) -> Refused | None:
        evictor = self._evictor
        return evictor.protection(pod) or evictor.without_destination(pod) or self._refusal(pod)

    def _impatience(self, pod: Pod) -> Refused | None:
        patience = self._gate.patience
        return patience.refusal(pod, balance=self._balance) if patience else None

    def _by_filter(self, pod: Pod) -> Refused | None:
        return self._evictor.too_few_replicas(pod) or self._impatience(pod)

    def _by_both(self, pod: Pod) -> Refused | None:
        return self._evictor.without_destination(pod) or self._by_filter(pod)

    def _recorded(self, pod: Pod, because: Cause | str | None, refusal: Refused | None) -> Refused | None:
        if refusal and because is not None:
            self.refuse(pod, because, refusal)
        return refusal
