"""A view of a live cluster: what was read, and when; and the consent of the person who is shown the plan for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Protocol

from rebalancer.cluster.cluster import Measure
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.patience import Recollection
from rebalancer.kube.client import Client
from rebalancer.kube.tries import Halt
from rebalancer.kube.wire.pages import METRICS_KINDS
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS
from rebalancer.report.document import Finished, document
from rebalancer.report.view import new_pods
from rebalancer.run.cluster_lists import live_providers, read_cluster
from rebalancer.run.interruption import Interruption
from rebalancer.run.live import described
from rebalancer.run.memory import Diary, MemorySource
from rebalancer.run.options import Deliver, Options
from rebalancer.run.telemetry import Telemetry
from rebalancer.run.work import Work, plan

FRESH_SECONDS = 60.0  # A view of the cluster that is older than this is not used: the cluster is read again


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What all cycles of one process share: `client` speaks to the API server."""

    options: Options
    client: Client
    telemetry: Telemetry
    interruption: Interruption
    deliver: Deliver

    @property
    def description(self) -> dict[str, str | None]:
        """The cluster, as reports name it."""
        return described(self.client)


@dataclass(frozen=True, slots=True)
class LiveView:
    """A cluster as it was read."""

    snapshot: Snapshot
    measure: Measure  # real usage; each source is asked once, so that all plans of this view use the same figures
    taken_at: float  # the time before the first request, in seconds on the clock of the retry policy
    diary: Diary | None  # knows earlier cycles, and is written by this one; None where the policy asks for no memory

    @property
    def recollection(self) -> Recollection | None:
        """What is known of earlier cycles."""
        return self.diary.recollection if self.diary else None


def view_cluster(run: LiveRun, work: Work) -> LiveView:
    """Read the cluster as it is now."""
    options, client, telemetry = run.options, run.client, run.telemetry
    taken_at = client.retry_policy.clock()
    halt = Halt(options.deadline, client.retry_policy.clock, began=taken_at)
    helpful = work.helpful_kinds | ({"Namespace"} if options.identify else frozenset())
    helpful |= SCHEDULER_KINDS if options.explains else frozenset()
    source = MemorySource.of(client, options.lease)
    with telemetry.stage("read"):
        found = source.read(datetime.now(UTC)) if work.trust else None
        reading, evicts = telemetry.progress.reading, not options.dry_run
        snapshot = work.seen(read_cluster(client, work.needed_kinds, halt, helpful, reading, evicts=evicts))
    if options.chosen:
        options.chosen.demand(snapshot)
    ask = partial(live_providers, work.policy, client, halt.deadline, telemetry.samples, METRICS_KINDS)
    providers = cache(ask)  # they are asked when a strategy first wants to know, and not after the deadline
    measure = telemetry.measure(lambda cluster, wanted: providers().measure(cluster, wanted))
    diary = Diary(source, found, work.trust, snapshot) if found and work.trust else None
    return LiveView(snapshot, measure, taken_at, diary)


class Person(Protocol):
    """The person who is asked before a live run."""

    def must_be_asked(self, cluster: Mapping[str, str | None]) -> bool:
        """Return whether to ask; raise UsageError where nobody is there to answer.  Nothing has been read yet."""

    def agree(self, report: Mapping[str, Any], unseen: Sequence[str]) -> None:
        """Show the report of a plan, and ask whether to carry it out; raise Declined if the answer is no.

        When the question is asked again, the pods of the plan that were not shown before are `unseen`.
        """


class Unseen(Exception):  # noqa: N818  named like the rest of the tree
    """The plan of a fresh view has a pod that was not shown before: ask again."""


@dataclass(slots=True)
class Consent:
    """The consent to a live run: the latest view of the cluster, its plan, and the pods that were shown."""

    person: Person
    run: LiveRun
    work: Work
    _shown: frozenset[str] = frozenset()
    _view: LiveView | None = None
    _plan: Finished | None = None

    def obtain(self, *, for_later: bool = False) -> None:
        """View, plan, show and ask; if no pod would be evicted, ask only if the answer is for later cycles too."""
        report = document(self._planned())
        if report["evictions"] or for_later:
            self.person.agree(report, new_pods(report, self._shown) if self._shown else [])
        self._shown |= {each["uid"] for each in report["evictions"]}

    def nothing_to_do(self) -> Finished | None:
        """Return the plan as the result of the run if it evicts nothing; the cluster is not read again for new pods."""
        if self._plan is None or self._plan.ledger.evictions:
            return None
        warnings = (*self.work.warnings, *filter(None, [self._plan.ledger.stopped]))
        return replace(self._plan, dry_run=False, warnings=warnings)

    def fresh_view(self, *, waited: bool) -> LiveView:
        """Return the view that was agreed to, or a new one if it is too old or another run was waited for.

        Raises Unseen where the plan of the new view has a pod that was not shown.
        """
        if waited or self._view is None or not self._is_fresh(self._view):
            self._view = None
            if {entry.pod.uid for entry in self._planned().ledger.evictions} - self._shown:
                raise Unseen
        assert self._view is not None
        return self._view

    def _is_fresh(self, view: LiveView) -> bool:
        age = self.run.client.retry_policy.clock() - view.taken_at
        return age < min(FRESH_SECONDS, self.run.options.deadline)

    def _planned(self) -> Finished:
        """Return the plan for the view at hand; take a new view first if there is none or it is too old."""
        view = self._view
        if view is None or not self._is_fresh(view):
            view = self._view = view_cluster(self.run, self.work)
        left, progress = self.work.cluster(view.snapshot, view.measure), self.run.telemetry.progress
        with progress.stage("plan"):
            ledger = plan(left, self.work, around=progress.around, recollection=view.recollection)
        progress.planned = len(ledger.evictions)
        self._plan = Finished(ledger, left, True, self.run.description, "wall", self.work.warnings)
        return self._plan
