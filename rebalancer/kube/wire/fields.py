"""Objects read field by field: where each field of the model stands in the API server's JSON."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from rebalancer.kube.wire.shared_fields import named

T = TypeVar("T")


class At(NamedTuple):
    """Where a field stands, as what it is decoded, and what is made of it."""

    path: str
    kind: Any = str
    made: Callable[[Any], Any] = lambda value: value
    absent: Any = msgspec.UNSET  # what stands for it where it is null or absent, if not the model's default


NAME = At("metadata.name", absent="")
NAMESPACE = At("metadata.namespace", str, lambda name: name or "default", "default")
LABELS, TERMINATING = At("metadata.labels", dict[str, str]), At("metadata.deletionTimestamp", str, bool)


class Reader(Generic[T]):
    """Makes the model of objects that are decoded as `wire`, which has the fields that are named and no others."""

    def __init__(self, model: Callable[..., T], **fields: At) -> None:
        self.wire = _struct([(each.path.split("."), each.kind) for each in fields.values()])
        self._model = model
        self._fields = [(name, each, each.path.split(".")) for name, each in fields.items()]

    def __call__(self, wire: msgspec.Struct) -> T:
        """Return the model of an object; raise ValueError where it has no name, or a field cannot be read."""
        found: dict[str, Any] = {}
        for name, field, path in self._fields:
            value: Any = wire
            for step in path:
                value = None if value is None else getattr(value, step)
            if value is not None:
                found[name] = field.made(value)
            elif field.absent is not msgspec.UNSET:
                found[name] = field.absent
        if "name" in found:
            named(found["name"])
        return self._model(**found)


def _struct(paths: Iterable[tuple[list[str], Any]]) -> type[msgspec.Struct]:
    """Return the form that has what stands at these paths; all of it may be null or absent."""
    below: dict[str, list[tuple[list[str], Any]]] = {}
    for (first, *rest), kind in paths:
        below.setdefault(first, []).append((rest, kind))
    fields = []
    for name, parts in below.items():
        rest, kind = parts[0]  # where several paths end, they have the same kind
        fields.append((name, (_struct(parts) if rest else kind) | None, None))
    return msgspec.defstruct("Object", fields, gc=False)
