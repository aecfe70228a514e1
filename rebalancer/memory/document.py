"""The memory: what earlier cycles moved and measured, as a document that is small, and never believed without checks.

In a ConfigMap it is one text: JSON, gzipped, in base64.  Whoever may write ConfigMaps may write this one too.  So its
size is checked before it is unpacked and again while it is, its types and counts when it is decoded, and its times
against the clock.  What does not pass is corrupt as a whole: part of a forged memory is not worth more than none.

It is cut to size where it is written, the oldest first: moves of more than a day ago, which no rule needs by default,
then what was measured but for the last four cycles, then moves but for the last 1,200, then what is left of both.
Example: 5,000 nodes with two figures in each of twelve cycles and 4,000 moves of a day take some 300 KiB; six of the
cycles are left out, and it is 190.
"""

import base64
import binascii
import gzip
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Annotated

import msgspec
from msgspec.structs import replace

from rebalancer.cluster.pod import Pod
from rebalancer.untrusted.documents import Unreadable, decode_json, unpacked

#: The form of the document; a memory of a later one is left alone.
VERSION = 1
#: The key of the ConfigMap that holds it.
KEY = "memory"
#: Characters of that text at most.
LARGEST = 200 << 10
_LARGEST_UNPACKED = 16 << 20
_MOST_MOVES, _MOST_READINGS = 5_000, 12
_FEWEST_MOVES, _FEWEST_READINGS = 1_200, 4  # without readings a move would cost nothing, and no load would last
_DAY = timedelta(days=1)
#: By how much clocks may differ before a time counts as forged.
CLOCKS_DIFFER_BY = timedelta(minutes=10)

