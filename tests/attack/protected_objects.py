"""Well-formed objects that protect a pod, as JSON, and how to spoil them."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.attack.whims import ANNOTATIONS
from tests.functional import objects

Document = dict[str, Any]
#: Keys and places from an object to a value in it.
Path = tuple[str | int, ...]

#: Takes a value away instead of putting another in its place.
MISSING = object()

#: What may stand where something else should: every type, and odd values of each.
WRONG: tuple[Any, ...] = (
    *(MISSING, None, True, False, 0, -1, 7, 1 << 40, 1.5, "", " ", "x", "true", "NaN", "2026-01-15T11:00:00Z"),
    *([], ["x"], [None], [{}], {}, {"x": 1}, {"": None}, {"key": "x", "operator": "Like"}),
)


#: A kind, and the way to a field in it.
Field = tuple[str, Path]


@dataclass(frozen=True)
class Protection:
    """A pod `a` that must not go, the objects that see to it, and what may legitimately lift the protection."""

    objects: Mapping[str, Document]  # by kind, one of each, which may be spoiled; others are added
    evictor: Mapping[str, Any] = field(default_factory=dict)  # the arguments of DefaultEvictor
    valued: tuple[Field, ...] = ()  # where another value of the same type lifts the protection
    removable: tuple[Field, ...] = ()  # whose absence lifts it
    nullable: tuple[Field, ...] = ()  # also by being null, and what is inside them by another value of its type
    asked_first: bool = False  # whether it holds for strategies that ask before they evict, and only for them

    def is_lifted(self, kind: str, path: Path, new: Any) -> bool:
        """Return whether a change may lift the protection: it leaves a sound object that means something else."""
        here = (kind, path)
        fields = (*self.valued, *self.removable, *self.nullable)
        parent_of = [each for each in fields if each[0] == kind and each[1][: len(path)] == path and each != here]
        if new is MISSING:
            return here in (*self.removable, *self.nullable) or _any_of(parent_of, (*self.removable, *self.nullable))
        if new is None:
            return here in self.nullable or _any_of(parent_of, self.nullable)
        return self._same_type(kind, path, new) and (here in (*self.valued, *self.nullable) or bool(parent_of))

    def _same_type(self, kind: str, path: Path, new: Any) -> bool:
        try:
            return type(new) is type(at(self.objects[kind], path))
        except (KeyError, IndexError, TypeError):
            return False  # inside something that was spoiled before


def _any_of(some: Iterable[Field], others: Iterable[Field]) -> bool:
    return not set(some).isdisjoint(others)


def pod(spec: Document | None = None, status: Document | None = None, **metadata: Any) -> Document:
    """A pod of functional tests, three hours old at the time of `tests.make`."""
    made = objects.pod("a", namespace="shop", uid="u-a", restarts=1)
    born = "2026-01-15T09:00:00Z"
    return {
        "metadata": {**made["metadata"], "creationTimestamp": born, **metadata},
        "spec": {**made["spec"], "tolerations": [{"key": "k", "operator": "Exists"}], "priority": 0, **(spec or {})},
        "status": {**made["status"], "startTime": born, **(status or {})},
    }


def _annotated(name: str, value: str = "x", **evictor: Any) -> Protection:
    path = ("metadata", "annotations")
    document = pod(annotations={name: value, "example.com/other": "y"})
    return Protection({"Pod": document}, evictor, removable=(("Pod", (*path, name)),), nullable=(("Pod", path),))


def _by(path: Path, document: Document) -> Protection:
    return Protection({"Pod": document}, nullable=(("Pod", path),))


def _volume(kind: str, value: Document, **evictor: Any) -> Protection:
    document = pod({"volumes": [{"name": "v", kind: value}]})
    return Protection({"Pod": document}, evictor, removable=_IN_VOLUME, nullable=_volume_fields(kind))


def _volume_fields(kind: str) -> tuple[Field, ...]:
    return (("Pod", ("spec", "volumes")), ("Pod", ("spec", "volumes", 0, kind)))


_IN_VOLUME = (("Pod", ("spec", "volumes", 0)),)


def _pdb() -> Document:
    return {
        "metadata": {"name": "web", "namespace": "shop", "generation": 1, "labels": {"team": "x"}},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 2},
        "status": {
            "disruptionsAllowed": 0,
            "observedGeneration": 1,
            "currentHealthy": 1,
            "desiredHealthy": 2,
            "expectedPods": 2,
            "disruptedPods": {"z": "2026-01-15T11:00:00Z"},
        },
    }


_DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u-d", "controller": True}
_CLAIM = {"claimName": "c"}
_CLASSES = {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}}

PROTECTIONS: Mapping[str, Protection] = {
    "a mirror pod": _annotated("kubernetes.io/config.mirror"),
    "a static pod": _annotated("kubernetes.io/config.source", "file"),
    "a pod annotated as critical": _annotated("scheduler.alpha.kubernetes.io/critical-pod", ""),
    "a pod that would rather stay": _annotated(f"{ANNOTATIONS}/prefer-no-eviction", noEvictionPolicy="Mandatory"),
    "a terminating pod": _by(("metadata", "deletionTimestamp"), pod(deletionTimestamp="2026-01-15T11:59:00Z")),
    "a critical pod": _by(("spec", "priority"), pod({"priority": 2_000_001_000})),
    "a pod of a critical class": _by(("spec", "priorityClassName"), pod({"priorityClassName": "system-node-critical"})),
    "a DaemonSet's pod": Protection(
        {"Pod": pod(ownerReferences=[_DAEMON])}, valued=(("Pod", ("metadata", "ownerReferences", 0, "kind")),)
    ),
    "a pod with a claim": _volume("persistentVolumeClaim", _CLAIM, podProtections={"extraEnabled": ["PodsWithPVC"]}),
    "a pod with local storage": _volume("emptyDir", {}),
    "a pod with devices": Protection(
        {"Pod": pod({"resourceClaims": [{"name": "gpu"}]})},
        {"podProtections": {"extraEnabled": ["PodsWithResourceClaims"]}},
        removable=(("Pod", ("spec", "resourceClaims", 0)),),
        nullable=(("Pod", ("spec", "resourceClaims")),),
    ),
    "a bare pod": Protection({"Pod": pod(ownerReferences=[])}),
    "a young pod": Protection({"Pod": pod(status={"startTime": "2026-01-15T11:59:00Z"})}, {"minPodAge": "2h"}),
    "a pod that is not selected": Protection({"Pod": pod()}, {"labelSelector": {"matchLabels": {"app": "db"}}}),
    "one of too few replicas": Protection({"Pod": pod()}, {"minReplicas": 3}),
    "a pod under a PDB": Protection(
        {"Pod": pod(), "PodDisruptionBudget": _pdb()},
        valued=(("PodDisruptionBudget", ("status", "disruptionsAllowed")),),
        nullable=(
            ("Pod", ("metadata", "labels", "app")),
            ("Pod", ("metadata", "labels")),
            ("Pod", ("metadata", "namespace")),
            ("PodDisruptionBudget", ("metadata", "namespace")),
            ("PodDisruptionBudget", ("spec", "selector")),
            ("PodDisruptionBudget", ("spec", "selector", "matchLabels", "app")),
        ),
    ),
    "a pod above a priority class": Protection(
        {"Pod": pod({"priority": 1000}), "PriorityClass": {"metadata": {"name": "high"}, "value": 1000}},
        {"priorityThreshold": {"name": "high"}},
        valued=(("PriorityClass", ("value",)),),
        nullable=(("Pod", ("spec", "priority")),),
    ),
    "a pod in a namespace that is not selected": Protection(
        {"Pod": pod(), "Namespace": {"metadata": {"name": "shop", "labels": {"team": "web"}}}},
        {"namespaceLabelSelector": {"matchLabels": {"team": "db"}}},
        asked_first=True,
    ),
    "a pod with a claim of a protected class": Protection(
        {
            "Pod": pod({"volumes": [{"name": "v", "persistentVolumeClaim": _CLAIM}]}),
            "PersistentVolumeClaim": {
                "metadata": {"name": "c", "namespace": "shop"},
                "spec": {"storageClassName": "fast"},
            },
        },
        {"podProtections": {"extraEnabled": ["PodsWithPVC"], "config": _CLASSES}},
        valued=(("PersistentVolumeClaim", ("spec", "storageClassName")),),
        removable=_IN_VOLUME,
        nullable=_volume_fields("persistentVolumeClaim"),
    ),
}


def paths(value: Any, so_far: Path = ()) -> Iterator[Path]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*so_far, key)
        yield from paths(inner, (*so_far, key))


def at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def spoiled(document: Document, path: Path, new: Any) -> Document:
    changed = copy.deepcopy(document)
    place = at(changed, path[:-1])
    if new is MISSING:
        del place[path[-1]]
    else:
        place[path[-1]] = copy.deepcopy(new)
    return changed
