"""Fields that several kinds share: decoded into the model as they are, where the two have the same shape."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from rebalancer.cluster.pod import Owner, PodAffinityTerm, PreferredTerm, WeightedPodTerm
from rebalancer.cluster.selectors import LabelSelector, NodeSelectorTerm, parse_label_selector

T = TypeVar("T")
Quantities = dict[str, str | int | float]
_SELECTORS = ("labelSelector", "namespaceSelector")
#: Where null makes an object malformed; anywhere else it is how Go writes that a key is absent.
_NEVER_NULL = ("weight", "preference", "podAffinityTerm", "topologyKey", "maxSkew", "whenUnsatisfiable")
_RULES = {
    "required": "requiredDuringSchedulingIgnoredDuringExecution",
    "preferred": "preferredDuringSchedulingIgnoredDuringExecution",
}


def decode(raw: bytes, kind: type[T]) -> T | None:
    """Decode the bytes of an optional part; absent and null are None."""
    return msgspec.json.decode(raw, type=kind) if raw and raw != b"null" else None


@lru_cache(maxsize=512)
def decode_model(raw: bytes, kind: type[T]) -> T | None:
    """Decode the bytes of an optional part as `as_model` does."""
    return as_model(msgspec.json.decode(raw), kind) if raw and raw != b"null" else None


def as_model(value: object, kind: type[T]) -> T:
    """Return a part as what the model has for it: selectors are parsed, and keys that are null left out."""
    return msgspec.convert(_tidied(value), kind)


def _tidied(value: Any) -> Any:
    if isinstance(value, list):
        return [_tidied(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: parse_label_selector(each) if key in _SELECTORS and isinstance(each, dict) else _tidied(each)
        for key, each in value.items()
        if each is not None or key in _NEVER_NULL
    }


def owners(raw: bytes) -> tuple[Owner, ...]:
    """Return the ownerReferences; each has a kind."""
    return tuple(map(checked, decode(raw, list[Owner]) or ()))


def checked(owner: Owner) -> Owner:
    """Return an ownerReference; raise ValueError if it has no kind, since it might be a DaemonSet."""
    if not owner.kind:
        raise ValueError("an owner has no kind")
    return owner


def selector(value: Mapping[str, Any] | None) -> LabelSelector | None:
    """Return the parsed selector; None stays None."""
    return None if value is None else parse_label_selector(value)


class Metadata(msgspec.Struct, gc=False, rename="camel"):
    """What is used of any object's metadata."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    labels: dict[str, str] | None = None
    generation: int = 0
    deletion_timestamp: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name, which identify an object among those of its kind."""
        return self.namespace or "default", self.name


class AnnotatedMetadata(Metadata, gc=False, rename="camel"):
    """The same, with all annotations."""

    annotations: dict[str, str] | None = None


class VersionedMetadata(AnnotatedMetadata, gc=False, rename="camel"):
    """The same, with the version that a write names."""

    resource_version: str = ""


class Naming(msgspec.Struct):
    """What names an object, whatever it is."""

    name: Any = None
    namespace: Any = None
    uid: Any = None


class NamedObject(msgspec.Struct):
    """An object that cannot be read in full."""

    metadata: Naming = msgspec.field(default_factory=Naming)
    spec: Any = None


def named(name: object) -> str:
    """Return an object's name; raise ValueError if it has none."""
    if not isinstance(name, str) or not name:
        raise ValueError("it has no name")
    return name


class ResourcesWire(msgspec.Struct, gc=False):
    """`resources` of a container or a pod."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class SelectingWire(msgspec.Struct, gc=False):
    """The spec of what selects pods."""

    selector: dict[str, Any] | None = None


class NodeSelectorWire(msgspec.Struct, frozen=True, gc=False):
    """Required node affinity."""

    terms: tuple[NodeSelectorTerm, ...] = msgspec.field(default=(), name="nodeSelectorTerms")


class NodeAffinityWire(msgspec.Struct, frozen=True, gc=False, rename=_RULES):
    """Node affinity, required and preferred."""

    required: NodeSelectorWire | None = None
    preferred: tuple[PreferredTerm, ...] = ()


class PodTermsWire(msgspec.Struct, frozen=True, gc=False, rename=_RULES):
    """Pod affinity or pod anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[WeightedPodTerm, ...] = ()


class AffinityWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`affinity` of a pod."""

    node_affinity: NodeAffinityWire | None = None
    pod_affinity: PodTermsWire = PodTermsWire()
    pod_anti_affinity: PodTermsWire = PodTermsWire()