_LONGEST_NAME = 600
HIGHEST = 1_000_000.0  # percent of what is allocatable
_Name = Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]
_Figure = Annotated[float, msgspec.Meta(ge=0, le=HIGHEST)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class _OfOwner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    namespace: _Name
    owner: _Name  # as `owner_of` names it

    @property
    def key(self) -> tuple[str, str]:
        """The owner with its namespace."""
        return (self.namespace, self.owner)


class PastMove(_OfOwner, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An eviction of an earlier cycle, and what became of it."""

    at: _Time  # when the pod was evicted
    cycle: _Time  # when that cycle read the cluster; moves of one cycle have the same
    pod: _Name = ""
    source: _Name = ""
    foretold: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=64)] = ()  # where its replacement was expected
    strategy: _Name = ""  # who asked for it
    replacement: _Name = ""  # UID of the pod that came for it; empty until one was seen
    landed: _Name = ""  # the replacement's node; empty until it was bound
    ready: _Time | None = None  # when it was Ready; None until that was seen
    failed: _Name = ""  # what is wrong with the replacement, like `CrashLoopBackOff`; empty if nothing is
    undone: bool = False  # whether it came back, or its new node was relieved of it
    was_unready: bool = False  # whether the pod was not Ready: then nothing is waited for or held against it


class OwnerStop(_OfOwner, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An owner that loses no pod for a while, since a replacement of it failed: `times` in a row, the last by `why`."""

    since: _Time
    until: _Time
    times: _Count = 1
    why: _Name = ""


class Tripped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The breaker after it has stopped a run: since when, until when, and why; then one move is tried."""

    since: _Time
    until: _Time
    why: _Name = ""


class Reading(msgspec.Struct, frozen=True, gc=False):
    """What one cycle measured: by node and resource, percent of what is allocatable."""

    at: _Time
    nodes: dict[_Name, dict[_Name, _Figure]]


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered."""

    version: int = VERSION
    since: _Time  # when the memory begins; what was before is not known
    moves: Annotated[tuple[PastMove, ...], msgspec.Meta(max_length=_MOST_MOVES)] = ()  # the oldest first
    stops: Annotated[tuple[OwnerStop, ...], msgspec.Meta(max_length=_MOST_MOVES)] = ()  # of owners, by name
    readings: Annotated[tuple[Reading, ...], msgspec.Meta(max_length=_MOST_READINGS)] = ()  # of nodes, the oldest first
    breaker: Tripped | None = None  # None as long as it is closed
    counted_from: _Time | None = None  # failures before it do not trip the breaker again; None if all count
    undone: _Count = 0  # how many moves were undone since the memory began


class NewerMemory(Unreadable):
    """The memory was written by a later version of the program."""


class _Versioned(msgspec.Struct):
    version: int = 0


def owner_of(pod: Pod) -> str:
    """Return what a pod belongs to over all its templates, like `Deployment/web`; its own name if it has no owner.

    The API server takes an owner's name of any length; what would not be read again is cut.
    """
    owner = pod.controller
    return lasting_owner(owner.kind, owner.name, pod.labels)[:_LONGEST_NAME] if owner else f"Pod/{pod.name}"


def lasting_owner(kind: str, name: str, labels: Mapping[str, str]) -> str:
    """Return what stands above a pod's owner over all its templates.

    The ReplicaSet of a Deployment (or of an Argo Rollout) is named after it and the template's hash, which is a label
    of its pods.
    """
    for label, above in (("pod-template-hash", "Deployment"), ("rollouts-pod-template-hash", "Rollout")):
        ending = f"-{labels.get(label, '')}"
        if kind == "ReplicaSet" and len(ending) > 1 and name.endswith(ending):
            return f"{above}/{name.removesuffix(ending)}"
    return f"{kind}/{name}"


def owner_key(pod: Pod) -> tuple[str, str]:
    """Return the owner of a pod with its namespace."""
    return (pod.namespace, owner_of(pod))


def encoded(memory: Memory) -> str:
    """Return the memory as the text of a ConfigMap, cut to `LARGEST`."""
    memory = replace(memory, moves=memory.moves[-_MOST_MOVES:], readings=memory.readings[-_MOST_READINGS:])
    while True:
        text = base64.b64encode(gzip.compress(msgspec.json.encode(memory), mtime=0)).decode()
        if len(text) <= LARGEST:
            return text
        moves, readings, part = memory.moves, memory.readings, max(1, len(memory.moves) // 8)
        is_first = len(readings) <= _FEWEST_READINGS and len(moves) > _FEWEST_MOVES
        if moves and (is_first or not readings or moves[part - 1].at < moves[-1].at - _DAY):
            memory = replace(memory, moves=moves[part:])
        elif readings:
            memory = replace(memory, readings=readings[1:])
        else:
            memory = replace(memory, stops=memory.stops[max(1, len(memory.stops) // 8) :])


def decoded(data: Mapping[str, str], now: datetime) -> Memory | None:
    """Return a ConfigMap's memory, or None; raises NewerMemory if a later version wrote it, Unreadable if corrupt."""
    text = data.get(KEY, "")
    if not text:
        return None
    if len(text) > LARGEST:
        raise Unreadable(f"it has more than {LARGEST >> 10} KiB")
    try:
        content = unpacked(base64.b64decode(text, validate=True), _LARGEST_UNPACKED)
    except (binascii.Error, ValueError, OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"it cannot be unpacked: {error}") from error
    version = decode_json(content, _Versioned).version
    if version > VERSION:
        raise NewerMemory(f"a later version of the program wrote it (its form is {version}, this one knows {VERSION})")
    memory = decode_json(content, Memory)
    stops: list[OwnerStop | Tripped] = [*memory.stops, *filter(None, [memory.breaker])]
    moves = ((each.at, each.cycle, each.ready or each.at) for each in memory.moves)
    others = (memory.counted_from or memory.since, memory.since, *(each.at for each in memory.readings))
    try:
        latest = max(chain(*moves, others, (each.since for each in stops))).astimezone(UTC)
        bounded = all(each.until - each.since <= timedelta(days=2) for each in stops)
    except (OverflowError, ValueError) as error:
        raise Unreadable(f"it has a time that is none: {error}") from error
    if latest > now + CLOCKS_DIFFER_BY:
        raise Unreadable(f"it has a time that is still to come, {latest:%Y-%m-%dT%H:%M:%SZ}")
    if not bounded:
        raise Unreadable("it stops an owner, or the run, for days")
    return memory
