"""The API server: found by kubeconfig files, read and merged as kubectl does it, and the connection to it.

The files are merged here and not by the `kubernetes` package: that takes the current-context of the last file, while
kubectl takes that of the first; it rejects an empty file; and it splits a path at each colon.
"""

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from rebalancer.errors import NoCredentials
from rebalancer.kube.tries import Deadline
from rebalancer.untrusted.address import without_userinfo
from rebalancer.untrusted.documents import LARGEST_SETTINGS, Unreadable, check_yaml, read_input

if TYPE_CHECKING:
    from rebalancer.kube.credentials import Access

Document = dict[str, object]

_SECTIONS = {"clusters": "cluster", "contexts": "context", "users": "user"}
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings of the command line, as kubectl's flags; what is not set is taken from the kubeconfig.

    Attributes:
        user: the user to act as; empty for none.
        insecure: whether the API server's certificate is not checked.
        exec_seconds: after which a credentials plugin that does not answer is killed.
    """

    user: str = ""
    groups: tuple[str, ...] = ()
    insecure: bool = False
    exec_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Kubeconfig files, merged.

    Attributes:
        files: where it comes from, in words.
        current: the current-context; empty when there is none.
    """

    files: str
    current: str
    clusters: Mapping[str, Document]
    contexts: Mapping[str, Document]
    users: Mapping[str, Document]

    def only(self, context: str | None) -> "ChosenContext":
        """Return what belongs to one context, the current one when None."""
        name = context or self.current
        if not name:
            raise NoCredentials(f"{self.files} has no current-context: choose one with --context ({self._known()})")
        if name not in self.contexts:
            raise NoCredentials(f"{self.files} has no context {name!r}: there is {self._known()}")
        chosen = self.contexts[name]
        cluster = self._named("cluster", self.clusters, str(chosen.get("cluster") or ""), name)
        user = str(chosen.get("user") or "")
        return ChosenContext(self.files, name, cluster, self._named("user", self.users, user, name) if user else {})

    def _known(self) -> str:
        return ", ".join(sorted(self.contexts)) or "none"

    def _named(self, kind: str, known: Mapping[str, Document], name: str, context: str) -> Document:
        if name not in known:
            raise NoCredentials(f"{self.files}: context {context!r} names {kind} {name!r}, which is not there")
        return known[name]


@dataclass(frozen=True, slots=True)
class ChosenContext:
    """A context, with its cluster and its user; without a user, requests are anonymous."""

    files: str
    context: str
    cluster: Document
    user: Document

    def document(self) -> Document:
        """Return a kubeconfig of this context alone, without relative paths."""
        return {
            "current-context": self.context,
            "contexts": [{"name": self.context, "context": {"cluster": "cluster", "user": "user"}}],
            "clusters": [{"name": "cluster", "cluster": self.cluster}],
            "users": [{"name": "user", "user": self.user}],
        }


def find(explicit: str | None, environ: Mapping[str, str]) -> Kubeconfig | None:
    """Return the kubeconfig that kubectl would use; None when there is none.

    `--kubeconfig` alone when given, else the files of KUBECONFIG that exist, else `~/.kube/config`.
    Files without content count as absent, so that `KUBECONFIG=/dev/null` does what it is used for.
    """
    if explicit:
        found = read([Path(explicit)])
        if found is None:
            raise NoCredentials(f"kubeconfig {explicit} is empty: give another file with --kubeconfig")
        return found
    return read([path for path in _usual_places(environ) if path.exists()])


def _usual_places(environ: Mapping[str, str]) -> list[Path]:
    listed = environ.get("KUBECONFIG", "")
    if listed:
        return [Path(each).expanduser() for each in listed.split(os.pathsep) if each]
    return [Path(environ.get("HOME") or Path.home()) / ".kube" / "config"]


def read(paths: Sequence[Path]) -> Kubeconfig | None:
    """Read and merge files; where two have an entry of the same name, the first one wins.  None when all are empty."""
    documents = {path: document for path in paths if (document := _load(path))}
    if not documents:
        return None
    currents = [str(document.get("current-context") or "") for document in documents.values()]
    return Kubeconfig(
        files="kubeconfig " + os.pathsep.join(map(str, documents)),
        current=next(filter(None, currents), ""),
        clusters=_merged(documents, "clusters"),
        contexts=_merged(documents, "contexts"),
        users=_merged(documents, "users"),
    )


