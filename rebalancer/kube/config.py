"""The API server, found by kubeconfig files, read and merged as kubectl does it; the proxy, and the connection to it.

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
from typing import TYPE_CHECKING, Any

import yaml

from rebalancer.errors import NoCredentials
from rebalancer.kube.tries import Deadline
from rebalancer.untrusted.address import shown
from rebalancer.untrusted.documents import LARGEST_SETTINGS, MISTAGGED, Unreadable, check_yaml, read_input

if TYPE_CHECKING:
    from rebalancer.kube.credentials import Access

#: Of proxies, in the order in which the `kubernetes` package reads them.
_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def named(proxy: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a proxy's address without a password, and the variable that sets it, or the kubeconfig."""
    setter = next((name for name in _VARIABLES if environ.get(name) == proxy), "proxy-url of the kubeconfig")
    return f"the proxy {shown(proxy)} ({setter})"


#: What is wrong with a proxy, after its name, and the cure: it answers 407, or no connection can be set up.
_ADDRESS = "its address must be like http://USER:PASSWORD@HOST:PORT, with @ and / in a password as %40 and %2F"
UNAUTHORISED = f"asks for valid credentials (407 Proxy Authentication Required): {_ADDRESS}"
UNUSABLE = f"cannot be used: {_ADDRESS}; for a SOCKS proxy install the Python package PySocks"

Document = dict[str, object]
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings of the command line, as kubectl's flags; what is not set is taken from the kubeconfig."""

    user: str = ""  # the user to act as; empty for none
    groups: tuple[str, ...] = ()
    insecure: bool = False  # whether the API server's certificate is not checked
    exec_seconds: float = 60.0  # after which a credentials plugin that does not answer is killed


@dataclass(frozen=True, slots=True)
class ChosenContext:
    """A context, with its cluster and its user; without a user, requests are anonymous."""

    files: str  # where it comes from, in words
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


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Kubeconfig files, merged."""

    files: str
    current: str  # the current-context; empty when there is none
    clusters: Mapping[str, Document]
    contexts: Mapping[str, Document]
    users: Mapping[str, Document]

    def only(self, context: str | None) -> ChosenContext:
        """Return what belongs to one context, the current one when None."""
        name, known = context or self.current, ", ".join(sorted(self.contexts)) or "none"
        if not name:
            raise NoCredentials(f"{self.files} has no current-context: choose one with --context ({known})")
        if name not in self.contexts:
            raise NoCredentials(f"{self.files} has no context {name!r}: there is {known}")
        cluster, user = (str(self.contexts[name].get(kind) or "") for kind in ("cluster", "user"))
        for kind, wanted, there in (("cluster", cluster, self.clusters), ("user", user, self.users)):
            if wanted not in there and (wanted or kind == "cluster"):
                raise NoCredentials(f"{self.files}: context {name!r} names {kind} {wanted!r}, which is not there")
        return ChosenContext(self.files, name, self.clusters[cluster], self.users[user] if user else {})


def find(explicit: str | None, environ: Mapping[str, str]) -> Kubeconfig | None:
    """Return the kubeconfig that kubectl would use: `--kubeconfig` alone, KUBECONFIG, `~/.kube/config`; else None.

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
    current = next(filter(None, (each.get("current-context") for each in documents.values())), "")
    merged = [_merged(documents, section) for section in ("clusters", "contexts", "users")]
    files = "kubeconfig " + os.pathsep.join(map(str, documents))
    return Kubeconfig(files, str(current), *merged) if documents else None


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
    except (ValueError, *MISTAGGED) as error:
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
    kind = section.removesuffix("s")
    for path, document in documents.items():
        entries: Any = document.get(section) or []
        if not isinstance(entries, list) or not all(
            isinstance(each, dict) and "name" in each and isinstance(each.get(kind) or {}, dict) for each in entries
        ):
            raise NoCredentials(f"kubeconfig {path}: {section} is not a list of `name` and `{kind}` pairs")
        for each in entries:
            merged.setdefault(str(each["name"]), _absolute(each.get(kind) or {}, path.absolute().parent))
    return merged


