"""Lists as the API server writes them, page by page, and the objects of one kind that are collected from them.

An object that cannot be read becomes a stand-in that protects.  A list is read in full or not at all.  Any other answer
(a Status, a proxy's page, a list of another kind) must never pass for an empty list: without objects there would be no
protection.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
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
#: The kinds that metrics-server serves.
METRICS_KINDS = ("NodeMetrics", "PodMetrics")


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
    """Return whether an apiVersion has the API group of a known kind; another group may have a kind of that name.

    An apiVersion without a group passes for all: files written by hand leave it out.
    """
    return api_version.rpartition("/")[0] in ("", resource_of(kind)[0])


def items_of(page: ListPage[W], kind: str) -> list[W]:
    """Return the objects on a page.

    Raises:
        ValueError: it is not a page of a list of this kind.
    """
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
_MALFORMED = (ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


@dataclass(frozen=True, slots=True)
class Kind(Generic[W, T]):
    """What is needed to collect the objects of a kind.

    Attributes:
        name: as documents spell it.
        wire: what an object is decoded as.
        convert: makes the model of it; raises ValueError where it cannot.
        key: what identifies an object among its kind; None for a stand-in of unknown identity.
        stand_in: makes what stands for an object that cannot be read, from its bytes and the problem; raises
            ValueError where nothing can stand for it.
        meaning: text that says what becomes of an object with a stand-in; empty where the stand-in itself says so.
        otherwise: text that says what becomes of an object without one.
    """

    name: str
    wire: type[W]
    convert: Callable[[W], T]
    key: Callable[[T], Hashable]
    stand_in: Callable[[bytes, str], T] | None = None
    meaning: str = ""
    otherwise: str = "ignored"


#: What becomes of kinds where any object may change the answer for any pod.
SPOILT = "its whole kind counts as not read"


def itself(item: Hashable) -> Hashable:
    """Return the key of an object whose name is not read: it is compared as a whole."""
    return item


class ListCollector(Generic[W, T]):
    """Collects the objects of one kind; a malformed one becomes a stand-in or is left out, with a warning.

    Attributes:
        lost: how many were left out.
        more: how many are on the pages to come; None where the server does not say.
    """

    def __init__(self, kind: Kind[W, T]) -> None:
        self.items: list[T] = []
        self.lost = 0
        self.more: int | None = None
        self._kind = kind
        self._page = msgspec.json.Decoder(ListPage[kind.wire])  # type: ignore[name-defined]  # a type at run time
        self._item = msgspec.json.Decoder(kind.wire)
        self._malformed_ones: list[tuple[str, str]] = []

    @property
    def warnings(self) -> list[str]:
        """About malformed ones; those of which the same is to be said are in one line."""
        return grouped(self._kind.name, self._malformed_ones)

    def add_page(self, page: bytes) -> str:
        """Add one page of a list and return its continue token, empty at the end."""
        try:
            decoded = self._page.decode(page)
            converted = [self._kind.convert(each) for each in items_of(decoded, self._kind.name)]
        except _MALFORMED:
            return self._add_one_by_one(page)
        self.items.extend(converted)
        self.more = decoded.metadata.remaining_item_count
        return decoded.token

    def add(self, raw: bytes | Copied | msgspec.Raw) -> None:
        """Add one object.

        Raises:
            Unreadable: it is nested too deep.
        """
        try:
            self.items.append(self._kind.convert(self._item.decode(raw)))
        except _MALFORMED as error:
            self._add_malformed(raw, in_words(error))

    def add_if(self, decode: Callable[[], W | None]) -> bool:
        """Add one object if it can be read and is one of this kind; None stands for one of another kind."""
        try:
            decoded = decode()
            if decoded is not None:
                self.items.append(self._kind.convert(decoded))
        except _MALFORMED:
            return False
        return decoded is not None

    def unique(self) -> tuple[T, ...]:
        """Return the objects; one that occurs twice and is the same both times counts once.

        Raises:
            ValueError: an object occurs twice, and the two differ in something that is read.
        """
        found: dict[Hashable, T] = {}
        for number, item in enumerate(self.items):
            key = self._kind.key(item)
            first = found.setdefault(number if key is None else key, item)
            if first is not item and _fields(first) != _fields(item):
                name = "/".join(key) if isinstance(key, tuple) else key
                raise ValueError(f"{self._kind.name} {name} occurs twice, and the two differ")
        return tuple(found.values())

    def _add_one_by_one(self, page: bytes) -> str:
        decoded = decode_json(page, ListPage[msgspec.Raw])
        for raw in items_of(decoded, self._kind.name):
            self.add(raw)
        self.more = decoded.metadata.remaining_item_count
        return decoded.token

    def _add_malformed(self, raw: bytes | Copied | msgspec.Raw, problem: str) -> None:
        stands = self._stand_in(raw, problem)
        self.lost += not stands
        meaning = self._kind.meaning if stands else self._kind.otherwise
        if meaning:
            self._malformed_ones.append((_name(raw), f"is malformed and {meaning}: {problem}"))

    def _stand_in(self, raw: bytes | Copied | msgspec.Raw, problem: str) -> bool:
        if self._kind.stand_in is None:
            return False
        try:
            self.items.append(self._kind.stand_in(bytes(raw), problem))
        except RecursionError as error:  # not even its name can be read, and without it nothing would be protected
            raise Unreadable(in_words(error)) from error
        except _MALFORMED:
            return False
        return True


def grouped(kind: str, remarks: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each thing said of objects by name: `12 Pod objects (a, b, c and 9 more): each ...`."""
    names: dict[str, list[str]] = {}
    for name, says in sorted(remarks):
        names.setdefault(says, []).append(name)
    return [_line(kind, who, says) for says, who in sorted(names.items(), key=lambda each: each[1])]


def _line(kind: str, names: Sequence[str], says: str) -> str:
    if len(names) == 1:
        return f"{kind} {names[0]} {says}"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{len(names)} {kind} objects ({', '.join(names[:_MOST_NAMES])}{more}): each {says}"


def _fields(item: object) -> object:
    """Return what to compare two objects by: their fields, since `==` finds a pod equal to itself only.

    No decision depends on the version: two that differ in it alone differ in something that is not read.
    """
    if not isinstance(item, msgspec.Struct):
        return item
    return {name: value for name, value in msgspec.structs.asdict(item).items() if name != "resource_version"}


def _name(raw: bytes | Copied | msgspec.Raw) -> str:
    try:
        identity = msgspec.json.decode(raw, type=NamedObject).metadata
    except _MALFORMED:
        identity = Naming()
    return "/".join(str(part) for part in (identity.namespace, identity.name) if part) or "without a name"
