"""What a cycle knows of earlier ones, from the text of the memory; no I/O.

1. `recalled`: what is absent is new; what is corrupt, of a later version or forbidden makes balance strategies rest in
   this cycle, since they cannot know what they would repeat.
2. `recollect`: the snapshot shows what became of the moves that are remembered, and the breaker is judged by that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from rebalancer.cluster.pod import LONG_AGO
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.ledger import Entry
from rebalancer.engine.patience import Recollection, resting
from rebalancer.eviction.causes import Code, cause
from rebalancer.memory.document import Memory, NewerMemory, PastMove, decoded, owner_of
from rebalancer.memory.settling import judged, missed, settled
from rebalancer.policy.trust import Trust
from rebalancer.untrusted.documents import Unreadable


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was read: the memory, or why there is none.

    Attributes:
        memory: None if nothing is known.
        problem: why it cannot be used; empty if it can, or is absent.
        is_ours: whether it may be written: not one of a later version, and not without permission.
    """

    memory: Memory | None
    problem: str = ""
    is_ours: bool = True


#: Nothing was moved before, as far as is known: for a snapshot file that says nothing about it.
NOTHING = Recalled(Memory(since=LONG_AGO))


def recalled(data: Mapping[str, str], name: str, now: datetime) -> Recalled:
    """Return the memory that a ConfigMap holds."""
    try:
        return Recalled(decoded(data, now))
    except NewerMemory as error:
        return Recalled(None, f"the memory {name} is not used: {error}", is_ours=False)
    except Unreadable as error:
        return Recalled(None, f"the memory {name} is corrupt: {error}")


def recollect(found: Recalled, settings: Trust, snapshot: Snapshot) -> Recollection:
    """Return what a cycle on this snapshot knows of earlier ones.

    Args:
        found: the memory as it was read.
        settings: the policy's.
        snapshot: shows what became of moves.
    """
    now = snapshot.now
    memory = found.memory or Memory(since=now)
    memory = settled(memory, snapshot.pods, now, settings.ready_within)
    breaker = judged(memory, now)
    memory = replace(memory, breaker=breaker.tripped)
    rests = resting(Code.MEMORY_UNUSABLE, f"nothing is balanced in this cycle: {found.problem}")
    off = missed(memory, now)
    astray = cause(Code.FORECAST_MISSED, hits=off[0], of=off[1]) if off else None
    skipped = f"the breaker is open: {breaker.stopped}" if breaker.stopped else ""
    return Recollection(
        settings,
        memory,
        rests if found.problem else astray,
        is_new=found.memory is None,
        skipped=skipped,
        is_trial=breaker.is_trial,
    )


def past_move(entry: Entry, at: datetime, cycle: datetime) -> PastMove:
    """Return an eviction as it is remembered."""
    pod, owner = entry.pod, entry.pod.controller
    return PastMove(
        at=at,
        cycle=cycle,
        namespace=pod.namespace,
        owner=owner_of(pod),
        controller=owner.uid if owner else "",
        template=pod.labels.get("pod-template-hash", ""),
        pod=pod.uid,
        source=pod.node,
        foretold=tuple(entry.destination.nodes[:64]) if entry.destination else (),
        strategy=entry.strategy,
    )


def told(recollection: Recollection | None) -> Iterator[str]:
    """Yield what the reader of a report should know of the memory."""
    if recollection and recollection.is_new and not recollection.rests:
        yield "nothing is remembered of earlier cycles: balance strategies move one pod of each owner at most"
