"""Writes a live cluster to a file that `--snapshot` reads."""

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rebalancer.app.live import PATHS, LiveCluster, no_list, open_cluster
from rebalancer.app.live_usage import METRICS_PATHS
from rebalancer.errors import ClusterError, Forbidden, UsageError
from rebalancer.kube.answers import NotFound
from rebalancer.kube.lists import read_list
from rebalancer.kube.patience import Deadline
from rebalancer.report.document import timestamp
from rebalancer.wire.pages import Page, items_of

#: What no decision needs and what may be confidential: taken out of every container.
_CONTAINER_SECRETS = ("env", "envFrom", "command", "args")
#: What nobody needs is not waited for any longer.
_METRICS_SECONDS = 10.0
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class _RawFolder:
    """Collects objects as they are, less what should not leave the cluster."""

    def __init__(self, kind: str) -> None:
        self.items: list[Any] = []
        self._kind = kind

    def fold(self, page: bytes) -> str:
        decoded = msgspec.json.decode(page, type=Page[dict[str, Any]])
        self.items += [_pruned(each) for each in items_of(decoded, self._kind)]
        return decoded.token


def capture(kubeconfig: str | None, context: str | None, path: str) -> tuple[Mapping[str, int], tuple[str, ...]]:
    """Write nodes, pods and what else policies may need to a file, gzipped if its name ends in `.gz`.

    Usage is among it if there is a metrics-server.  Environment variables, commands and managed fields are left out.

    Returns:
        The number of objects by kind, and a warning for each kind that may not be read.

    Raises:
        ClusterError: the cluster cannot be reached, or nodes or pods may not be read.
        UsageError: the file cannot be written.
    """
    live = open_cluster(kubeconfig, context)
    now = datetime.now(UTC)
    lists: dict[str, list[Any]] = {}
    warnings = []
    for kind, where in PATHS.items():
        try:
            lists[kind] = read_list(live.client, where, partial(_RawFolder, kind)).items
        except Forbidden as error:
            if kind in ("Node", "Pod"):
                raise
            warnings.append(f"left out: {error}")
        except (ValueError, msgspec.MsgspecError) as error:
            raise no_list(live, kind, error) from error
    try:
        lists |= _usage(live)
    except (ClusterError, ValueError, msgspec.MsgspecError) as error:
        warnings.append(f"usage is left out: {error}")
    _write(Path(path), _file(lists, now, live))
    return {kind: len(items) for kind, items in lists.items()}, tuple(warnings)


def _usage(live: LiveCluster) -> dict[str, list[Any]]:
    deadline = Deadline.after(_METRICS_SECONDS)
    try:
        return {
            kind: read_list(live.client, where, partial(_RawFolder, kind), deadline=deadline).items
            for kind, where in METRICS_PATHS.items()
        }
    except NotFound:
        return {}


def _file(lists: Mapping[str, list[Any]], now: datetime, live: LiveCluster) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "List",
            "rebalancer": {"now": timestamp(now), **live.description},
            "items": [{"apiVersion": "v1", "kind": f"{kind}List", "items": items} for kind, items in lists.items()],
        }
    )


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    except OSError as error:
        raise UsageError(f"snapshot {path} cannot be written: {error.strerror}") from error


def _pruned(item: dict[str, Any]) -> dict[str, Any]:
    metadata = item.get("metadata", {})
    metadata.pop("managedFields", None)
    (metadata.get("annotations") or {}).pop(_LAST_APPLIED, None)
    spec = item.get("spec") or {}
    for group in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            for key in _CONTAINER_SECRETS:
                container.pop(key, None)
    return item
