"""Lists and files of objects, collected page by page into one snapshot."""

from collections.abc import Callable, Iterator
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.kube.wire import objects, pages, scheduler_inputs, shared_fields
from rebalancer.kube.wire.pages import Kind, ListCollector, ListPage, is_of
from rebalancer.kube.wire.pods import ListedPod, PodDecoder, PodWire
from rebalancer.kube.wire.specs import Specs
from rebalancer.kube.wire.workloads import WorkloadDecoder
from rebalancer.untrusted.documents import Copied, decode_json

Bytes: TypeAlias = bytes | Copied | msgspec.Raw
_LISTED_POD = msgspec.json.Decoder(ListedPod)


class Collection:
    """The objects of a cluster, collected kind by kind, as documents spell that."""

    def __init__(self) -> None:
        specs = Specs()
        self._pods, workloads = PodDecoder(specs), WorkloadDecoder(specs).kinds()
        pod: Kind[Any, Any] = Kind("Pod", PodWire, self._pods.convert, attrgetter("key"), self._pods.malformed)
        self._kinds = {each.name: each for each in (*objects.KINDS, pod, *workloads, *scheduler_inputs.KINDS)}
        self.collectors: dict[str, ListCollector[Any, Any]] = {kind: self.collector(kind) for kind in self._kinds}
        self.seen: set[str] = set()  # the kinds of which objects or lists were read
        self.unfinished: set[str] = set()  # the kinds whose last list says that more pages follow

    def collector(self, kind: str) -> ListCollector[Any, Any]:
        """Return a fresh collector for a kind, to begin its list anew."""
        return ListCollector(self._kinds[kind])

    def replace(self, kind: str, collector: ListCollector[Any, Any]) -> None:
        """Make this collector's objects the objects of its kind."""
        self.collectors[kind] = collector
        self.seen.add(kind)

    def add(self, kind: str, raw: Bytes) -> None:
        """Take in one object of a known kind; others are ignored."""
        if kind in self.collectors:
            self.seen.add(kind)
            self.collectors[kind].add(raw)

    def add_pod(self, raw: msgspec.Raw, kind: str, version: str) -> bool:
        """Take in an object if it is a pod that can be read; most are, and so they are looked at once."""
        try:
            pod = _LISTED_POD.decode(raw)
            if (pod.kind or kind) == "Pod" and pod.items is UNSET and is_of("Pod", pod.api_version or version):
                self.collectors["Pod"].items.append(self._pods.convert(pod))
                self.seen.add("Pod")
                return True
        except pages.MALFORMED:
            pass  # it is read again, and something will stand for it
        return False

    def check(self) -> None:
        """Raise ValueError if a list is not complete, or an object occurs twice and the two differ."""
        if self.unfinished:
            raise ValueError(f"the {min(self.unfinished)}List is not complete: more pages follow it")
        for collector in self.collectors.values():
            collector.unique()

    def take_list(self, kind: str, page: ListPage[msgspec.Raw]) -> None:
        """Note that a list of a known kind was read, or raise ValueError; its objects are added one by one."""
        pages.items_of(page, kind)
        self.seen.add(kind)
        (self.unfinished.add if page.token else self.unfinished.discard)(kind)

    def snapshot(self, now: datetime, warnings: tuple[str, ...] = ()) -> Snapshot:
        """Return what was collected; kinds that were never seen are None.  An object that occurs twice is an error."""
        pods: tuple[Pod, ...] = self.collectors["Pod"].unique()
        nodes: tuple[Node, ...] = self.collectors["Node"].unique()
        namespaces, classes = self._tuple("Namespace"), self._tuple("PriorityClass")
        claims = self._tuple("PersistentVolumeClaim")
        told = (text for collector in self.collectors.values() for text in collector.warnings)
        return Snapshot(
            now=now,
            nodes=nodes,
            pods=pods,
            namespaces=None if namespaces is None else {name: labels for name, labels, _, _ in namespaces},
            cluster_uid=next((uid for name, _, _, uid in namespaces or () if name == "kube-system"), ""),
            budgets=self._tuple("PodDisruptionBudget"),
            priority_classes=None if classes is None else dict(classes),
            claims=None
            if claims is None
            else {(each.namespace, each.name): each.storage_class or None for each in claims},
            scheduler_inputs=scheduler_inputs.scheduler_inputs(self._tuple, self._whole),
            node_metrics=self._tuple("NodeMetrics"),
            pod_metrics=self._tuple("PodMetrics"),
            warnings=(*warnings, *told, *pages.grouped("Pod", _about(pods))),
        )

    def _tuple(self, kind: str) -> tuple[Any, ...] | None:
        return self.collectors[kind].unique() if kind in self.seen else None

    def _whole(self, kind: str) -> tuple[Any, ...] | None:
        """Return the objects of a kind; None also where one of them could not be read."""
        return None if self.collectors[kind].lost else self._tuple(kind)


def _about(pods: tuple[Pod, ...]) -> Iterator[tuple[str, str]]:
    for pod in pods:
        if pod.problem:
            yield str(pod), f"is malformed and left alone: {pod.problem}"
        elif pod.remark:
            yield str(pod), pod.remark


class Document(msgspec.Struct, rename="camel"):
    """What says which kinds of objects a document holds."""

    kind: str = ""
    api_version: str = ""
    metadata: msgspec.Raw = msgspec.Raw()
    items: list[msgspec.Raw] | msgspec.UnsetType | None = UNSET

    def page(self) -> ListPage[msgspec.Raw]:
        """Return this list as the page that it is."""
        metadata = shared_fields.decode(bytes(self.metadata), pages.PageMetadata) or pages.PageMetadata()
        return ListPage(self.kind, self.api_version, metadata, self.items)


def read_pod(raw: bytes) -> Pod:
    """Return one pod; where it is malformed, one that stays; raise ValueError if not even its name can be read."""
    collector = Collection().collector("Pod")
    collector.add(raw)
    if not collector.items:
        raise ValueError(collector.warnings[0])
    pod: Pod = collector.items[0]
    return pod


def add_document(
    collection: Collection,
    raw: Bytes,
    inherited: tuple[str, str] = ("", ""),
    done_with: Callable[[int], None] | None = None,
    document: Document | None = None,
) -> None:
    """Take in a document: an object, a list of objects of any kinds, or a list of lists.

    The kind and the API group say what an object is: another group may have a kind of the same name.  Objects that do
    not name their own have inherited them.  `done_with` hears the size of each object; nothing before its end is read
    again.  The document is `raw`, where it is decoded already.
    """
    document = document or decode_json(raw, Document)
    version = document.api_version or inherited[1]
    if not isinstance(document.items, list) and not document.kind.endswith("List"):
        kind = document.kind or inherited[0]
        if kind in pages.KINDS and is_of(kind, version):
            collection.add(kind, raw)
        if done_with is not None:
            done_with(len(raw))
        return
    kind = document.kind.removesuffix("List")
    if kind in pages.KINDS and is_of(kind, version):
        collection.take_list(kind, document.page())
    for item in document.items or ():
        if not collection.add_pod(item, kind, version):
            add_document(collection, item, (kind, version), done_with)
        elif done_with is not None:
            done_with(len(item))
