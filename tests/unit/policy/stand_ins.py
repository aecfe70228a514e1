"""Plugins with small arguments, under the names that policies use, and short ways to read a policy with them."""

from textwrap import dedent
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rebalancer.cluster.selectors import LabelSelector
from rebalancer.errors import PolicyError, Problem
from rebalancer.policy.arguments import Args, Count, Int, Names, Namespaces, Part, Percent, Plugin, Selector
from rebalancer.policy.load import decode_policy, load_policy
from rebalancer.policy.values import LoadedPolicy

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
OLD_HEAD = "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\n"


class Threshold(Part):
    value: Int | None = None
    name: str = ""


class EvictorArgs(Args):
    node_fit: bool = False
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    evict_failed_bare_pods: bool = False
    ignore_pvc_pods: bool = False
    priority_threshold: Threshold | None = None
    label_selector: Selector = LabelSelector()


class PodArgs(Args):
    namespaces: Namespaces | None = None
    label_selector: Selector | None = None


class LifeTimeArgs(PodArgs):
    max_pod_life_time_seconds: Count | None = None
    states: Annotated[tuple[Literal["Running", "Pending", "CrashLoopBackOff"], ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _something_to_go_by(self) -> Self:
        if self.max_pod_life_time_seconds is None and not self.states:
            raise ValueError("give a life time\ngive states")
        return self


class RestartsArgs(PodArgs):
    pod_restart_threshold: Annotated[Int, Field(ge=1)]
    including_init_containers: bool = False


class TaintsArgs(PodArgs):
    include_prefer_no_schedule: bool = False
    excluded_taints: Names = ()
    included_taints: Names | None = None


class AffinityArgs(PodArgs):
    node_affinity_type: Names


class FailedArgs(PodArgs):
    reasons: Names = ()
    exclude_owner_kinds: Names = ()
    min_pod_lifetime_seconds: Count = 3600
    including_init_containers: bool = False


class SpreadArgs(PodArgs):
    constraints: Names = ()
    topology_balance_node_fit: bool = True


class DuplicatesArgs(Args):
    namespaces: Namespaces | None = None
    exclude_owner_kinds: Names = ()


class HighArgs(Args):
    thresholds: dict[str, Percent]
    number_of_nodes: Int = 0
    evictable_namespaces: Namespaces | None = None


class LowArgs(HighArgs):
    target_thresholds: dict[str, Percent]
    use_deviation_thresholds: bool = False


def _plugins() -> dict[str, Plugin]:
    evictor = Plugin("DefaultEvictor", EvictorArgs, frozenset({"filter", "preEvictionFilter"}))
    models: dict[str, tuple[type[Args], str]] = {
        "PodLifeTime": (LifeTimeArgs, "deschedule"),
        "RemoveFailedPods": (FailedArgs, "deschedule"),
        "RemovePodsHavingTooManyRestarts": (RestartsArgs, "deschedule"),
        "RemovePodsViolatingInterPodAntiAffinity": (PodArgs, "deschedule"),
        "RemovePodsViolatingNodeAffinity": (AffinityArgs, "deschedule"),
        "RemovePodsViolatingNodeTaints": (TaintsArgs, "deschedule"),
        "LowNodeUtilization": (LowArgs, "balance"),
        "HighNodeUtilization": (HighArgs, "balance"),
        "RemoveDuplicates": (DuplicatesArgs, "balance"),
        "RemovePodsViolatingTopologySpreadConstraint": (SpreadArgs, "balance"),
    }
    strategies = {name: Plugin(name, args, frozenset({point})) for name, (args, point) in models.items()}
    return {evictor.name: evictor, **strategies}


PLUGINS = _plugins()


def load(text: str, *, strict: bool = False, live: bool = False) -> LoadedPolicy:
    return load_policy(dedent(text), PLUGINS, source="policy.yaml", strict=strict, live=live)


def decode(text: str, *, strict: bool = False) -> LoadedPolicy:
    return decode_policy(dedent(text), PLUGINS, source="policy.yaml", strict=strict)


def problems(text: str, *, strict: bool = False, live: bool = False) -> list[str]:
    """What makes a policy unusable, as it is shown; empty where it is usable."""
    try:
        load(text, strict=strict, live=live)
    except PolicyError as error:
        return [str(each) for each in error.problems]
    return []


def profile(config: str = "", plugins: str = "") -> str:
    """A policy of one profile; both arguments are in flow style, without the outer brackets."""
    return f"{HEAD}profiles:\n- name: p\n  pluginConfig: [{config}]\n  plugins: {{{plugins}}}\n"


LIFE_TIME = "{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 5}}"
RUN_LIFE_TIME = "deschedule: {enabled: [PodLifeTime]}"
NO_STRATEGY = Problem("", "the policy enables no strategy: it will evict nothing", 1)
