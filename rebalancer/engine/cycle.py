"""One pass over the cluster: the strategies of all profiles in the descheduler's order."""

import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.gate import Gate, Sink
from rebalancer.engine.ledger import Entry, Ledger, Notice
from rebalancer.engine.limits import Limits
from rebalancer.engine.patience import Patience, Recollection
from rebalancer.engine.restarts import restarting
from rebalancer.engine.strategy import Strategy
from rebalancer.errors import CycleOver, CycleStopped, StrategyError
from rebalancer.eviction.causes import Cause, Code, as_cause, cause
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.steering import Destination, Hold, Steer
from rebalancer.eviction.verdict import Refused
from rebalancer.policy.arguments import Namespaces
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.policy.moving import most
from rebalancer.policy.windows import ALWAYS, Schedule

if TYPE_CHECKING:
    from rebalancer.scheduling.worlds import Worlds  # a kube-scheduler: only where it was asked

_LOG = logging.getLogger(__name__)
_FEWEST_NODES = 2
#: More than this share of the candidates is said first, with so many of the reasons.
_MUCH = 0.1
_NAMED = 3
_DECIMALS = 9  # smaller differences of shares are floating-point noise


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """A profile made ready to run: its strategies with their arguments, in order."""

    name: str
    evictor: DefaultEvictorArgs
    deschedule: tuple[Strategy[Any], ...] = ()
    balance: tuple[Strategy[Any], ...] = ()
    schedule: Schedule = ALWAYS
    only: Collection[str] | None = None  # UIDs of the pods that may go, as a plan names them; None for any


#: Entered for as long as a strategy runs, with the names of its profile and of itself.
Around = Callable[[str, str], AbstractContextManager[object]]


def run_cycle(
    cluster: Cluster,
    profiles: Iterable[ProfilePlan],
    limits: Limits,
    sink: Sink | None,
    timer: Callable[[], float],
    observe: Callable[[Entry], None] = lambda _: None,
    around: Around = lambda *_: nullcontext(),
    steer: Steer | None = None,
    hold: Hold | None = None,
    recollection: Recollection | None = None,
    most_in_flight: int = 1,
) -> Ledger:
    """Run deschedule strategies of all profiles, then balance strategies of all profiles, and return the ledger.

    A strategy that fails does not stop the others.  With fewer than two ready nodes nothing runs, since nothing could
    move (the descheduler's rule).

    Without a `sink` all is granted, and nothing done: a dry run.  `timer` returns seconds; `around` returns what is
    entered around each strategy, and `observe` hears of every entry as it is recorded.  Without `steer` and `hold`
    nothing is steered or held, and without a recollection this cycle decides alone.  `most_in_flight` evictions may be
    under way at once, where their order does not matter.  Raises UsageError if an evictor's arguments do not fit the
    cluster.
    """
    if recollection and recollection.is_trial:
        limits = replace(limits, total=1 if limits.total is None else min(1, most(limits.total, 1)))
    ledger = Ledger(observe=observe, limits=limits)
    restarted = restarting(recollection.settings if recollection else None, cluster)
    plans = [(profile, Evictor(cluster, profile.evictor, profile.only, restarted)) for profile in profiles]
    if len(cluster.nodes) < _FEWEST_NODES:
        ledger.skipped = f"moving pods takes {_FEWEST_NODES} ready nodes, and the policy selects {len(cluster.nodes)}"
        return ledger
    if recollection and recollection.skipped:
        ledger.skipped = recollection.skipped
        return ledger
    for notice in (notice for _, evictor in plans for notice in evictor.notices):
        ledger.warn(as_cause(notice))
    patience = Patience(recollection, cluster) if recollection else None
    gate = Gate(cluster, limits, sink, ledger, steer, hold, patience, most_in_flight, restarted)
    steps = [(profile, evictor, strategy, False) for profile, evictor in plans for strategy in profile.deschedule]
    steps += [(profile, evictor, strategy, True) for profile, evictor in plans for strategy in profile.balance]
    for profile, evictor, strategy, balance in steps:
        start = timer()
        if idle := _idle(profile, patience if balance else None, cluster.now):
            ledger.warn(idle, f"{profile.name}/{strategy.name}")
            ledger.close_run(profile.name, strategy.name, 0.0, None, _namespaces(strategy.args))
            continue
        with around(profile.name, strategy.name):
            asking = gate.asked_by(evictor, profile.name, strategy.name, balance=balance)
            error = ledger.stopped or _run(strategy, gate, asking)
        ledger.close_run(profile.name, strategy.name, timer() - start, error, _namespaces(strategy.args))
    gate.flight.close()
    widen_destinations(ledger, cluster)
    tell_unknown(ledger)
    return ledger


