"""Objects as the API server writes them, and what becomes of them."""

import json
from collections.abc import Iterable
from typing import Any

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import KINDS
from tests.make import NOW


def pod_document(name: str = "a", *, spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": spec or {}, "status": status or {}}


def page(items: Iterable[Any] | None, kind: str = "Pod", **metadata: Any) -> bytes:
    listed = items if items is None else list(items)
    version = KINDS[kind][0]
    return json.dumps({"kind": f"{kind}List", "apiVersion": version, "metadata": metadata, "items": listed}).encode()


def read_lists(**kinds: Iterable[Any]) -> Snapshot:
    """Read one page of each of these kinds."""
    collection = Collection()
    for kind, items in kinds.items():
        collector = collection.collector(kind)
        collector.add_page(page(items, kind))
        collection.replace(kind, collector)
    return collection.snapshot(NOW)


def read(kind: str, *items: Any) -> Snapshot:
    return read_lists(**{kind: items})


def read_pod(**fields: Any) -> Pod:
    return read("Pod", pod_document(**fields)).pods[0]


def container(**resources: Any) -> dict[str, Any]:
    """A container of a pod's spec, with these requests and limits."""
    return {"resources": resources}