def _load(path: Path) -> Document:
    try:
        text = read_input(str(path.absolute()), LARGEST_SETTINGS).decode()
        check_yaml(yaml.parse(text, Loader=yaml.CSafeLoader))
        document = yaml.load(text, Loader=yaml.CSafeLoader)
    except FileNotFoundError:
        raise NoCredentials(f"kubeconfig {path} does not exist: give another one with --kubeconfig") from None
    except (OSError, UnicodeDecodeError) as error:
        raise NoCredentials(f"kubeconfig {path} cannot be read: {getattr(error, 'strerror', '') or error}") from error
    except yaml.YAMLError as error:
        # The error's own text quotes the file, and with it perhaps a token.
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        raise NoCredentials(f"kubeconfig {path} is not YAML: look{place}") from None
    except ValueError as error:
        # A number of thousands of digits, for example; Python's own text would repeat the value.
        reason = str(error) if isinstance(error, Unreadable) else "it has a value that cannot be read"
        raise NoCredentials(f"kubeconfig {path} cannot be used: {reason}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise NoCredentials(f"kubeconfig {path} is not a kubeconfig: its top level is not a mapping")
    return document


def _merged(documents: Mapping[Path, Document], section: str) -> dict[str, Document]:
    merged: dict[str, Document] = {}
    for path, document in documents.items():
        for name, body in _entries(path, document, section):
            merged.setdefault(name, _absolute(body, path.absolute().parent))
    return merged


def _entries(path: Path, document: Document, section: str) -> list[tuple[str, Document]]:
    entries = document.get(section) or []
    wrong = NoCredentials(f"kubeconfig {path}: {section} is not a list of `name` and `{_SECTIONS[section]}` pairs")
    if not isinstance(entries, list):
        raise wrong
    found = []
    for entry in entries:
        body = (entry.get(_SECTIONS[section]) or {}) if isinstance(entry, dict) else None
        if not isinstance(body, dict) or "name" not in entry:
            raise wrong
        found.append((str(entry["name"]), body))
    return found


def extensions(cluster: Document, name: str) -> list[object]:
    """Return the bodies of the extensions of this name in a cluster's entry."""
    entries = cluster.get("extensions")
    found = (each for each in (entries if isinstance(entries, list) else ()) if isinstance(each, dict))
    return [each.get("extension") for each in found if each.get("name") == name]


def _absolute(body: Document, folder: Path) -> Document:
    """Return a cluster or user whose paths no longer depend on the file's folder."""
    paths = {key: str(folder / str(body[key])) for key in _PATHS if body.get(key)}
    if "tokenFile" in paths:  # takes precedence over `token`; in the `kubernetes` package it does not
        body = {key: value for key, value in body.items() if key != "token"}
    plugin = body.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command", "")):
        return {**body, **paths, "exec": {**plugin, "command": str(folder / str(plugin["command"]))}}
    return {**body, **paths}


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
        context: None inside a cluster, where the credentials are a pod's service account.
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
        """Return the pool and the present credentials; if these are known to have expired, load new ones in time."""
        access = self._access
        return self.reload(access, seconds) if access.has_expired() else access

    def reload(self, stale: "Access", seconds: float = math.inf) -> "Access":
        """Replace credentials that the server did not accept: only once, even if many threads ask for it.

        Reads kubeconfig and token files again, and runs the exec plugin again.  A plan for one cluster must not be
        carried out on another, and credentials must not go to another server.  So the address, the certificate
        authority, the other TLS settings and the proxy must be the same as before.  A plugin that hangs does not
        outlast `seconds`.
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
    overrides: Overrides = Overrides(),
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Find the API server in the same order as kubectl; no request is sent.

    The order: `--kubeconfig`, the files of KUBECONFIG, `~/.kube/config`, the pod's service account; that is out of the
    question where a context is named.
    """
    from rebalancer.kube import credentials  # noqa: PLC0415  takes half a second, which offline runs save

    found = find(kubeconfig, environ)
    if found is not None:
        name = found.only(context).context
        load = partial(credentials.from_files, kubeconfig, name, environ, overrides)
        return Connection(load, context=name, in_cluster=False)
    if context or not environ.get("KUBERNETES_SERVICE_HOST"):
        absent = [str(path) for path in _usual_places(environ) if environ.get("KUBECONFIG") and not path.exists()]
        if absent:
            raise NoCredentials(f"no cluster to work on: KUBECONFIG names {' and '.join(absent)}, which does not exist")
        raise NoCredentials(_NOWHERE + (f" The context {context!r} needs a kubeconfig." if context else ""))
    from_pod = partial(credentials.from_pod, environ, service_account, overrides)
    return Connection(from_pod, context=None, in_cluster=True)
