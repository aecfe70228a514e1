"""The consent to a live run: read the cluster, plan, show which pods would go, and ask."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from rebalancer.report.document import Circumstances, document
from rebalancer.report.overview import overview
from rebalancer.report.question import new_pods
from rebalancer.run import policies
from rebalancer.run.cluster_view import LiveRun, LiveView, view_cluster
from rebalancer.run.work import Finished, Work, plan

Report = Mapping[str, Any]

#: A view of the cluster that is older than this is not used: the cluster is read again.
FRESH_SECONDS = 60.0


class Person(Protocol):
    """The person who is asked before a live run."""

    def must_be_asked(self, cluster: Mapping[str, str | None]) -> bool:
        """Return whether the person has to be asked; nothing has been read yet.

        Raises:
            UsageError: a person has to be asked, and nobody is there to answer.
        """
        ...

    def agree(self, report: Report, unseen: Sequence[str]) -> None:
        """Show a plan, and ask whether to carry it out.

        Args:
            report: of the plan, with its `overview`.
            unseen: when the question is asked again, the pods of the plan that were not shown before.

        Raises:
            Declined: the answer is no.
        """
        ...


class Unseen(Exception):  # noqa: N818  named like the rest of the tree
    """The plan of a fresh view has a pod that was not shown before: ask again."""


class Consent:
    """The latest view of the cluster, its plan, and the pods that were shown.

    Args:
        person: who is asked.
        run: the way to the cluster, and the deadline.
        work: what the policy asks for.
    """

    def __init__(self, person: Person, run: LiveRun, work: Work) -> None:
        self._person = person
        self._run = run
        self._work = work
        self._shown: frozenset[str] = frozenset()
        self._view: LiveView | None = None
        self._plan: Finished | None = None
        self._has_waited = False

    def obtain(self, *, for_later: bool = False) -> None:
        """View, plan, show and ask; if no pod would be evicted, ask only if the answer is for later cycles too.

        Raises:
            Declined: the answer is no.
            ClusterError: the cluster cannot be read.
        """
        _, finished = self._planned()
        report = self._report(finished)
        if report["evictions"] or for_later:
            self._person.agree(report, new_pods(report, self._shown) if self._shown else [])
        self._shown |= {each["uid"] for each in report["evictions"]}

    def nothing_to_do(self) -> Finished | None:
        """Return the plan as the result of the run if it evicts nothing; the cluster is not read again for new pods."""
        if self._plan is None or self._plan.ledger.evictions:
            return None
        warnings = (*self._work.warnings, *filter(None, [self._plan.ledger.stopped]))
        return replace(self._plan, circumstances=self._circumstances(warnings, dry_run=False))

    def fresh_view(self) -> LiveView:
        """Return the view that was agreed to, or a new one if it is too old or another run may have evicted since.

        Raises:
            Unseen: the plan of the new view has a pod that was not shown.
            ClusterError: the cluster cannot be read.
        """
        if self._view is not None and self._is_fresh(self._view):
            return self._view
        self._has_waited, self._view = False, None
        view, finished = self._planned()
        if {entry.pod.uid for entry in finished.ledger.evictions} - self._shown:
            raise Unseen
        return view

    def sleep(self, seconds: float) -> None:
        """Wait for another run to end; its evictions change the cluster, so the view at hand is out of date."""
        self._has_waited = True
        time.sleep(seconds)

    def _is_fresh(self, view: LiveView) -> bool:
        age = self._run.cluster.retry_policy.clock() - view.taken_at
        return not self._has_waited and age < min(FRESH_SECONDS, self._run.options.deadline)

    def _planned(self) -> tuple[LiveView, Finished]:
        """Return the view at hand and its plan; take a new view first if there is none or it is too old."""
        view = self._view
        if view is None or not self._is_fresh(view):
            view = self._view = view_cluster(self._run, self._work)
        left, progress = view.cluster(self._work), self._run.telemetry.progress
        with progress.stage("plan"):
            ledger = plan(left, self._work, around=progress.around, recollection=view.recollection)
        progress.planned(len(ledger.evictions))
        self._plan = Finished(ledger, left, self._circumstances(self._work.warnings, dry_run=True))
        return view, self._plan

    def _circumstances(self, warnings: tuple[str, ...], *, dry_run: bool) -> Circumstances:
        return Circumstances(dry_run, self._run.cluster.description, "wall", warnings)

    def _report(self, finished: Finished) -> Report:
        pods = [entry.pod for entry in finished.ledger.evictions]
        snapshot = finished.cluster.snapshot
        size = overview(pods, snapshot.pods, snapshot.budgets, policies.limits(self._work.policy))
        report = document(finished.ledger, finished.cluster, finished.circumstances)
        runs = [{"nodes": [], **run} for run in report["strategies"]]
        return {"overview": size, **report, "strategies": runs}
