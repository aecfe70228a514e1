"""Lists as the API server writes them, page by page, and the objects of one kind that are collected from them.

An object that cannot be read becomes a stand-in that protects.  A list is read in full or not at all.  Any other answer
(a Status, a proxy's page, a list of another kind) must never pass for an empty list: without objects there would be no
protection.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from rebalancer.kube.wire.shared_fields import NamedObject, Naming
from rebalancer.untrusted.documents import Copied, Unreadable, decode_json, in_words

W = TypeVar("W")
T = TypeVar("T")

#: apiVersion and plural of each kind that is read.  From this table follow where kinds are listed, what a snapshot file
#: says of them, and what a message says that a role lacks.
KINDS: Mapping[str, tuple[str, str]] = {
    "Node": ("v1", "nodes"),
    "Pod": ("v1", "pods"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "Namespace": ("v1", "namespaces"),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "PersistentVolume": ("v1", "persistentvolumes"),
    "Service": ("v1", "services"),
    "ReplicationController": ("v1", "replicationcontrollers"),
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "Job": ("batch/v1", "jobs"),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "horizontalpodautoscalers"),
    "StorageClass": ("storage.k8s.io/v1", "storageclasses"),
    "CSINode": ("storage.k8s.io/v1", "csinodes"),
    "CSIDriver": ("storage.k8s.io/v1", "csidrivers"),
    "CSIStorageCapacity": ("storage.k8s.io/v1", "csistoragecapacities"),
    "VolumeAttachment": ("storage.k8s.io/v1", "volumeattachments"),
    "NodeMetrics": ("metrics.k8s.io/v1beta1", "nodes"),
    "PodMetrics": ("metrics.k8s.io/v1beta1", "pods"),
}
METRICS_KINDS = ("NodeMetrics", "PodMetrics")  # the kinds that metrics-server serves


def path_of_list(kind: str) -> str:
    """Return where a kind is listed: `/api/v1/pods`, `/apis/apps/v1/replicasets`."""
    version, plural = KINDS[kind]
    return f"/{'apis' if '/' in version else 'api'}/{version}/{plural}"


#: Where the kinds that API servers themselves serve are listed.
PATHS: Mapping[str, str] = {kind: path_of_list(kind) for kind in KINDS if kind not in METRICS_KINDS}


def resource_of(kind: str) -> tuple[str, str]:
    """Return API group and plural of a kind, as roles spell them; the core group's name is empty."""
    version, plural = KINDS[kind]
    return version.rpartition("/")[0], plural


class PageMetadata(msgspec.Struct, rename="camel"):
    """What is used of a list's metadata."""

    continue_: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class ListPage(msgspec.Struct, Generic[W], rename="camel"):
    """One page of a list."""

    kind: str = ""
    api_version: str = ""
    metadata: PageMetadata = msgspec.field(default_factory=PageMetadata)
    items: list[W] | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def token(self) -> str:
        """The token that asks for the next page; empty after the last one."""
        return self.metadata.continue_ or ""


def is_of(kind: str, api_version: str) -> bool:
    """Return whether an apiVersion has the API group of a known kind; without a group it passes: files leave it out."""
    return api_version.rpartition("/")[0] in ("", resource_of(kind)[0])


def items_of(page: ListPage[W], kind: str) -> list[W]:
    """Return the objects on a page; raise ValueError if it is not a page of a list of this kind."""
    if page.kind != f"{kind}List" or not is_of(kind, page.api_version):
        found = f"{page.api_version} {page.kind}".strip() or "nothing that says its kind"
        raise ValueError(f"{kind}List was asked for, and {found} came")
    if page.items is msgspec.UNSET:
        raise ValueError(f"a {kind}List without items")
    if page.items is None and page.token:
        raise ValueError(f"a {kind}List whose items are null although more are to follow")
    if page.metadata.remaining_item_count and not page.token:
        raise ValueError(f"a part of a {kind}List: {page.metadata.remaining_item_count} more objects are not in it")
    return page.items or []  # null is how Go writes an empty list