def _idle(profile: ProfilePlan, patience: Patience | None, now: datetime) -> Cause | None:
    if closed := profile.schedule.closed(now):
        return cause(Code.OUTSIDE_WINDOW, message=closed)
    return patience.rests if patience else None


def _namespaces(args: object) -> tuple[str, ...]:
    namespaces = getattr(args, "namespaces", None)
    return namespaces.include if isinstance(namespaces, Namespaces) else ()


def _run(strategy: Strategy[Any], gate: Gate, asking: Evict) -> str | None:
    try:
        # What a strategy expects is forgotten when it ends; what was evicted stays gone.
        with gate.cluster.scope():
            try:
                strategy.run(gate.cluster, asking)
            finally:
                gate.flight.land()
    except CycleOver:
        return None
    except CycleStopped as stop:
        gate.ledger.stopped = stop.reason
        return stop.reason
    except StrategyError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  a strategy may be foreign code; the others run all the same
        _LOG.debug("strategy %s failed", strategy.name, exc_info=True)
        return f"{type(error).__name__}: {error}"
    return None


def widen_destinations(ledger: Ledger, cluster: Cluster) -> None:
    """Name in each destination all nodes where the replacement lands in some possible history, with their shares.

    The first node stays the one that the plan counts on.  To be called when the cycle's evictions are all decided.
    """
    gone = [each for each in (*ledger.evictions, *ledger.unknown) if each.destination]
    if not any(each.destination.shares for each in gone if each.destination):
        return
    from rebalancer.scheduling.worlds import Worlds  # noqa: PLC0415  as above

    worlds = cluster.index(Worlds)
    worlds.played({each.pod: each.destination.nodes[0] for each in gone if each.destination})
    ledger.evictions[:] = [_wider(each, worlds) for each in ledger.evictions]
    ledger.unknown[:] = [_wider(each, worlds) for each in ledger.unknown]


def tell_unknown(ledger: Ledger) -> None:
    """Say first if more than a tenth of the candidates stay since it is not known where they would land."""
    found = {}
    for entry in ledger.refusals:
        why = entry.verdict.cause if isinstance(entry.verdict, Refused) else None
        if why and why.code is Code.NO_DESTINATION and "unknown" in why.details:
            found[entry.pod.key] = str(why.details["unknown"])
    candidates = {each.pod.key for each in (*ledger.evictions, *ledger.unknown, *ledger.refusals)}
    if len(found) > _MUCH * len(candidates):
        reasons = "; ".join(sorted(set(found.values()))[:_NAMED])
        told = cause(Code.LANDINGS_UNKNOWN, pods=len(found), candidates=len(candidates), reasons=reasons)
        ledger.warnings.insert(0, Notice(told, ""))


def _wider(entry: Entry, worlds: "Worlds") -> Entry:
    from rebalancer.scheduling.worlds import SAMPLES  # noqa: PLC0415  as above

    shares = worlds.shares(entry.pod)
    if entry.destination is None or not entry.destination.shares or not shares:  # without: it has landed
        return entry
    expected, because = entry.destination.nodes[0], entry.because
    destination = Destination.among(expected, shares)
    lands_on, others = because.details.get("lands_on"), [*destination.nodes[1:]]
    missing = SAMPLES * round(1 - sum(shares.values()), _DECIMALS)  # in a drawn order it fits nowhere
    nowhere = max(int(missing), 1) if missing else 0
    if lands_on and (others or nowhere):  # then the expected node is never said to be that in all histories
        often = min(round(shares.get(expected, 0.0) * SAMPLES), SAMPLES - nowhere - 1) if others else SAMPLES - nowhere
        few = {name: count for name, count in (("more", destination.more), ("nowhere", nowhere)) if count}
        seen = {"worlds": often, "of": SAMPLES, "else": others, **few}
        because = because.with_details(lands_on={**lands_on, **seen})
    return msgspec.structs.replace(entry, because=because, destination=destination)
