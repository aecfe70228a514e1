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
    """A node at the time of the snapshot."""

    name: str
    labels: Labels = {}
    unschedulable: bool = False
    ready: bool = True  # False only if it has a Ready condition that is not True
    taints: tuple[Taint, ...] = ()
    allocatable: Resources = {}  # what pods may request; empty where the status does not say
    capacity: Resources = {}
    addresses: Mapping[str, str] = {}  # address by type, like InternalIP
    created: datetime | None = None  # when it was created; None where that is missing
    seen: datetime | None = None  # the newest time in its status, a heartbeat as a rule
    kubelet_version: str = ""  # as in its status; empty where it is missing
    images: tuple[NodeImage, ...] = ()  # as the kubelet reports them, the largest fifty as a rule
    pressure: tuple[str, ...] = ()  # label and soft taint by which `rebalancer mark` shows pressure, as KEY=VALUE
    held_until: datetime | None = None  # until when a run that emptied it keeps it empty, by a soft taint of ours
    avoided: bool = False  # whether it carries the annotation of a run that steers
    as_marked: "Node | None" = None  # with these labels and taints, which only the scheduler sees; None without
    keeping: str = ""  # the annotation that keeps autoscalers from removing it; empty if it has none
    terminating: bool = False  # whether it is being deleted
    problem: str = ""  # why the node could not be read; empty if it could.  It is not ready then, and its pods stay

    @property
    def as_scheduled(self) -> "Node":
        """The node as the scheduler sees it."""
        return self.as_marked or self