_MOST_NAMES = 3
#: What decoding and converting an object may raise.
MALFORMED = (ValueError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Kind(Generic[W, T]):
    """What is needed to collect the objects of a kind.

    A stand-in is made of the bytes and the problem of an object that cannot be read; ValueError: nothing can stand for
    it.  `meaning` says what becomes of such an object, unless the stand-in does.
    """

    name: str  # as documents spell it
    wire: type[W]  # what an object is decoded as
    convert: Callable[[W], T]  # makes the model of it; raises ValueError where it cannot
    key: Callable[[T], Hashable]  # what identifies an object among its kind; None for a stand-in of unknown identity
    stand_in: Callable[[bytes, str], T] | None = None
    meaning: str = ""
    otherwise: str = "ignored"  # text that says what becomes of an object without one


SPOILT = "its whole kind counts as not read"  # what becomes of kinds where any object may change the answer for any pod


class Items(Generic[W, T]):
    """Collects the objects of one kind, page by page, decoded and converted; one that cannot be read is an error."""

    def __init__(self, name: str, wire: type[W], convert: Callable[[W], T]) -> None:
        self.items: list[T] = []
        self.more: int | None = None  # how many are on the pages to come; None where the server does not say
        self._name = name
        self._page = ListPage[wire]  # type: ignore[valid-type]  # a type at run time
        self._convert = convert

    def add_page(self, page: bytes) -> str:
        """Add one page of a list and return its continue token, empty at the end."""
        decoded = decode_json(page, self._page)
        self.items += [self._convert(each) for each in items_of(decoded, self._name)]
        self.more = decoded.metadata.remaining_item_count
        return decoded.token


class ListCollector(Items[W, T]):
    """Collects the objects of one kind; a malformed one becomes a stand-in or is left out, with a warning."""

    def __init__(self, kind: Kind[W, T]) -> None:
        super().__init__(kind.name, kind.wire, kind.convert)
        self.lost = 0  # how many were left out
        self._kind = kind
        self._item = msgspec.json.Decoder(kind.wire)
        self._malformed_ones: list[tuple[str, str]] = []

    @property
    def warnings(self) -> list[str]:
        """About malformed ones; those of which the same is to be said are in one line."""
        return grouped(self._kind.name, self._malformed_ones)

    def add_page(self, page: bytes) -> str:
        """Add one page; where something is malformed, one object after the other."""
        try:
            return super().add_page(page)
        except MALFORMED:
            one_by_one = Items(self._kind.name, msgspec.Raw, self.add)
            token, self.more = one_by_one.add_page(page), one_by_one.more
            return token

    def add(self, raw: bytes | Copied | msgspec.Raw) -> None:
        """Add one object; raise Unreadable if it is nested too deep."""
        try:
            self.items.append(self._kind.convert(self._item.decode(raw)))
        except MALFORMED as error:
            self._add_malformed(raw, in_words(error))

    def unique(self) -> tuple[T, ...]:
        """Return the objects; one that occurs twice and is the same both times counts once, else it is a ValueError."""
        found: dict[Hashable, T] = {}
        for number, item in enumerate(self.items):
            key = self._kind.key(item)
            first = found.setdefault(number if key is None else key, item)
            if first is not item and _fields(first) != _fields(item):
                name = "/".join(key) if isinstance(key, tuple) else key
                raise ValueError(f"{self._kind.name} {name} occurs twice, and the two differ")
        return tuple(found.values())

    def _add_malformed(self, raw: bytes | Copied | msgspec.Raw, problem: str) -> None:
        before = len(self.items)
        try:
            self.items += [self._kind.stand_in(bytes(raw), problem)] if self._kind.stand_in else []
        except RecursionError as error:  # not even its name can be read, and without it nothing would be protected
            raise Unreadable(in_words(error)) from error
        except MALFORMED:
            pass  # nothing can stand for it
        stands = len(self.items) > before
        self.lost += not stands
        if meaning := self._kind.meaning if stands else self._kind.otherwise:
            self._malformed_ones.append((name_of(raw), f"is malformed and {meaning}: {problem}"))


def grouped(kind: str, remarks: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each thing said of objects by name: `12 Pod objects (a, b, c and 9 more): each ...`."""
    names: dict[str, list[str]] = {}
    for name, says in sorted(remarks):
        names.setdefault(says, []).append(name)
    found = []
    for says, who in sorted(names.items(), key=lambda each: each[1]):
        more = f" and {len(who) - _MOST_NAMES} more" if len(who) > _MOST_NAMES else ""
        several = f"{len(who)} {kind} objects ({', '.join(who[:_MOST_NAMES])}{more}): each {says}"
        found.append(several if len(who) > 1 else f"{kind} {who[0]} {says}")
    return found


def _fields(item: object) -> object:
    """Return the fields to compare two objects by; one that differs in its version alone differs in nothing read."""
    if not isinstance(item, msgspec.Struct):
        return item
    return {name: value for name, value in msgspec.structs.asdict(item).items() if name != "resource_version"}


def name_of(raw: bytes | Copied | msgspec.Raw) -> str:
    """Return an object's name with its namespace, also where the rest of it cannot be read."""
    try:
        identity = msgspec.json.decode(raw, type=NamedObject).metadata
    except MALFORMED:
        identity = Naming()
    return "/".join(str(part) for part in (identity.namespace, identity.name) if part) or "without a name"
