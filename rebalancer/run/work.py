"""What a policy and the scheduler want from a cycle, the plan for a cluster, and how a finished cycle is published."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import msgspec

from rebalancer.cluster.cluster import Cluster, Measure
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.cycle import Around, ProfilePlan, run_cycle
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.engine.limits import Limits
from rebalancer.engine.patience import Recollection
from rebalancer.engine.strategy import strategies
from rebalancer.errors import MarksLeft, SourceError
from rebalancer.eviction.causes import Code
from rebalancer.eviction.steering import Held, Steer
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS, TRUST_KINDS
from rebalancer.policy.evictor import DEFAULT_EVICTOR, DefaultEvictorArgs
from rebalancer.policy.moving import AVOID_KEY, HOLD_KEY, PRESSURE_KEY, Share, Steering, Trust, avoid_keys
from rebalancer.policy.usage import SecretReference, UtilizationArgs
from rebalancer.policy.values import LEVELS, LoadedPolicy, Policy, filled
from rebalancer.report.document import Finished, document
from rebalancer.run.options import CHANGES, Options, Outcome
from rebalancer.run.planned import applied, skipped_in_words
from rebalancer.run.policies import settings_text

_LOG = logging.getLogger(__name__)
_HOLDS_NOTHING = "nodes are to be held (hold), and no profile has HighNodeUtilization with selection: compaction"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The KubeSchedulerConfiguration that the command line names, if any, and what the reader should know of it."""

    configuration: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()


def read_scheduler(path: str | None) -> Scheduler:
    """Read the configuration from a file, `-` for standard input; None for the defaults."""
    if path is None:
        return Scheduler()
    from rebalancer.policy.scheduler_configuration import load_scheduler_configuration  # noqa: PLC0415  few have one

    missing = f"there is no file {path} with the scheduler's configuration"
    text = settings_text(path, "scheduler configuration", missing)
    loaded = load_scheduler_configuration(text, source=path)
    warnings = tuple(f"scheduler configuration {path}: {problem}" for problem in loaded.warnings)
    return Scheduler(loaded.document, warnings)


def beside(snapshot: Snapshot, scheduler: Scheduler) -> Snapshot:
    """Return a snapshot with the scheduler's configuration, and with a warning where pods name another scheduler."""
    from rebalancer.scheduling.simulator import configuration as known  # noqa: PLC0415  only where it is asked

    found = known.read_configuration(scheduler.configuration) if scheduler.configuration else known.Configuration()
    named = Counter(pod.spec.placement.scheduler for pod in snapshot.pods if pod.active)
    strange = sorted(named.keys() - {each.scheduler_name for each in found.profiles})
    told = ", ".join(f"{name} (pods: {named[name]})" for name in strange)
    unknown = f"where the scheduler puts pods is unknown for {told}: --scheduler-config describes other schedulers"
    warnings = (*snapshot.warnings, *scheduler.warnings, *((unknown,) if strange else ()))
    return msgspec.structs.replace(snapshot, scheduler_configuration=scheduler.configuration, warnings=warnings)


def no_secret(secret: SecretReference) -> NoReturn:
    """Say that a token in a Secret cannot be had, where no cluster is asked."""
    name = f"{secret.namespace}/{secret.name}"
    raise SourceError(f"the token is in the Secret {name}, which is not read here: use tokenFile")


