"""What became of the replacements of earlier moves, and the breaker that follows from it; pure functions.

1. `settled` finds the replacement of each move among the pods as they are: is it Ready, does it fail, did it come back?
2. An owner whose replacement fails is stopped for an hour, doubled each time it fails again, to a day at most.
3. Three stopped owners, or four failures among the last 20 moves, trip the breaker (`Breaker`): nothing moves for an
   hour.  Then one move is tried: if its replacement becomes Ready the breaker closes, if not an hour begins anew.

Example, readyWithin 5m: pod a-1 was evicted at 12:00; the first pod of its ReplicaSet that was created since is a-7, on
n4.  At 12:04 it is not Ready, and nothing follows; at 12:06 it counts as failed (NotReady), and its owner is stopped
until 13:06.  Had it been in CrashLoopBackOff at 12:01, that would have been enough.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from rebalancer.cluster.pod import Pod
from rebalancer.memory.document import Memory, OwnerStop, PastMove, Tripped, owner_key

#: By how much the API server's clock may be behind ours, and its times are whole seconds.
_CLOCK_SLACK = timedelta(seconds=30)
#: How long a Ready replacement is watched for a failure, and how long one is looked for: a nightly run sees it.
_WATCHED, _LOOKED_FOR = timedelta(minutes=15), timedelta(hours=26)
_STOP, _LONGEST_STOP = timedelta(hours=1), timedelta(days=1)
_BREAK = timedelta(hours=1)
_MOST_STOPPED, _LAST_MOVES, _MOST_FAILED = 3, 20, 4
_FORETOLD_OF, _FEWEST_FORETOLD, _LEAST_SHARE = 50, 20, 0.8
_DAY = timedelta(days=1)

_FAILING = frozenset(
    (
        *("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"),
        *("CreateContainerError", "CreateContainerConfigError", "RunContainerError", "OOMKilled"),
    )
)


def trouble(pod: Pod) -> str:
    """Return what is wrong with the containers of a pod, like `CrashLoopBackOff`; empty if nothing is."""
    states = (*pod.init_containers, *pod.containers)
    reasons = (reason for each in states for reason in (each.waiting, each.terminated))
    return next((reason for reason in reasons if reason in _FAILING), "Failed" if pod.phase == "Failed" else "")


def ready_at(pod: Pod) -> datetime | None:
    """Return since when a pod is Ready; None if it is not."""
    if not pod.ready:
        return None
    times = (each.changed for each in pod.conditions if each.type == "Ready" and each.status == "True")
    return next(times, None) or pod.started or pod.created


def is_open(move: PastMove, now: datetime, ready_within: timedelta) -> bool:
    """Return whether the replacement of a move is still waited for."""
    return move.ready is None and not (move.failed or move.was_unready) and now - move.at <= ready_within


def settled(
    memory: Memory, pods: Iterable[Pod], now: datetime, ready_within: timedelta, known: Container[str] | None = None
) -> Memory:
    """Return the memory with what the pods show of replacements, and the owners that are stopped for it.

    Given are all pods of the owners whose moves are to be settled, as they were read at `now`; `known` are UIDs of pods
    that were there before the moves, and None compares times instead.
    """
    due = [each for each in memory.moves if _is_watched(each, now, ready_within)]
    if not due:
        return memory
    siblings: dict[tuple[str, str], list[Pod]] = {each.key: [] for each in due}
    for pod in pods:
        if (key := owner_key(pod)) in siblings:
            siblings[key].append(pod)
    for of_owner in siblings.values():
        of_owner.sort(key=lambda pod: pod.age_order)
    taken = {uid for each in memory.moves for uid in (each.pod, each.replacement) if uid}
    after = {}
    for move in due:
        oldest, there = move.at - _CLOCK_SLACK, siblings[move.key]
        if move.replacement:  # it was seen before
            came = (pod for pod in there if pod.uid == move.replacement)
        else:
            latest = _latest(move, ready_within)  # later ones are of a rollout, or replace what others took
            new = (x for x in there if (oldest <= x.created <= latest if known is None else x.uid not in known))
            came = (pod for pod in new if pod.uid not in taken)
        if first := next(came, None):
            taken.add(first.uid)
            after[id(move)] = _seen(move, first, now, ready_within)
    moves = tuple(after.get(id(each), each) for each in memory.moves)
    failed = [new for old, new in zip(memory.moves, moves, strict=True) if new.failed and not old.failed]
    came_back = sum(new.undone and not old.undone for old, new in zip(memory.moves, moves, strict=True))
    return replace(memory, moves=moves, stops=_stopped(memory.stops, failed, now), undone=memory.undone + came_back)


def _latest(move: PastMove, ready_within: timedelta) -> datetime:
    """Return the latest time of what may still come of a move; the run that looks may be hours later."""
    return move.at + max(_WATCHED, ready_within)


def _is_watched(move: PastMove, now: datetime, ready_within: timedelta) -> bool:
    """Return whether there is something to learn of a move: cycles may be hours apart, so of a new one always."""
    if move.failed or now - move.at > _LOOKED_FOR:
        return False
    return move.ready is None or now <= _latest(move, ready_within)


def _seen(move: PastMove, pod: Pod, now: datetime, ready_within: timedelta) -> PastMove:
    ready = ready_at(pod)
    if ready and ready > _latest(move, ready_within):  # it was Ready before, and again after a restart
        ready = pod.started or pod.created
    ready = ready and min(ready, now)  # by the node's clock, which may be ahead
    failed = "" if move.was_unready else trouble(pod)
    if not (failed or move.was_unready) and ready is None and move.ready is None and now - move.at > ready_within:
        failed = "NotReady" if pod.node else "Pending"
    return replace(
        move,
        replacement=pod.uid,
        landed=pod.node,
        ready=move.ready or ready,
        failed=failed,
        undone=move.undone or (bool(pod.node) and pod.node == move.source),
    )


def _stopped(stops: Sequence[OwnerStop], failed: Iterable[PastMove], now: datetime) -> tuple[OwnerStop, ...]:
    found = {each.key: each for each in stops if now - each.until < _DAY}
    for move in failed:
        before = found.get(move.key)
        if before and before.since == now:
            continue  # another replacement of it failed at the same time
        times = before.times + 1 if before else 1
        until = now + min(_STOP * 2 ** min(times - 1, 10), _LONGEST_STOP)
        found[move.key] = OwnerStop(
            namespace=move.namespace, owner=move.owner, since=now, until=until, times=times, why=move.failed
        )
    return tuple(found[key] for key in sorted(found))


@dataclass(frozen=True, slots=True)
class Breaker:
    """What a run may do."""

    tripped: Tripped | None = None  # as it is to be remembered; None if it is closed
    stopped: str = ""  # why nothing may be moved; empty if something may
    is_trial: bool = False  # whether one move may be made
    counted_from: datetime | None = None  # failures before it do not count any more

    @property
    def words(self) -> str:
        """Why nothing may be moved, for people; empty if something may."""
        return f"the breaker is open: {self.stopped}" if self.stopped else ""

    def of(self, memory: Memory) -> Memory:
        """Return the memory with this breaker."""
        return replace(memory, breaker=self.tripped, counted_from=self.counted_from)


def judged(memory: Memory, now: datetime, ready_within: timedelta) -> Breaker:
    """Return the breaker as it follows from the moves that were settled; a trial that shows nothing in time failed."""
    before = memory.breaker
    if before is not None:
        if now < before.until:
            return Breaker(before, before.why, counted_from=memory.counted_from)
        trial = [each for each in memory.moves if each.at >= before.until]
        is_lost = trial and not any(each.ready or now - each.at <= ready_within for each in trial)
        if is_lost or any(each.failed for each in trial):
            how = trial[-1].failed or trial[0].failed or "nothing came that is Ready"
            why = f"the move that was tried failed too ({how}): {before.why}"
            return _tripped(why[:500], now, memory.counted_from)
        if not any(each.ready for each in trial):
            waiting = "the replacement of the move that is tried is not Ready yet"
            return Breaker(before, waiting if trial else "", not trial, memory.counted_from)
    since = before.until if before else memory.counted_from
    why = _why(memory, [each for each in memory.moves if since is None or each.at >= since], now)
    return _tripped(why, now, since) if why else Breaker(counted_from=since)


def _tripped(why: str, now: datetime, since: datetime | None) -> Breaker:
    return Breaker(Tripped(since=now, until=now + _BREAK, why=why), why, counted_from=since)


def _why(memory: Memory, counted: Sequence[PastMove], now: datetime) -> str:
    last = counted[-_LAST_MOVES:]
    failed = [each for each in last if each.failed]
    recent = {each.key for each in counted if each.failed}
    stopped = sorted({each.key for each in memory.stops if each.until > now} & recent)
    if len(stopped) >= _MOST_STOPPED:
        names = ", ".join("/".join(key) for key in stopped[:_MOST_STOPPED])
        return f"replacements of {len(stopped)} owners fail: {names}"[:500]
    if len(failed) >= _MOST_FAILED:
        reasons = ", ".join(sorted({each.failed for each in failed}))
        return f"{len(failed)} of the last {len(last)} replacements fail: {reasons}"[:500]
    return ""


def missed(memory: Memory, now: datetime) -> tuple[int, int] | None:
    """Return hits among the day's last 20 to 50 replacements, and their number, if fewer than 4 of 5; else None."""
    known = [each for each in memory.moves if each.landed and each.foretold and now - each.at <= _DAY][-_FORETOLD_OF:]
    hits = sum(each.landed in each.foretold for each in known)
    return (hits, len(known)) if len(known) >= _FEWEST_FORETOLD and hits < _LEAST_SHARE * len(known) else None


def with_moves(memory: Memory, moves: Sequence[PastMove]) -> Memory:
    """Return the memory with the moves of a cycle; a pod that replaced another one undoes the move that brought it."""
    gone = {each.pod for each in moves if each.pod}
    undone = [each for each in memory.moves if each.replacement in gone and each.replacement and not each.undone]
    marked = {id(each) for each in undone}
    known = tuple(replace(each, undone=True) if id(each) in marked else each for each in memory.moves)
    return replace(memory, moves=(*known, *moves), undone=memory.undone + len(undone))
