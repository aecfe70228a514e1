"""The arguments of DefaultEvictor, the one evictor there is."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from rebalancer.cluster.pod import SYSTEM_CRITICAL_PRIORITY
from rebalancer.cluster.selectors import LabelSelector, parse_selector_text
from rebalancer.eviction.causes import DEFAULT_PROTECTIONS, EXTRA_PROTECTIONS, Code
from rebalancer.policy.arguments import Args, Count, Duration, Int, Names, Part, Plugin, Selector

#: For each deprecated switch the protection that it disables, or enables if it is none of the default ones.
_DEPRECATED = {
    "evict_local_storage_pods": Code.LOCAL_STORAGE,
    "evict_daemon_set_pods": Code.DAEMON_SET_PODS,
    "evict_system_critical_pods": Code.SYSTEM_CRITICAL_PODS,
    "evict_failed_bare_pods": Code.FAILED_BARE_PODS,
    "ignore_pvc_pods": Code.PVC,
    "ignore_pods_without_pdb": Code.WITHOUT_PDB,
}


class PriorityThreshold(Part):
    """Pods of this priority and above stay: by value, or by the name of a PriorityClass."""

    value: Int | None = Field(None, description="A priority.")
    name: str = Field("", description="The name of a PriorityClass.")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.value is not None and self.name:
            raise ValueError("give either value or name, not both")
        if self.value is not None and self.value > SYSTEM_CRITICAL_PRIORITY:
            raise ValueError(f"a threshold is at most {SYSTEM_CRITICAL_PRIORITY}; critical pods stay anyway")
        return self


class ProtectedStorageClass(Part):
    """A storage class by name."""

    name: str = Field("", description="Its name.")


class PvcProtection(Part):
    """Narrows PodsWithPVC to claims of certain storage classes."""

    protected_storage_classes: tuple[ProtectedStorageClass, ...] = Field(
        (), strict=False, description="Only pods with claims of these classes stay; unknown claims count as such."
    )


class ProtectionConfig(Part):
    """Settings of single protections."""

    pods_with_pvc: PvcProtection = Field(PvcProtection(), alias="PodsWithPVC", description="For PodsWithPVC.")


def _once_of(known: tuple[str, ...]) -> AfterValidator:
    def checked(names: tuple[str, ...]) -> tuple[str, ...]:
        problems = [f"{name!r} is not one of {', '.join(known)}" for name in names if name not in known]
        problems += [f"{name!r} is listed twice" for name in sorted(set(names)) if names.count(name) > 1]
        if problems:
            raise ValueError("; ".join(problems))
        return names

    return AfterValidator(checked)


class PodProtections(Part):
    """Which protections are on."""

    default_disabled: Annotated[Names, _once_of(DEFAULT_PROTECTIONS)] = Field(
        (),
        description=f"Switch these off: {', '.join(DEFAULT_PROTECTIONS)}.",
        json_schema_extra={"items": {"enum": [*DEFAULT_PROTECTIONS]}},
    )
    extra_enabled: Annotated[Names, _once_of(EXTRA_PROTECTIONS)] = Field(
        (),
        description=f"Switch these on: {', '.join(EXTRA_PROTECTIONS)}.",
        json_schema_extra={"items": {"enum": [*EXTRA_PROTECTIONS]}},
    )
    config: ProtectionConfig = Field(ProtectionConfig(), description="Settings of single protections.")

    @model_validator(mode="after")
    def _class_names(self) -> Self:
        classes = self.config.pods_with_pvc.protected_storage_classes
        if Code.PVC in self.extra_enabled and any(not each.name for each in classes):
            raise ValueError("a protected storage class needs a name")
        return self


class DefaultEvictorArgs(Args):
    """Which pods may be evicted at all."""

    node_selector: str = Field("", description="Nodes that nodeFit may choose from, like a=b,c in (d,e).")
    label_selector: Selector = Field(LabelSelector(), description="Only matching pods may be evicted.")
    namespace_label_selector: Selector = Field(
        LabelSelector(), description="Only pods in namespaces with matching labels may be evicted."
    )
    priority_threshold: PriorityThreshold = Field(
        PriorityThreshold(), description="Pods of this priority and above stay."
    )
    node_fit: bool | Literal["scheduler"] = Field(
        False,
        description="Evict only what fits some other node; scheduler: only what the scheduler places for certain.",
    )
    min_replicas: Count = Field(0, description="Pods of owners with fewer pods stay; 0 and 1 mean nothing.")
    min_pod_age: Duration | None = Field(None, description="Pods that have run for less stay, like 10m.")
    no_eviction_policy: Literal["", "Preferred", "Mandatory"] = Field(
        "", description="What the annotation prefer-no-eviction means; Preferred unless given."
    )
    pod_protections: PodProtections = Field(PodProtections(), description="Which protections are on.")
    evict_local_storage_pods: bool = Field(False, description=f"Deprecated: disables {Code.LOCAL_STORAGE}.")
    evict_daemon_set_pods: bool = Field(False, description=f"Deprecated: disables {Code.DAEMON_SET_PODS}.")
    evict_system_critical_pods: bool = Field(False, description=f"Deprecated: disables {Code.SYSTEM_CRITICAL_PODS}.")
    evict_failed_bare_pods: bool = Field(False, description=f"Deprecated: disables {Code.FAILED_BARE_PODS}.")
    ignore_pvc_pods: bool = Field(False, description=f"Deprecated: enables {Code.PVC}.")
    ignore_pods_without_pdb: bool = Field(
        False, alias="ignorePodsWithoutPDB", description=f"Deprecated: enables {Code.WITHOUT_PDB}."
    )

    @field_validator("node_selector")
    @classmethod
    def _parses(cls, text: str) -> str:
        parse_selector_text(text)
        return text

    @model_validator(mode="after")
    def _one_style(self) -> Self:
        chosen, deprecated = self.pod_protections, self._deprecated()
        if (chosen.default_disabled or chosen.extra_enabled) and deprecated:
            raise ValueError(f"podProtections replaces the deprecated {', '.join(deprecated)}; drop one of them")
        if self.asks_scheduler and self.node_selector:
            raise ValueError("with nodeFit: scheduler the scheduler chooses among all nodes; leave nodeSelector out")
        return self

    @property
    def asks_scheduler(self) -> bool:
        """Whether the scheduler is asked if a replacement finds a node."""
        return self.node_fit == "scheduler"

    def protections(self) -> frozenset[str]:
        """Return the names of the protections in force (the descheduler's effective pod protections)."""
        chosen, defaults = self.pod_protections, frozenset(DEFAULT_PROTECTIONS)
        switched = set(self._deprecated().values())
        return (defaults - {*chosen.default_disabled, *switched}) | {*chosen.extra_enabled, *(switched - defaults)}

    def protected_storage_classes(self) -> frozenset[str]:
        """Return the storage classes PodsWithPVC is narrowed to; none means all."""
        return frozenset(each.name for each in self.pod_protections.config.pods_with_pvc.protected_storage_classes)

    def _deprecated(self) -> dict[str, str]:
        fields = type(self).model_fields
        return {str(fields[name].alias): each for name, each in _DEPRECATED.items() if getattr(self, name)}


DEFAULT_EVICTOR = Plugin(
    name="DefaultEvictor", args=DefaultEvictorArgs, points=frozenset({"filter", "preEvictionFilter"})
)
