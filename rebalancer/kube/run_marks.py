"""The marks of one run: noted before the first one, set only while writes may begin, and always taken off at the end.

A request to set a mark may get no answer, and the API server may still carry it out later.  So marks are taken off all
nodes that may have one, and once more, 5 s after such a request was given up, off those that it was about.

Which runs may have left soft taints on nodes is noted in the Lease, where a kubelet cannot write:

    metadata.annotations  kube-rebalancer/runs: [{"run": "20260115T120000Z-9f3a11c2",
                                                  "keys": ["kube-rebalancer/avoid", "kube-rebalancer/avoid-more"],
                                                  "expires": "2026-01-15T12:07:00Z"}]

Only this record, and no node's annotation, makes a taint ours and says that a run is at work.  A run notes itself
before its first taint, and removes the note when nothing of it can be left on any node.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.kube.client import Client
from rebalancer.kube.leases import Leases
from rebalancer.kube.marks import HoldMarks, Mark, MarkedNode, SteeringMarks, Wanted, without_run
from rebalancer.kube.node_marks import CONFLICTS, NodeMarks, Problems, on_each
from rebalancer.kube.tries import Deadline, Halt, RetryPolicy
from rebalancer.kube.wire.annotations import read_note

#: Seconds for all nodes together, to set marks and to take them off.
SET_SECONDS = 60.0
TAKE_OFF_SECONDS = 20.0
#: The same after a signal: a pod gets 30 s to end by default, also for an eviction on its way, Events and the Lease.
#: What stays is on record, and the next run takes it off.
HURRIED_TAKE_OFF_SECONDS = 10.0
_DOUBT_SECONDS = 5.0  # how long an API server may still act on a request that it has not answered, in seconds
_LOG = logging.getLogger(__name__)
#: Under this name `rebalancer mark` notes what it sets; its keys are KEY=VALUE of labels and taints.
_MARKING = "mark"
RUNS = "kube-rebalancer/runs"
_MOST = 50  # so many runs are remembered, the last ones


class Taken(ClusterError):  # noqa: N818  named like the rest of the tree
    """The node carries the mark of another run that may still be at work."""


@dataclass(slots=True)
class RunMarks:
    """Sets and takes off the marks of one run."""

    client: Client
    kind: SteeringMarks
    mark: Mark  # the run and the expiry; the keys depend on each node's level
    halt: Halt  # checked before a mark is set, but not when marks are taken off
    may_replace: Callable[[Mark], bool]  # says whether another run's mark may be replaced by ours
    retry_policy: RetryPolicy = CONFLICTS
    note: Callable[[Mark], None] = lambda _: None  # called before the first mark is set
    is_noted: bool = False
    _levels: dict[str, int] = field(default_factory=dict)
    _doubts: dict[str, float] = field(default_factory=dict)

    def adjust(self, levels: Mapping[str, int]) -> Problems:
        """Set marks at these levels, and take off the run's other marks; return what went wrong, by the node's name.

        A level is the number of taints, that of a held node among them; nodes that need no change are not written.
        """
        wanted = {name: level for name, level in levels.items() if level}
        needless = {name: 0 for name in self._levels if name not in wanted}
        due = {name: level for name, level in (needless | wanted).items() if self._levels.get(name) != level}
        if due and not self.is_noted:
            self.note(msgspec.structs.replace(self.mark, keys=self.kind.at(2)))
            self.is_noted = True
        deadline = Deadline.after(SET_SECONDS, self.retry_policy.clock)
        return on_each(due, lambda name: self._adjust(name, due[name], deadline))

    @property
    def doubted(self) -> tuple[str, ...]:
        """Nodes that may still get a mark, by a request that had no answer: an API server may carry it out late."""
        return tuple(sorted(self._doubts))

    def recount(self, name: str) -> None:
        """Look at a node again when marks are set the next time: it was held or released meanwhile."""
        if name in self._levels:
            self._levels[name] = -1

    def take_off(self) -> Problems:
        """Take off all marks that this run has set or may have set; return what went wrong, by node."""
        is_hurried = self.halt.signalled.is_set()
        deadline = Deadline.after(HURRIED_TAKE_OFF_SECONDS if is_hurried else TAKE_OFF_SECONDS, self.retry_policy.clock)
        take_off = partial(self._take_off, deadline=deadline)
        problems = on_each(self._levels, take_off)
        if not self._doubts:
            return problems
        # Until then an unanswered request of ours can still have an effect.
        left = max(self._doubts.values()) + _DOUBT_SECONDS - self.retry_policy.clock()
        self.retry_policy.wait(max(0.0, left))
        settled = {name: error for name, error in problems.items() if name not in self._doubts}
        return settled | on_each(self._doubts, take_off)

    def _adjust(self, name: str, level: int, deadline: Deadline) -> None:
        if not level:
            self._take_off(name, deadline)
            return
        self._levels[name] = -1  # from here on the node may have a mark, at an unknown level
        retry_policy = replace(self.retry_policy, stop=self.halt.signalled)
        writer = NodeMarks(self.client, retry_policy, self.halt.check, self._doubt)
        writer.change(name, partial(self._with, level=level), deadline)
        self._levels[name] = level

    def _with(self, node: MarkedNode, level: int) -> Wanted:
        """Return the node at a level; the taint of a held node counts as one."""
        keys = self.kind.at(level - bool(HoldMarks().taints(node)))
        mark, found = msgspec.structs.replace(self.mark, keys=keys), self.kind.read(node)
        if found and found.run != mark.run and not self.may_replace(found):
            raise Taken(f"node {node.name} carries the mark of run {found.run}, which may be at work until it expires")
        return self.kind.on(node, mark) if keys else self.kind.off(node)

    def _take_off(self, name: str, deadline: Deadline) -> None:
        NodeMarks(self.client, self.retry_policy).change(name, partial(without_run, run=self.mark.run), deadline)
        self._levels.pop(name, None)

    def _doubt(self, name: str) -> None:
        self._doubts[name] = self.retry_policy.clock()


class RunRecord:
    """The record in one Lease, whoever holds that; a run goes on with a warning where it cannot be read or written."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    def read(self, what: str = "which runs have left soft taints cannot be read") -> tuple[Mark, ...] | None:
        """Return the runs that are noted, the oldest first; None where the Lease cannot be read, with a warning."""
        try:
            found = self._leases.read()
        except ClusterError as error:
            _LOG.warning("%s: %s", what, error)
            return None
        return _noted(found.annotations) if found else ()

    def note(
        self, mark: Mark, what: str = "this run cannot be noted, so its soft taints are found by their keys alone"
    ) -> None:
        """Note a run; its keys and its expiry are those of the mark."""
        self._change(what, lambda noted: [*(each for each in noted if each.run != mark.run), mark][-_MOST:])

    def forget(self, runs: Collection[str]) -> None:
        """Remove the notes of these runs: one that stays does no harm."""
        kept = "runs that have ended stay in the record"
        self._change(kept, lambda noted: [each for each in noted if each.run not in runs])

    def signs(self) -> frozenset[str]:
        """Return the labels and taints that were ever ours, as KEY=VALUE; none where the Lease cannot be read."""
        found = self.read("which labels and taints were ours before cannot be read") or ()
        return frozenset(key for each in found if each.run == _MARKING for key in each.keys)

    def note_signs(self, signs: Collection[str]) -> None:
        """Note labels and taints as ours before they are set; where that fails, those of the rules are still found."""
        known = self.signs()
        if not known.issuperset(signs):
            keys = (*sorted(signs), *sorted(known.difference(signs)))[:_MOST]
            mark = Mark(_MARKING, keys, datetime.now(UTC))
            self.note(mark, "labels and taints cannot be noted, and stay when the rules change")

    def _change(self, what: str, change: Callable[[Sequence[Mark]], Sequence[Mark]]) -> None:
        def annotations(before: Mapping[str, str]) -> Mapping[str, str]:
            runs = _noted(before)
            after = change(runs)
            if after == runs:
                return before
            others = {key: value for key, value in before.items() if key != RUNS}
            return {**others, **({RUNS: f"[{','.join(each.text() for each in after)}]"} if after else {})}

        try:
            self._leases.annotate(annotations)
        except ClusterError as error:
            _LOG.warning("%s: %s", what, error)


def _noted(annotations: Mapping[str, str]) -> tuple[Mark, ...]:
    """Return the runs that are noted; an entry that cannot be read is left out, and the others count."""
    entries = read_note(annotations.get(RUNS), tuple[msgspec.Raw, ...]) or ()
    return tuple(mark for each in entries if (mark := read_note(each, Mark)))
