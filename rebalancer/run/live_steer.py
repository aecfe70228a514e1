"""Waves on a live cluster: mark nodes before the evictions, then see where the replacements land.

0. `closed`: look whether the node that the wave goes to still takes pods; if not, another wave is planned.
1. `begin`: stop if less than the settle time is left before the deadline; wait until earlier replacements of the same
   owners are Ready; look which owners are being deleted and which pods other PDBs select, for these stay; note which
   pods exist; mark the nodes to avoid; give kube-scheduler 1 s to see the marks.
2. The engine evicts the pods of the wave.
3. `settle`: look at the pods after 0, 0.5, 1.5, 3.5, 6.5, 9.5 s and so on, until each replacement is Ready or its time
   (60 s by default) is up.  Example: two replacements are Ready at 2 s and 5 s; the look at 6.5 s ends the wave.
4. `end`, after the last wave: take all marks off.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.errors import ClusterError, CycleStopped, Forbidden
from rebalancer.eviction.steering import ActualPlacement, Move, Steer, Wave
from rebalancer.eviction.verdict import Granted, Refused, Unknown, Verdict
from rebalancer.kube.node_marks import Problems
from rebalancer.kube.run_marks import RunMarks
from rebalancer.kube.tries import Deadline
from rebalancer.policy.moving import Steering, avoid_keys
from rebalancer.run.live import LiveSink
from rebalancer.run.watch import budgets_now, ending_owners, siblings_now, why_closed

_LOG = logging.getLogger(__name__)
_WATCHERS_SECONDS = 1.0  # time for kube-scheduler to see the marks before the first pod goes
_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.5, 3.0  # between two looks at the pods: at first, and at most
#: For one look at the pods of a wave; one that fails is followed by another.  After a signal there are 30 s for all.
_LOOK_SECONDS, _HURRIED_LOOK_SECONDS = 10.0, 3.0
_NAMED = 3  # nodes that are named where several have a problem
_FEW = 3  # each of so few likely nodes is looked at before a wave; of more, the scheduler takes another one
_NODE_SECONDS = 10.0  # to look at one node
_AFTER_GRACE_SECONDS = 10.0  # time for a replacement to be created and bound once the old pod is gone


@dataclass(slots=True)
class _Arrival:
    """What is known of the replacement of one pod, followed from the eviction until it is bound and Ready.

    A replacement is a pod of the same controller that was not there before the wave.  Some controllers (StatefulSets)
    wait until the old pod is gone: while it is seen, the wait lasts at least its grace period and 10 s.
    """

    move: Move
    verdict: Verdict  # on the eviction
    until: float  # when the wait for it ends, in seconds after the evictions
    is_expected: bool  # whether a replacement can come: the pod has a controller, and has gone
    seen: Pod | None = None
    ready_seconds: float | None = None  # when it was first seen Ready

    def look(self, by_uid: Mapping[str, Pod]) -> None:
        """See whether the old pod is still there, and its replacement; if that has gone, wait for the next one."""
        old = by_uid.get(self.move.pod.uid)
        if old and old.terminating and self.seen is None:
            self.until = max(self.until, old.grace_seconds + _AFTER_GRACE_SECONDS)
        elif old and not old.terminating and isinstance(self.verdict, Unknown):
            self.is_expected = False  # it was in doubt, and may not have gone at all
        self.seen = by_uid.get(self.seen.uid) if self.seen else None
        if self.seen is None or _is_out(self.seen):
            self.seen = self.ready_seconds = None

    def first(self, free: Iterable[Pod], restarted: str) -> Pod | None:
        """Return the new pod that replaces this one: the one with its name if any, else the oldest of its controller.

        After a rollout it is of another ReplicaSet; the names of its pods begin with that of the Deployment.
        """
        owner, name = owner_uid(self.move.pod), self.move.pod.name
        mine = (x for x in free if (x.name.rsplit("-", 2)[0] == restarted if restarted else owner_uid(x) == owner))
        return min(mine, key=lambda pod: (pod.name != name, pod.created, pod.name), default=None)

    def is_over(self, seconds: float) -> bool:
        """Return whether the wait is over: the replacement is Ready, or its time is up."""
        return not self.is_expected or self.ready_seconds is not None or seconds >= self.until

    def placement(self, *, is_over: bool) -> ActualPlacement:
        """Return what became of the replacement; unless the wait is over, one may still come, or get a node."""
        node = (self.seen.node or None) if self.seen else None
        name = self.seen.name if self.seen and (node or is_over) else ""
        # Another controller moves such a pod in its own time: its replacement may come later.
        by_others = isinstance(self.verdict, Refused) or (isinstance(self.verdict, Granted) and self.verdict.background)
        is_missing = is_over and self.is_expected and not by_others and self.seen is None
        return ActualPlacement(self.move, node, name, self.ready_seconds, is_missing)


def owner_uid(pod: Pod) -> str:
    """Return the UID of the controller that replaces a pod; empty where none does."""
    return pod.controller.uid if pod.controller else ""


def _is_ready(pod: Pod) -> bool:
    return pod.ready or pod.phase == "Succeeded"  # it has done its work


def _is_out(pod: Pod) -> bool:
    """Return whether the controller of a pod does not count it any more; as an object it may stay."""
    return pod.terminating or pod.phase == "Failed"


@contextmanager
def _looking(what: str) -> Iterator[None]:
    try:
        yield
    except ClusterError as error:
        raise CycleStopped(f"{what} could not be looked at: {error}") from error


class LiveSteer(Steer):
    """Carries waves out live, and none that would not settle before the deadline.

    The sink hears of owners that are being deleted, and of pods that other PDBs select; `barred` nodes take no pods.
    """

    def __init__(
        self, sink: LiveSink, marks: RunMarks, steering: Steering, snapshot: Snapshot, barred: Mapping[str, str]
    ) -> None:
        super().__init__(steering.min_gain, avoid_keys(steering.key))
        self.left: Problems = {}  # why marks could not be taken off, by the node's name
        self.marks = marks
        self._sink, self._client, self._halt = sink, sink.client, sink.halt
        self._barred = barred
        self._budgets = DisruptionBudgets(snapshot.budgets or ())
        self._nodes = {each.name: each for each in snapshot.nodes}
        self._settle_seconds = steering.settle.total_seconds()
        self._known: frozenset[str] = frozenset()
        self._unready: set[str] = set()
        self._has_ended_for_good = False

    def closed(self, wave: Wave) -> frozenset[str]:
        """Return the nodes that a wave counts on and that take no pods any more."""
        found = set()
        for name in sorted({name for each in wave.moves if len(each.likely) <= _FEW for name in each.likely}):
            until = Deadline.after(_NODE_SECONDS, self._halt.deadline.clock)
            with _looking("a node that pods should go to"):
                why = self._barred.get(name) or why_closed(self._client, self._nodes[name], self.keys, until)
            if why:
                found.add(name)
                _LOG.warning("nothing more is sent to node %s in this run: %s", name, why)
        return frozenset(found)

    def begin(self, wave: Wave) -> None:
        """Mark the nodes that the wave avoids, and no others, and give kube-scheduler time to see it.

        Raises CycleStopped if the run is told to end, the deadline is near, a node cannot be marked, or an earlier
        replacement is not Ready.
        """
        self._demand_time()
        self._demand_ready(wave)
        self._close_changed(wave)
        self._known = frozenset(pod.uid for pod in self._pods(wave))
        problems = self.marks.adjust(wave.avoid)
        self._demand_time()
        if problems:
            raise CycleStopped(f"nodes could not be marked, so nothing more is evicted: {in_words(problems)}")
        _LOG.info("a wave of %d pods begins; %d nodes are avoided", len(wave.moves), len(wave.avoid))
        self._sink.sleep(_WATCHERS_SECONDS)

    def settle(self, wave: Wave, moved: Sequence[tuple[Move, Verdict]]) -> tuple[ActualPlacement, ...]:
        """Wait until the replacements are bound and Ready, their time is up, or the run ends; return where they are."""
        arrivals = [_Arrival(move, was, self._settle_seconds, bool(owner_uid(move.pod))) for move, was in moved]
        clock = self._halt.deadline.clock
        began, pause = clock(), _FIRST_LOOK_SECONDS
        while True:
            seconds = clock() - began
            try:
                self._look(arrivals, self._see(wave, self._look_until()), seconds)
            except ClusterError as error:
                _LOG.warning("where replacements are could not be looked at: %s", error)
            seconds = clock() - began
            if self._halt.reason or all(each.is_over(seconds) for each in arrivals):
                break
            self._sink.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_SECONDS)
        is_over = not self._halt.reason
        found = tuple(each.placement(is_over=is_over) for each in arrivals)
        self._unready |= {owner_uid(each.move.pod) for each in found if each.node and each.ready_seconds is None}
        return found

    def _look(self, arrivals: Sequence[_Arrival], pods: Sequence[Pod], seconds: float) -> None:
        """Record which replacements are there now."""
        by_uid = {pod.uid: pod for pod in pods}
        for each in arrivals:
            each.look(by_uid)
        taken = {each.seen.uid for each in arrivals if each.seen}
        new = [pod for pod in pods if owner_uid(pod) and not (pod.uid in self._known or _is_out(pod))]
        for each in (each for each in arrivals if each.is_expected):
            free = (pod for pod in new if pod.uid not in taken)
            each.seen = each.seen or each.first(free, self._sink.restarted(each.move.pod))
            if each.seen:
                taken.add(each.seen.uid)
                if _is_ready(each.seen) and each.ready_seconds is None:
                    each.ready_seconds = seconds

    def end(self) -> None:
        """Take all marks off; `left` names the nodes whose marks stay.  After a signal that is done once, for good."""
        if self._has_ended_for_good:
            return
        self._has_ended_for_good = self._halt.signalled.is_set()
        self.left = self.marks.take_off()
        if self.left:
            _LOG.error("soft taints stay on nodes: %s", in_words(self.left))

    def told(self) -> Iterator[str]:
        """Yield what the reader of the report should know of marks that stay, or that may still be set."""
        if self.left:
            yield f"soft taints stay on nodes: {in_words(self.left)}"
        if self.marks.doubted:
            names = ", ".join(self.marks.doubted)
            yield f"requests had no answer, and may still set soft taints (`rebalancer unmark` takes them off): {names}"

    def _demand_time(self) -> None:
        if reason := self._halt.reason:
            raise CycleStopped(reason)
        if self._halt.deadline.left() < self._settle_seconds:
            raise CycleStopped(f"--deadline comes before another wave would have settled ({self._settle_seconds:g} s)")

    def _demand_ready(self, wave: Wave) -> None:
        """Wait until earlier replacements of the wave's owners are Ready: only then may an owner lose its next pod."""
        waited_for = self._unready & {owner_uid(move.pod) for move in wave.moves}
        if not waited_for:
            return
        until = Deadline.after(self._settle_seconds, self._halt.deadline.clock)
        while True:
            pods = (pod for pod in self._pods(wave) if not (_is_ready(pod) or _is_out(pod)))
            unready = waited_for.intersection(map(owner_uid, pods))
            if not unready:
                break
            if self._halt.reason or not until.left():
                names = sorted({str(move.pod) for move in wave.moves if owner_uid(move.pod) in unready})
                raise CycleStopped(f"a replacement is not Ready, and its owner would lose another pod: {names[0]}")
            self._sink.sleep(_LONGEST_LOOK_SECONDS)
        self._unready -= waited_for

    def _close_changed(self, wave: Wave) -> None:
        """Look at owners and PDBs again: minutes may have passed since the cluster was read."""
        pods = [move.pod for move in wave.moves]
        with _looking("the PodDisruptionBudgets"), suppress(Forbidden):  # they were not read for the snapshot either
            budgets = budgets_now(self._client, {pod.namespace for pod in pods}, self._look_until())
            self._sink.closures.budgets_changed(
                {pod.uid for pod in pods if budgets.names(pod) != self._budgets.names(pod)}
            )
        with _looking("the owners of pods"):
            self._sink.closures.owners_end(ending_owners(self._client, pods, self._look_until()))

    def _look_until(self) -> Deadline:
        seconds = _HURRIED_LOOK_SECONDS if self._halt.signalled.is_set() else _LOOK_SECONDS
        return Deadline.after(seconds, self._halt.deadline.clock).or_sooner(self._halt.deadline)

    def _pods(self, wave: Wave) -> list[Pod]:
        with _looking("pods"):
            return self._see(wave, self._halt.deadline)

    def _see(self, wave: Wave, until: Deadline) -> list[Pod]:
        return siblings_now(self._client, (move.pod for move in wave.moves), self._sink.restarted, lambda: until)


def in_words(problems: Problems) -> str:
    """Return the first problems with their nodes, and how many more there are."""
    named = [f"node {name}: {problems[name]}" for name in sorted(problems)[:_NAMED]]
    more = len(problems) - len(named)
    return "; ".join(named) + (f"; and {more} more nodes" if more else "")
