"""The annotations that are read: the descheduler's, the kubelet's, the scheduler's, those of autoscalers, and ours."""

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec

from rebalancer.cluster.scheduler_inputs import Notes
from rebalancer.kube.wire.shared_fields import Metadata
from rebalancer.policy.moving import AVOID_KEY, HOLD_KEY, PRESSURE_KEY

T = TypeVar("T")
EVICT = "descheduler.alpha.kubernetes.io/evict"
_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_YES, _FALSE = "true", "false"
#: Values that clearly mean no, and need no warning.
_NO = ("false", "0", "no")
_LONGEST_SHOWN = 40
#: A string, null or absent.  Go reads null as an empty string, so an annotation that is null is present.
_Text = str | msgspec.UnsetType | None


#: A time in a note of ours: without a zone it says nothing, and the note cannot be read.
Zoned = Annotated[datetime, msgspec.Meta(tz=True)]


def read_note(text: str | msgspec.Raw | None, kind: type[T]) -> T | None:
    """Return what an annotation of ours says; None where there is none, or one that cannot be read."""
    try:
        return msgspec.json.decode(text or "", type=kind)
    except (ValueError, RecursionError, OverflowError):
        return None


class Annotations(msgspec.Struct, frozen=True, gc=False):
    """Annotations of a pod."""

    evict: str | None = msgspec.field(default=None, name=EVICT)
    prefer_no_eviction: _Text = msgspec.field(
        default=msgspec.UNSET, name="descheduler.alpha.kubernetes.io/prefer-no-eviction"
    )
    evict_only: str | None = msgspec.field(default=None, name="descheduler.alpha.kubernetes.io/request-evict-only")
    in_progress: str | None = msgspec.field(default=None, name="descheduler.alpha.kubernetes.io/eviction-in-progress")
    critical_pod: _Text = msgspec.field(default=msgspec.UNSET, name="scheduler.alpha.kubernetes.io/critical-pod")
    config_mirror: _Text = msgspec.field(default=msgspec.UNSET, name="kubernetes.io/config.mirror")
    config_source: _Text = msgspec.field(default=msgspec.UNSET, name="kubernetes.io/config.source")
    safe_to_evict: _Text = msgspec.field(default=msgspec.UNSET, name=_SAFE_TO_EVICT)
    do_not_disrupt: _Text = msgspec.field(default=msgspec.UNSET, name=_DO_NOT_DISRUPT)


def noted(given: Annotations) -> dict[str, Any]:
    """Return the fields of a pod that annotations make; where only one value means yes, it may be in any case."""
    evict = (given.evict or "").lower()
    keeps = "" if _says(given.do_not_disrupt, _FALSE) else _DO_NOT_DISRUPT
    return {
        "mirror": given.config_mirror is not msgspec.UNSET,
        "static": given.config_source not in (msgspec.UNSET, "api"),
        "evict_annotation": evict == _YES,
        "prefer_no_eviction": given.prefer_no_eviction is not msgspec.UNSET,
        "marked_critical": given.critical_pod is not msgspec.UNSET,
        "remark": "" if given.evict is None or evict == _YES else _odd(given.evict),
        "holding": keeps if _says(given.safe_to_evict, _YES) else _SAFE_TO_EVICT,
    }


def _odd(evict: str) -> str:
    if evict.strip().lower() in _NO:
        return ""
    return f"has {evict[:_LONGEST_SHOWN]!r} as its {EVICT}, which counts as no: only 'true' means yes"


class _OwnerAnnotations(msgspec.Struct, gc=False):
    window: str | None = msgspec.field(default=None, name="kube-rebalancer/window")
    pause: str | None = msgspec.field(default=None, name="kube-rebalancer/pause")
    restart: str | None = msgspec.field(default=None, name="kube-rebalancer/restart")


class OwnerMetadata(Metadata, gc=False, rename="camel"):
    """What is used of the metadata of a namespace, or of an owner of pods."""

    annotations: _OwnerAnnotations | None = None

    @property
    def notes(self) -> Notes | None:
        """What its annotations say; None if there are none of ours."""
        found = self.annotations or _OwnerAnnotations()
        noted = Notes(found.window or "", found.pause or "", found.restart or "")
        return noted if noted != Notes() else None


class _PressureNote(msgspec.Struct, gc=False):
    label: str = ""
    taint: str = ""


class _HoldNote(msgspec.Struct, gc=False):
    run: str
    expires: Zoned

    def __post_init__(self) -> None:
        self.expires.astimezone(UTC)  # what the mark itself cannot be read from (`Note`) holds nothing


class NodeAnnotations(msgspec.Struct, gc=False):
    """Annotations of a node."""

    scale_down_disabled: _Text = msgspec.field(default=msgspec.UNSET, name=_SCALE_DOWN_DISABLED)
    do_not_disrupt: _Text = msgspec.field(default=msgspec.UNSET, name=_DO_NOT_DISRUPT)
    pressure: str | None = msgspec.field(default=None, name=PRESSURE_KEY)
    hold: str | None = msgspec.field(default=None, name=HOLD_KEY)
    avoid: _Text = msgspec.field(default=msgspec.UNSET, name=AVOID_KEY)

    @property
    def marks(self) -> tuple[str, ...]:
        """The label and the soft taint that `rebalancer mark` has set, each as KEY=VALUE; empty if nothing says so."""
        note = read_note(self.pressure, _PressureNote)
        return tuple(filter(None, (note.label, note.taint))) if note else ()

    @property
    def held_until(self) -> datetime | None:
        """Until when a run that emptied the node keeps it empty; None if nothing says so in a way that can be read."""
        note = read_note(self.hold, _HoldNote)
        return note.expires if note else None

    @property
    def keeping(self) -> str:
        """The annotation that keeps autoscalers from removing the node; empty if none does."""
        if not _says(self.scale_down_disabled, _FALSE):
            return _SCALE_DOWN_DISABLED
        return "" if _says(self.do_not_disrupt, _FALSE) else _DO_NOT_DISRUPT


def _says(annotation: _Text, harmless: str) -> bool:
    """Return whether an annotation is absent, or has the one value that clearly keeps nothing; any other may keep."""
    return annotation is msgspec.UNSET or (isinstance(annotation, str) and annotation.strip().lower() == harmless)


#: The names of these annotations.
ANNOTATIONS = tuple(field.encode_name for field in msgspec.structs.fields(Annotations))
OWNER_ANNOTATIONS = tuple(field.encode_name for field in msgspec.structs.fields(_OwnerAnnotations))
NODE_ANNOTATIONS = tuple(field.encode_name for field in msgspec.structs.fields(NodeAnnotations))
