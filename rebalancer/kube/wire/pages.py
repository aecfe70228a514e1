"""One page of a list as the API server writes it, and the checks that it is one.

A list is read in full or not at all.  Any other answer (a Status, a proxy's page, a list of another kind) must never
pass for an empty list: without objects there would be no protection.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

W = TypeVar("W")

#: The API group of each kind that is read; the core group has no name.
GROUPS: Mapping[str, str] = {
    "Node": "",
    "Pod": "",
    "Namespace": "",
    "PersistentVolumeClaim": "",
    "PersistentVolume": "",
    "Service": "",
    "ReplicationController": "",
    "Deployment": "apps",
    "Job": "batch",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "StorageClass": "storage.k8s.io",
    "CSINode": "storage.k8s.io",
    "CSIDriver": "storage.k8s.io",
    "CSIStorageCapacity": "storage.k8s.io",
    "VolumeAttachment": "storage.k8s.io",
    "PodDisruptionBudget": "policy",
    "PriorityClass": "scheduling.k8s.io",
    "NodeMetrics": "metrics.k8s.io",
    "PodMetrics": "metrics.k8s.io",
}


class PageMetadata(msgspec.Struct, rename="camel"):
    """What is used of a list's metadata."""

    continue_: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class Page(msgspec.Struct, Generic[W], rename="camel"):
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
    return api_version.rpartition("/")[0] in ("", GROUPS[kind])


def items_of(page: Page[W], kind: str) -> list[W]:
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
