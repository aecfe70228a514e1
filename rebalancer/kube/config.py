"""The connection to the API server: its address, and its credentials, which can be loaded again."""

import math
import os
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rebalancer.errors import NoCredentials
from rebalancer.kube import kubeconfig as files
from rebalancer.kube.halt import Deadline
from rebalancer.kube.overrides import NO_OVERRIDES, Overrides
from rebalancer.untrusted.address import without_userinfo

if TYPE_CHECKING:
    from rebalancer.kube.credentials import Access

#: Where a pod finds its service account.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_NOWHERE = (
    "no cluster to work on: there is no kubeconfig and this is not a pod. "
    "Give --kubeconfig FILE, set KUBECONFIG, or let `rebalancer run --snapshot FILE` work on a file."
)


class Connection:
    """Where the API server is, and the credentials.  Safe to share between threads.

    Args:
        load: reads the credentials, within so many seconds; each call reads them again.
        context: the kubeconfig's context; None inside a cluster.
        in_cluster: whether the credentials are a pod's service account.

    Raises:
        NoCredentials: there are none.
    """

    def __init__(self, load: Callable[[float], "Access"], *, context: str | None, in_cluster: bool) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._access = load(math.inf)
        self.context = context
        self.in_cluster = in_cluster

    @property
    def server(self) -> str:
        """The API server's address, without a slash at its end, and without userinfo: it is shown in many places."""
        return without_userinfo(str(self._access.configuration.host)).rstrip("/")

    def access(self, seconds: float = math.inf) -> "Access":
        """Return the pool and the present credentials; load new ones if these are known to have expired.

        Args:
            seconds: how long loading may take.

        Raises:
            NoCredentials: there are none any more.
        """
        access = self._access
        return self.reload(access, seconds) if access.has_expired() else access

    def reload(self, stale: "Access", seconds: float = math.inf) -> "Access":
        """Replace credentials that the server did not accept: only once, even if many threads ask for it.

        Reads kubeconfig and token files again, and runs the exec plugin again.  A plan for one cluster must not be
        carried out on another, and credentials must not go to another server.  So the address, the certificate
        authority, the other TLS settings and the proxy must be the same as before.

        Args:
            stale: the credentials to replace.
            seconds: how long this may take: a plugin that hangs does not outlast a deadline.

        Raises:
            NoCredentials: there are none any more or not in time, or the files now lead to another server.
        """
        until = Deadline.after(seconds)
        if not self._lock.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            raise NoCredentials("the credentials were not loaded in time")
        try:
            if self._access is stale:
                self._access = self._same(stale, self._load(until.left()))
            return self._access
        finally:
            self._lock.release()

    def _same(self, stale: "Access", fresh: "Access") -> "Access":
        if different := stale.difference(fresh):
            raise NoCredentials(
                f"{self.server} does not accept the credentials any more, and the new ones are for a cluster with "
                f"another {different}: start a new run for that one"
            )
        return fresh

    def close(self) -> None:
        """Close all connections that are open and idle."""
        self._access.pool.clear()


def connect(
    kubeconfig: str | None,
    context: str | None,
    *,
    overrides: Overrides = NO_OVERRIDES,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Find the API server in the same order as kubectl; no request is sent.

    The order: `--kubeconfig`, the files of KUBECONFIG, `~/.kube/config`, the pod's service account.

    Args:
        kubeconfig: the explicit file, if any.
        context: the explicit context, if any; rules out the service account.
        overrides: settings of the command line, which override the kubeconfig and the service account.
        environ: the environment.
        service_account: the folder with a pod's token and certificate.

    Raises:
        NoCredentials: none is configured, or a file or a context is wrong.
    """
    from rebalancer.kube import credentials  # noqa: PLC0415  takes half a second, which offline runs save

    found = files.find(kubeconfig, environ)
    if found is not None:
        name = found.only(context).context
        load = partial(credentials.from_files, kubeconfig, name, environ, overrides)
        return Connection(load, context=name, in_cluster=False)
    if context or not environ.get("KUBERNETES_SERVICE_HOST"):
        missing = files.missing(environ)
        if missing:
            raise NoCredentials(f"no cluster to work on: KUBECONFIG names {missing}, which does not exist")
        raise NoCredentials(_NOWHERE + (f" The context {context!r} needs a kubeconfig." if context else ""))
    from_pod = partial(credentials.from_pod, environ, service_account, overrides)
    return Connection(from_pod, context=None, in_cluster=True)
