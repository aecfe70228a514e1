"""Nodes, narrowed to what decisions need; immutable."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rebalancer.cluster.resources import Resources
from rebalancer.cluster.selectors import Labels
from rebalancer.cluster.taints import Taint


class NodeImage(msgspec.Struct, frozen=True, gc=False):
    """An image on a node: its names, and its size in bytes."""

    names: tuple[str, ...]
    size: int


class Node(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A node at the time of the snapshot.

    Attributes:
        ready: False only if it has a Ready condition that is not True.
        allocatable: what pods may request; empty where the status does not say.
        addresses: address by type, like InternalIP.
        created: when it was created; None where that is missing.
        seen: the newest time in its status, a heartbeat as a rule.
        kubelet_version: as in its status; empty where it is missing.
        images: as the kubelet reports them, the largest fifty as a rule.
        pressure: the label and the soft taint by which `rebalancer mark` shows pressure on it, as KEY=VALUE.
        held_until: until when a run that emptied it keeps it empty, by a soft taint of ours; None if none does.
        avoided: whether it carries the annotation of a run that steers.
        as_marked: the node with these labels and taints, which only the scheduler sees; None where it carries none.
        keeping: the annotation that keeps autoscalers from removing it; empty if it has none.
        terminating: whether it is being deleted.
        problem: why the node could not be read; empty if it could.  It is not ready then, and its pods stay.
    """

    name: str
    labels: Labels = {}
    unschedulable: bool = False
    ready: bool = True
    taints: tuple[Taint, ...] = ()
    allocatable: Resources = {}
    capacity: Resources = {}
    addresses: Mapping[str, str] = {}
    created: datetime | None = None
    seen: datetime | None = None
    kubelet_version: str = ""
    images: tuple[NodeImage, ...] = ()
    pressure: tuple[str, ...] = ()
    held_until: datetime | None = None
    avoided: bool = False
    as_marked: "Node | None" = None
    keeping: str = ""
    terminating: bool = False
    problem: str = ""

    @property
    def as_scheduled(self) -> "Node":
        """The node as the scheduler sees it."""
        return self.as_marked or self