@dataclass(frozen=True, slots=True)
class Work:
    """What a policy wants from every cycle: its profiles made ready to run, and what the reader should know of it."""

    policy: Policy
    plans: tuple[ProfilePlan, ...]
    warnings: tuple[str, ...]
    scheduler: Scheduler = field(default_factory=Scheduler)

    @property
    def limits(self) -> Limits:
        """The most evictions of a cycle."""
        return Limits(self.policy.max_per_node, self.policy.max_per_namespace, self.policy.max_total)

    @property
    def asks_scheduler(self) -> bool:
        """Whether decisions depend on where the scheduler would put pods."""
        by_evictor = self.policy.steering is not None or any(each.evictor.asks_scheduler for each in self.plans)
        return by_evictor or any(args.asks_scheduler for args in _evening_out(self.plans))

    @property
    def needed_kinds(self) -> frozenset[str]:
        """The kinds that a run needs besides nodes and pods; PDBs are always needed."""
        needed = {"PodDisruptionBudget"}
        for each in self.plans:
            evictor = each.evictor
            if evictor.namespace_label_selector:
                needed.add("Namespace")
            if evictor.priority_threshold.name:
                needed.add("PriorityClass")
            if Code.PVC in evictor.protections() and evictor.protected_storage_classes():
                needed.add("PersistentVolumeClaim")
            needed.update(*(strategy.needs for strategy in (*each.deschedule, *each.balance)))
        return frozenset(needed)

    @property
    def helpful_kinds(self) -> frozenset[str]:
        """The kinds that a run reads if it may."""
        return (SCHEDULER_KINDS if self.asks_scheduler else frozenset()) | (TRUST_KINDS if self.trust else frozenset())

    @property
    def trust(self) -> Trust | None:
        """What is remembered, and whom it leaves alone; None where each cycle decides by itself."""
        settings = self.policy.trust
        return settings if settings and settings.enabled else None

    def seen(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the scheduler's configuration, if decisions depend on it."""
        return beside(snapshot, self.scheduler) if self.asks_scheduler else snapshot

    def cluster(self, snapshot: Snapshot, measure: Measure) -> Cluster:
        """Return the cluster as the cycle begins; without our own marks, which are meant for the scheduler only."""
        steering = self.policy.steering
        keys = {*avoid_keys(AVOID_KEY), *avoid_keys(steering.key if steering else AVOID_KEY)}
        unmarked = snapshot.unmarked(keys, HOLD_KEY, PRESSURE_KEY)
        return Cluster(unmarked, self.policy.node_selector, measure)


def work_maker(options: Options) -> Callable[[LoadedPolicy], Work]:
    """Return the function that makes policies ready to run; the scheduler's configuration is read once, now."""
    scheduler = read_scheduler(options.scheduler_config)
    for warning in scheduler.warnings:
        _LOG.warning("%s", warning)

    def work_of(loaded: LoadedPolicy) -> Work:
        steers = loaded.policy.steering or (Steering() if options.steer else None)
        policy = filled(loaded.policy.model_copy(update={"steering": steers}))
        plans = _plans(loaded.policy)
        hold, compacts = options.hold or policy.hold, any(args.compacts for args in _evening_out(plans))
        # A policy that says nothing about it is patient where it selects pods by relief or compaction.
        relieves = compacts or any(args.relief for args in _evening_out(plans))
        changes = {
            "max_total": _smaller(policy.max_total, options.max_evictions),
            "hold": hold if compacts else None,  # nothing else empties nodes
            "trust": policy.trust or (Trust() if relieves else None),
        }
        policy = policy.model_copy(update=changes)
        plans = options.chosen.profiles(plans) if options.chosen else plans
        work = Work(policy, plans, tuple(map(str, loaded.warnings)), scheduler)
        in_vain = (_HOLDS_NOTHING,) if hold and not compacts else ()
        return replace(work, warnings=(*work.warnings, *_of_steering(policy), *in_vain))

    return work_of


def _plans(policy: Policy) -> tuple[ProfilePlan, ...]:
    """Return the profiles made ready to run; without strategies that even nodes out where its appetite forbids that."""
    balances = policy.appetite is None or LEVELS[policy.appetite].balances
    known, found = strategies(), []
    for each in policy.profiles:
        args, evictor = each.args, each.args[DEFAULT_EVICTOR.name]
        assert isinstance(evictor, DefaultEvictorArgs)
        deschedule = tuple(known[name](args[name]) for name in each.deschedule)
        wanted = (name for name in each.balance if balances or not isinstance(args[name], UtilizationArgs))
        balance = tuple(known[name](args[name]) for name in wanted)
        found.append(ProfilePlan(each.name, evictor, deschedule, balance, each.schedule))
    return tuple(found)


def _evening_out(profiles: Iterable[ProfilePlan]) -> list[UtilizationArgs]:
    args = (each.args for profile in profiles for each in profile.balance)
    return [each for each in args if isinstance(each, UtilizationArgs)]


def _smaller(limit: int | Share | None, other: int | None) -> int | Share | None:
    if isinstance(limit, Share):
        return replace(limit, at_most=other)
    return min((each for each in (limit, other) if each is not None), default=None)


def _of_steering(policy: Policy) -> Iterator[str]:
    for profile in policy.profiles if policy.steering else ():
        if any(getattr(args, "include_prefer_no_schedule", False) for args in profile.args.values()):
            yield (
                f"profile {profile.name} counts PreferNoSchedule taints (includePreferNoSchedule), and the policy "
                "steers: our own taints are left out, others may still evict what was steered"
            )


def plan(
    cluster: Cluster,
    work: Work,
    observe: Callable[[Entry], None] = lambda _: None,
    around: Around = lambda *_: nullcontext(),
    recollection: Recollection | None = None,
) -> Ledger:
    """Return what a cycle would do, and do nothing."""
    if closed := work.policy.schedule.closed(cluster.now):
        return Ledger(skipped=closed)
    steering = work.policy.steering
    steer = Steer(steering.min_gain, avoid_keys(steering.key)) if steering else None
    hold = partial(Held, until=cluster.now + work.policy.hold) if work.policy.hold else None
    limits, timer = work.limits, time.perf_counter
    return run_cycle(cluster, work.plans, limits, None, timer, observe, around, steer, hold, recollection)


def publish(finished: Finished, options: Options) -> Outcome:
    """Return the report of a cycle, and the exit code of a run that consists of it."""
    ledger = finished.ledger
    if ledger.skipped:
        _LOG.warning("nothing was done: %s", ledger.skipped)
    # A Job starts a failed pod again with fresh limits: a run that may have evicted does not exit with 1 by default.
    has_spent = bool(ledger.evictions or ledger.unknown) and not finished.dry_run
    exit_code = 1 if has_failed(ledger) and (options.fail_on_error or not has_spent) else 0
    if options.detailed_exitcode and ledger.evictions:
        exit_code = exit_code or CHANGES
    exit_code = MarksLeft.exit_code if finished.leaves_marks else exit_code
    report = document(finished)
    if options.chosen:
        report["plan"] = applied(options.chosen, ledger, finished.cluster)
        report["warnings"] = [*report["warnings"], *skipped_in_words(report["plan"]["skipped"])]
    return Outcome(report, exit_code, finished.cluster)


def has_failed(ledger: Ledger) -> bool:
    """Return whether some part of a cycle failed."""
    errors = [run.error for run in ledger.runs if run.error and not (ledger.rested and run.error == ledger.stopped)]
    stopped = ledger.stopped and not ledger.rested
    return bool(ledger.failures or ledger.unknown or stopped or errors)