def extensions(cluster: Document, name: str) -> list[object]:
    """Return the bodies of the extensions of this name in a cluster's entry."""
    entries = cluster.get("extensions")
    found = (each for each in (entries if isinstance(entries, list) else ()) if isinstance(each, dict))
    return [each.get("extension") for each in found if each.get("name") == name]


def _absolute(body: Document, folder: Path) -> Document:
    paths = {key: str(folder / str(body[key])) for key in _PATHS if body.get(key)}
    if "tokenFile" in paths:  # takes precedence over `token`; in the `kubernetes` package it does not
        body = {key: value for key, value in body.items() if key != "token"}
    plugin = body.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command", "")):
        return {**body, **paths, "exec": {**plugin, "command": str(folder / str(plugin["command"]))}}
    return {**body, **paths}


SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # where a pod finds its service account


class Connection:
    """Where the API server is, and the credentials, which each `load` reads again.  Safe to share between threads.

    The context is None inside a cluster, where the credentials are a pod's service account.
    """

    def __init__(self, load: Callable[[float], "Access"], *, context: str | None) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._access = load(math.inf)
        self.context = context
        self.in_cluster = context is None

    @property
    def server(self) -> str:
        """The API server's address, without a slash at its end, and without userinfo (`credentials.addressed`)."""
        return str(self._access.configuration.host)

    @property
    def present(self) -> "Access":
        """The pool and the credentials as they are, perhaps expired."""
        return self._access

    def access(self, seconds: float = math.inf) -> "Access":
        """Return the pool and the present credentials; if these are known to have expired, load new ones in time."""
        access = self._access
        return self.reload(access, seconds) if access.has_expired() else access

    def reload(self, stale: "Access", seconds: float = math.inf) -> "Access":
        """Replace credentials that the server did not accept: only once, even if many threads ask for it, and in time.

        A plan for one cluster must not be carried out on another, and credentials must not go to another server:
        address, certificate authority, other TLS settings and proxy must be as before.
        """
        until = Deadline.after(seconds)
        if not self._lock.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            raise NoCredentials("the credentials were not loaded in time")
        try:
            if self._access is stale:
                fresh = self._load(until.left())
                if different := [name for name, value in stale.endpoint.items() if fresh.endpoint[name] != value]:
                    raise NoCredentials(
                        f"{self.server} does not accept the credentials any more, and the new ones are for a cluster "
                        f"with another {', '.join(different)}: start a new run for that one"
                    )
                self._access = fresh
            return self._access
        finally:
            self._lock.release()


def connect(
    kubeconfig: str | None,
    context: str | None,
    *,
    overrides: Overrides = Overrides(),
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Find the API server in the same order as kubectl, and then by the pod's service account; no request is sent."""
    from rebalancer.kube import credentials  # noqa: PLC0415  takes half a second, which offline runs save

    if found := find(kubeconfig, environ):
        name = found.only(context).context
        load = partial(credentials.from_files, kubeconfig, name, environ, overrides)
        return Connection(load, context=name)
    if context or not environ.get("KUBERNETES_SERVICE_HOST"):
        absent = [str(path) for path in _usual_places(environ) if environ.get("KUBECONFIG") and not path.exists()]
        if absent:
            raise NoCredentials(f"no cluster to work on: KUBECONFIG names {' and '.join(absent)}, which does not exist")
        raise NoCredentials(
            "no cluster to work on: there is no kubeconfig and this is not a pod. Give --kubeconfig FILE, "
            "set KUBECONFIG, or let `rebalancer run --snapshot FILE` work on a file."
            + (f" The context {context!r} needs a kubeconfig." if context else "")
        )
    from_pod = partial(credentials.from_pod, environ, service_account, overrides)
    return Connection(from_pod, context=None)
