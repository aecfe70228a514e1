"""Writes a live cluster to a file that `--snapshot` reads."""

import errno
import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from rebalancer.errors import ClusterError, Forbidden, UsageError
from rebalancer.kube.answers import NotFound, Rejected
from rebalancer.kube.halt import Deadline
from rebalancer.kube.lists import Items, read_list
from rebalancer.kube.wire.pages import KINDS, METRICS_KINDS, PATHS, path_of_list
from rebalancer.memory.document import KEY
from rebalancer.report.document import timestamp
from rebalancer.run.cluster_lists import no_list, unread_in_words
from rebalancer.run.live import LiveCluster, open_cluster
from rebalancer.run.memory import PAUSE_KEY, MemorySource
from rebalancer.run.options import ClientOptions, LeaseOptions
from rebalancer.run.progress import Progress, RunProgress
from rebalancer.run.snapshot_fields import kept, kept_fields
from rebalancer.untrusted.documents import Unreadable, in_words


def write_whole(path: Path, content: bytes) -> None:
    """Write a file with mode 0600; an older one stays as it is until the new one is complete.

    What is not a file, like /dev/stdout, is written to directly; a pipe only where somebody reads it.

    Raises:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():
        _write_to_device(path, content)
        return
    target = path.resolve()  # a link stays a link
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:_LONGEST_PREFIX]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    finally:
        with suppress(FileNotFoundError):  # it was renamed to the target
            Path(name).unlink()


def _write_to_device(path: Path, content: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # a pipe without a reader would block for ever
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe that nobody reads") from None
        raise
    os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


#: How much of the file's name the temporary file's name takes over: a name may have at most 255 bytes.
_LONGEST_PREFIX = 40


#: The longest wait for usage, which a snapshot can do without.
_METRICS_SECONDS = 10.0


def _encoded(item: Any) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(item))
    except RecursionError as error:
        raise Unreadable(in_words(error)) from error


#: Reads all objects of a kind within a deadline.
ReadKind = Callable[[str, Deadline | None], list[msgspec.Raw]]


def _reader(live: LiveCluster, progress: RunProgress) -> ReadKind:
    """Return what reads objects, keeps what may leave the cluster, and tells of each page."""
    kept_by_kind = kept_fields()

    def read(kind: str, deadline: Deadline | None) -> list[msgspec.Raw]:
        def new() -> Items[dict[str, Any], msgspec.Raw]:
            return Items(kind, dict[str, Any], lambda item: _encoded(kept(item, kept_by_kind[kind])))

        def told(found: Items[dict[str, Any], msgspec.Raw]) -> None:
            progress.reading(KINDS[kind][1], len(found.items), found.more)

        try:
            return read_list(live.client, path_of_list(kind), new, deadline=deadline, after_page=told).items
        except ValueError as error:
            raise no_list(live, kind, error) from error

    return read


def capture(
    kubeconfig: str | None,
    context: str | None,
    path: str,
    asking: ClientOptions | None = None,
    progress: Progress | None = None,
) -> tuple[Mapping[str, int], tuple[str, ...]]:
    """Write nodes, pods and all else that policies may need to a file (`-`: standard output), gzipped if named `.gz`.

    Usage is included if there is a metrics-server.  Only fields that a decision may need are kept
    (`rebalancer.run.snapshot_fields`).

    Returns:
        The number of objects by kind, and warnings about kinds for which the permission is missing.

    Raises:
        ClusterError: the cluster cannot be reached, or the permission to read nodes or pods is missing.
        UsageError: the file cannot be written.
    """
    live = open_cluster(kubeconfig, context, asking=asking)
    now = datetime.now(UTC)
    steps = RunProgress(progress)
    with steps.stage("read"):
        memory = _memory(live)
        lists, warnings = _read_everything(_reader(live, steps))
    _write(Path(path), _file(lists, now, live, memory))
    return {kind: len(items) for kind, items in lists.items()}, tuple(warnings)


def _read_everything(read: ReadKind) -> tuple[dict[str, list[msgspec.Raw]], list[str]]:
    """Return the objects by kind, and warnings about what could not be read."""
    lists: dict[str, list[msgspec.Raw]] = {}
    warnings = []
    unread: dict[str, ClusterError] = {}
    for kind in PATHS:
        try:
            lists[kind] = read(kind, None)
        except (Forbidden, Rejected) as error:
            if kind in ("Node", "Pod"):
                raise
            unread[kind] = error
    if unread:
        warnings.append(f"left out: {unread_in_words(unread)}")
    deadline = Deadline.after(_METRICS_SECONDS)
    try:
        lists |= {kind: read(kind, deadline) for kind in METRICS_KINDS}
    except NotFound:
        pass  # there is no metrics-server
    except (ClusterError, ValueError) as error:
        warnings.append(f"usage is left out: {error}")
    return lists, warnings


def _memory(live: LiveCluster) -> Mapping[str, object]:
    """Return what the file says of the memory: its text, or why it could not be read."""
    source = MemorySource.of(live, LeaseOptions())
    try:
        return {"memory": {key: text for key, text in source.map.read().data.items() if key in (KEY, PAUSE_KEY)}}
    except ClusterError as error:
        return {"memoryProblem": f"the memory {source.name} could not be read: {error}"}


def _file(
    lists: Mapping[str, list[msgspec.Raw]], now: datetime, live: LiveCluster, memory: Mapping[str, object]
) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "List",
            "rebalancer": {"now": timestamp(now), **live.description, **memory},
            "items": [
                {"apiVersion": KINDS[kind][0], "kind": f"{kind}List", "items": items} for kind, items in lists.items()
            ],
        }
    )


def _write(path: Path, content: bytes) -> None:
    try:
        if str(path) == "-":
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
            return
        write_whole(path, gzip.compress(content) if path.suffix == ".gz" else content)
    except OSError as error:
        raise UsageError(f"snapshot {path} cannot be written: {error.strerror}") from error
