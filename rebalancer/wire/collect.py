"""Lists and files of objects, folded page by page into one snapshot."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from rebalancer.cluster.pdb import DisruptionBudget
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.wire import companions, metrics, objects, storage
from rebalancer.wire.pods import PodDecoder, PodWire

W = TypeVar("W")
T = TypeVar("T")


class _Identity(msgspec.Struct):
    name: Any = None
    namespace: Any = None


class _Identified(msgspec.Struct):
    metadata: _Identity = msgspec.field(default_factory=_Identity)


class _PageMetadata(msgspec.Struct):
    continue_: str | None = msgspec.field(default=None, name="continue")


class _RawPage(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    metadata: _PageMetadata = msgspec.field(default_factory=_PageMetadata)


class _Page(msgspec.Struct, Generic[W]):
    items: list[W] | None = None
    metadata: _PageMetadata = msgspec.field(default_factory=_PageMetadata)


#: What decoding and converting an object may raise.
_MALFORMED = (ValueError, msgspec.MsgspecError)


class Folder(Generic[W, T]):
    """Collects the objects of one kind; a malformed one becomes a stand-in that says so, else a warning."""

    def __init__(
        self,
        kind: str,
        wire: type[W],
        convert: Callable[[W], T],
        stand_in: Callable[[bytes, str], T] | None = None,
    ) -> None:
        self.items: list[T] = []
        self.warnings: list[str] = []
        self._kind = kind
        self._convert = convert
        self._stand_in = stand_in
        self._page = msgspec.json.Decoder(_Page[wire])  # type: ignore[valid-type]  # a type at run time
        self._item = msgspec.json.Decoder(wire)

    def fold(self, page: bytes) -> str:
        """Take in one page of a list and return its continue token, empty at the end.

        Raises:
            ValueError: the page is no list at all.
        """
        try:
            decoded = self._page.decode(page)
            converted = [self._convert(each) for each in decoded.items or ()]
        except _MALFORMED:
            return self._fold_one_by_one(page)
        self.items.extend(converted)
        return decoded.metadata.continue_ or ""

    def add(self, raw: bytes) -> None:
        """Take in one object."""
        try:
            self.items.append(self._convert(self._item.decode(raw)))
        except _MALFORMED as error:
            self._malformed(raw, str(error))

    def _fold_one_by_one(self, page: bytes) -> str:
        decoded = msgspec.json.decode(page, type=_RawPage)
        for raw in decoded.items or ():
            self.add(bytes(raw))
        return decoded.metadata.continue_ or ""

    def _malformed(self, raw: bytes, problem: str) -> None:
        try:
            identity = msgspec.json.decode(raw, type=_Identified).metadata
            if self._stand_in and identity.name:
                self.items.append(self._stand_in(raw, problem))
                return
        except _MALFORMED:
            identity = _Identity()
        name = "/".join(str(part) for part in (identity.namespace, identity.name) if part) or "without a name"
        self.warnings.append(f"{self._kind} {name} is malformed and ignored: {problem}")


def _new_folder(kind: str, wire: Any, convert: Callable[[Any], Any]) -> Callable[[], Folder[Any, Any]]:
    return lambda: Folder(kind, wire, convert)


class Collection:
    """The objects of a cluster, collected kind by kind.

    Attributes:
        folders: by kind, as `kind` is spelled in documents.
    """

    def __init__(self) -> None:
        pods = PodDecoder()
        self._new: dict[str, Callable[[], Folder[Any, Any]]] = {
            "Node": lambda: Folder("Node", objects.NodeWire, objects.node),
            "Pod": lambda: Folder("Pod", PodWire, pods.convert, pods.malformed),
            "Namespace": lambda: Folder("Namespace", objects.NamespaceWire, objects.namespace),
            "PodDisruptionBudget": lambda: Folder("PodDisruptionBudget", objects.BudgetWire, objects.budget),
            "PriorityClass": lambda: Folder("PriorityClass", objects.PriorityClassWire, objects.priority_class),
            "PersistentVolumeClaim": lambda: Folder("PersistentVolumeClaim", storage.ClaimWire, storage.claim),
            "NodeMetrics": lambda: Folder("NodeMetrics", metrics.NodeMetricsWire, metrics.node_metrics),
            "PodMetrics": lambda: Folder("PodMetrics", metrics.PodMetricsWire, metrics.pod_metrics),
        }
        self._new.update({kind: _new_folder(kind, *how) for kind, how in companions.KINDS.items()})
        self.folders: dict[str, Folder[Any, Any]] = {kind: self.folder(kind) for kind in self._new}
        self.seen: set[str] = set()

    def folder(self, kind: str) -> Folder[Any, Any]:
        """Return a fresh folder for a kind, to begin its list anew."""
        return self._new[kind]()

    def take(self, kind: str, folder: Folder[Any, Any]) -> None:
        """Make this folder's objects the objects of its kind."""
        self.folders[kind] = folder
        self.seen.add(kind)

    def add(self, kind: str, raw: bytes) -> None:
        """Take in one object of a known kind; others are ignored."""
        if kind in self.folders:
            self.seen.add(kind)
            self.folders[kind].add(raw)

    def snapshot(self, now: datetime, warnings: tuple[str, ...] = ()) -> Snapshot:
        """Return what was collected; kinds that were never seen are None.

        An object that occurs twice counts once, as it was last.
        """
        pods = tuple({pod.key: pod for pod in self.folders["Pod"].items}.values())
        left_alone = (f"Pod {pod} is malformed and left alone: {pod.problem}" for pod in pods if pod.problem)
        return Snapshot(
            now=now,
            nodes=tuple({node.name: node for node in self.folders["Node"].items}.values()),
            pods=pods,
            namespaces=self._map("Namespace"),
            budgets=self._budgets(),
            priority_classes=self._map("PriorityClass"),
            claims=self._storage_classes(),
            companions=companions.companions(self._items),
            node_metrics=self._tuple("NodeMetrics"),
            pod_metrics=self._tuple("PodMetrics"),
            warnings=(*warnings, *(text for folder in self.folders.values() for text in folder.warnings), *left_alone),
        )

    def _budgets(self) -> tuple[DisruptionBudget, ...] | None:
        if "PodDisruptionBudget" not in self.seen:
            return None
        items = self.folders["PodDisruptionBudget"].items
        return tuple({(budget.namespace, budget.name): budget for budget in items}.values())

    def _items(self, kind: str) -> list[Any] | None:
        return self.folders[kind].items if kind in self.seen else None

    def _storage_classes(self) -> dict[tuple[str, str], str | None] | None:
        claims = self._items("PersistentVolumeClaim")
        return None if claims is None else {key: claim.storage_class or None for key, claim in claims}

    def _tuple(self, kind: str) -> tuple[Any, ...] | None:
        return tuple(self.folders[kind].items) if kind in self.seen else None

    def _map(self, kind: str) -> dict[Any, Any] | None:
        return dict(self.folders[kind].items) if kind in self.seen else None


class _Document(msgspec.Struct):
    kind: str = ""
    items: list[msgspec.Raw] | None = None


def add_document(collection: Collection, raw: bytes, inherited: str = "") -> None:
    """Take in a document: an object, a list of objects of any kinds, or a list of lists.

    Raises:
        ValueError: the bytes are no JSON object.
    """
    document = msgspec.json.decode(raw, type=_Document)
    if document.items is None and not document.kind.endswith("List"):
        collection.add(document.kind or inherited, raw)
        return
    kind = document.kind.removesuffix("List")
    if kind in collection.folders:
        collection.seen.add(kind)
    for item in document.items or ():
        add_document(collection, bytes(item), kind)
