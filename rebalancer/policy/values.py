"""A policy as values, ready for a cycle: all names known, all arguments typed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from rebalancer.cluster.selectors import LabelSelector
from rebalancer.errors import Problem
from rebalancer.policy.arguments import Args
from rebalancer.policy.providers import MetricsProvider
from rebalancer.policy.steering import Steering
from rebalancer.policy.trust import Share, Trust
from rebalancer.policy.windows import ALWAYS, Schedule


@dataclass(frozen=True, slots=True)
class PolicyProfile:
    """A named set of strategies and their arguments.

    Attributes:
        name: a label for reports; may be empty, and two profiles may share it.
        args: arguments by plugin name, of all plugins that the profile configures; DefaultEvictor is always among them.
        deschedule: strategies of the first pass, in order; one that is named twice runs twice.
        balance: the same for the second pass.
        schedule: when the profile may move pods.
    """

    name: str
    args: Mapping[str, Args]
    deschedule: tuple[str, ...]
    balance: tuple[str, ...]
    schedule: Schedule = ALWAYS


@dataclass(frozen=True, slots=True)
class Policy:
    """What to do in a cycle, and its limits.

    Attributes:
        profiles: in the order of the file.
        node_selector: the nodes that a cycle works on.
        max_per_node: pods that a cycle may evict from one node; None means no limit, 0 means none.
        max_per_namespace: the same for one namespace.
        max_total: the same for the whole cycle.
        grace_period_seconds: for every eviction; None means the pod's own, 0 means at once.
        eviction_failure_event_notification: write an Event when an eviction is refused or fails.
        metrics_collector_enabled: the deprecated switch for usage from metrics-server.
        metrics_providers: where usage may come from; each source at most once.
        steering: how replacements are steered; None if they are not.
        hold: how long emptied nodes are kept empty; None if they are not.
        trust: what is remembered, and whom it leaves alone; None where the policy does not say.
        appetite: how much to move, 1 to 5; None for what the other keys say.
        schedule: when pods may be moved.
    """

    profiles: tuple[PolicyProfile, ...]
    node_selector: LabelSelector
    max_per_node: int | Share | None
    max_per_namespace: int | Share | None
    max_total: int | Share | None
    grace_period_seconds: int | None
    eviction_failure_event_notification: bool
    metrics_collector_enabled: bool
    metrics_providers: tuple[MetricsProvider, ...]
    steering: Steering | None = None
    hold: timedelta | None = None
    trust: Trust | None = None
    appetite: int | None = None
    schedule: Schedule = ALWAYS


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A policy that can be used, and warnings for its author."""

    policy: Policy
    warnings: tuple[Problem, ...]
