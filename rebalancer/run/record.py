"""Appends one sample of metrics-server to a folder, for `recommend`; a CronJob does it every few minutes.

Two writers wait for each other by a lock on the file, and a sheet is added in one go.  A disk that is full takes
nothing: the file is cut back to what it was.  What becomes of a writer that is killed is told in `sample_folder`.
"""

import fcntl
import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec

from rebalancer.cluster.resources import parse_milli_quantity, parse_quantity
from rebalancer.errors import ClusterError, UsageError
from rebalancer.kube.answers import NotFound
from rebalancer.kube.lists import Items, read_list
from rebalancer.kube.wire.objects import Metadata
from rebalancer.kube.wire.pages import path_of_list
from rebalancer.run.cluster_lists import no_list
from rebalancer.run.live import LiveCluster, open_cluster
from rebalancer.run.options import ClientOptions
from rebalancer.run.sample_folder import NAME, packed_sheet

_KIBI = 1024


class _ContainerUsage(msgspec.Struct):
    name: str = ""
    usage: dict[str, str] = {}


class _UsageOfPod(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    containers: list[_ContainerUsage] | None = None


def record(client: ClientOptions, folder: str, keep: timedelta) -> tuple[Path, int]:
    """Append what all containers use now, and remove files of days that ended longer ago than is kept.

    Returns the file, and the number of containers; raises UsageError if the folder cannot be written.
    """
    live = open_cluster(client)
    lines = sorted(line for of_pod in _usage(live) for line in of_pod)
    if not lines:
        raise ClusterError("metrics-server knows no pods yet: nothing is recorded")
    now = datetime.now(UTC)
    path = Path(folder, f"recorded-{now:%Y%m%d}.txt.gz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        append(path, packed_sheet(now, lines))
        for each in path.parent.iterdir():
            match = NAME.fullmatch(each.name)
            if match and match[1] < f"{now - keep:%Y%m%d}":
                each.unlink(missing_ok=True)  # another writer may be faster
    except OSError as error:
        raise UsageError(f"--out {folder} cannot be written: {error.strerror}") from error
    return path, len(lines)


def _usage(live: LiveCluster) -> list[list[str]]:
    try:
        new = partial(Items, "PodMetrics", _UsageOfPod, _lines)
        return read_list(live.client, path_of_list("PodMetrics"), new).items
    except NotFound:
        raise ClusterError("there is no metrics-server: install it, or recommend from a Prometheus") from None
    except ValueError as error:
        raise no_list(live, "PodMetrics", error) from error


def _lines(pod: _UsageOfPod) -> list[str]:
    """Return a line for each container; one without both amounts has none."""
    found = []
    for each in pod.containers or ():
        if "cpu" in each.usage and "memory" in each.usage:
            cpu, memory = parse_milli_quantity(each.usage["cpu"]), -(-parse_quantity(each.usage["memory"]) // _KIBI)
            if cpu >= 0 and memory >= 0:
                found.append(f"{pod.metadata.namespace} {pod.metadata.name} {each.name} {cpu}m {memory}Ki")
    return found


def append(path: Path, sheet: bytes) -> None:
    """Add a sheet to a file; whole, or not at all."""
    with path.open("ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = os.fstat(file.fileno()).st_size
        try:
            written = 0
            while written < len(sheet):
                written += file.write(sheet[written:])
            os.fsync(file.fileno())
        except BaseException:
            os.ftruncate(file.fileno(), before)
            raise
