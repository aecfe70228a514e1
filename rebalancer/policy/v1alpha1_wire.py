"""The wire form `descheduler/v1alpha1` (framework.md 3): shapes and types, no rules between fields."""

from pydantic import Field

from rebalancer.policy.arguments import Int, Part


class UtilizationThresholds(Part):
    """Parameters of LowNodeUtilization and HighNodeUtilization.

    Values of type `object` are carried over unchanged; they are checked later, as arguments.
    """

    use_deviation_thresholds: object = None
    thresholds: object = None
    target_thresholds: object = None
    number_of_nodes: object = None


class Restarts(Part):
    """Parameters of RemovePodsHavingTooManyRestarts."""

    pod_restart_threshold: object = None
    including_init_containers: object = None


class LifeTime(Part):
    """Parameters of PodLifeTime."""

    max_pod_life_time_seconds: object = None
    states: object = None
    pod_status_phases: object = None


class Duplicates(Part):
    """Parameters of RemoveDuplicates."""

    exclude_owner_kinds: object = None


class FailedPods(Part):
    """Parameters of RemoveFailedPods."""

    exclude_owner_kinds: object = None
    min_pod_lifetime_seconds: object = None
    reasons: object = None
    including_init_containers: object = None


class StrategyParams(Part):
    """The parameters of all strategies together; each strategy uses some of them."""

    node_resource_utilization_thresholds: UtilizationThresholds | None = None
    node_affinity_type: object = None
    pods_having_too_many_restarts: Restarts | None = None
    pod_life_time: LifeTime | None = None
    remove_duplicates: Duplicates | None = None
    failed_pods: FailedPods | None = None
    include_soft_constraints: bool = False
    namespaces: object = None
    threshold_priority: Int | None = None
    threshold_priority_class_name: str = ""
    label_selector: object = None
    node_fit: bool = False
    include_prefer_no_schedule: object = None
    excluded_taints: object = None
    included_taints: object = None


class OldStrategy(Part):
    """One strategy."""

    enabled: bool = False
    weight: Int = 0
    params: StrategyParams = StrategyParams()


class OldPolicy(Part):
    """A policy of the older form."""

    api_version: object = None
    kind: object = None
    strategies: dict[str, OldStrategy | None] = Field(default_factory=dict)
    node_selector: object = None
    max_no_of_pods_to_evict_per_node: object = None
    max_no_of_pods_to_evict_per_namespace: object = None
    evict_failed_bare_pods: bool = False
    evict_local_storage_pods: bool = False
    evict_system_critical_pods: bool = False
    evict_daemon_set_pods: bool = False
    ignore_pvc_pods: bool = False
