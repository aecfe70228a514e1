"""One page of a list as the API server writes it, and the checks that it is one.

A list is read in full or not at all.  Any other answer (a Status, a proxy's page, a list of another kind) must never
pass for an empty list: without objects there would be no protection.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

W = TypeVar("W")

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
