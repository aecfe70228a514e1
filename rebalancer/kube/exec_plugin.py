"""Runs the credentials plugin of a kubeconfig (`exec`) for a limited time, and reads its answer.

Source: the Kubernetes API `client.authentication.k8s.io`.  The `kubernetes` package waits for a plugin without limit.
"""

import base64
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from shutil import which
from types import FrameType

import msgspec

from rebalancer.errors import NoCredentials
from rebalancer.kube.answers import cut
from rebalancer.kube.config import ChosenContext, Document, extensions
from rebalancer.kube.wire.objects import aware
from rebalancer.untrusted.documents import decode_json

_LOG = logging.getLogger(__name__)
NAMED_AFTER_SECONDS = 5.0  # after so many seconds a warning names the plugin: it may wait for somebody to log in
_OWN_SETTINGS = "client.authentication.k8s.io/exec"
#: What a plugin may be told about the cluster, as a kubeconfig spells it.
_CLUSTER = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Credentials(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None

    def replacing(self, user: Document) -> Document:
        """Return a kubeconfig's user with these credentials instead of the plugin."""
        replaced, given = {"exec"}, dict[str, object]()
        if self.token:
            replaced |= {"token", "tokenFile"}
            given["token"] = self.token
        if self.client_certificate_data and self.client_key_data:
            replaced |= {"client-certificate", "client-key"}
            given["client-certificate-data"] = base64.b64encode(self.client_certificate_data.encode()).decode()
            given["client-key-data"] = base64.b64encode(self.client_key_data.encode()).decode()
        return {key: value for key, value in user.items() if key not in replaced} | given


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Credentials = msgspec.field(default_factory=_Credentials)


def answered(chosen: ChosenContext, seconds: float) -> tuple[ChosenContext, datetime | None]:
    """Return the context with credentials instead of its plugin, if there is one, and when they expire."""
    if not chosen.user.get("exec"):
        return chosen, None
    plugin = _Plugin(chosen)
    found = plugin.answer(plugin.run(seconds))
    return replace(chosen, user=found.replacing(chosen.user)), aware(found.expiration_timestamp)


class _Variable(msgspec.Struct):
    name: str
    value: str


class _Settings(msgspec.Struct, rename="camel"):
    """What a kubeconfig says about a plugin."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    interactive_mode: str | None = None
    provide_cluster_info: bool = False
    install_hint: str | None = None


class _Plugin:
    """A plugin that is installed."""

    def __init__(self, chosen: ChosenContext) -> None:
        try:
            given = msgspec.convert(chosen.user["exec"], _Settings)
        except msgspec.ValidationError:
            raise NoCredentials(
                f"{chosen.files}: the exec plugin of context {chosen.context!r} is malformed: it takes command and "
                "apiVersion, and may have args, env, interactiveMode, provideClusterInfo and installHint"
            ) from None
        self._chosen = chosen
        self._given = given
        self._environment = {each.name: each.value for each in given.env or ()}
        self._hint = f" {cut(given.install_hint)}" if given.install_hint else ""
        if which(given.command, path=self._environment.get("PATH")) is None:
            raise NoCredentials(
                f"{chosen.files}: the user of context {chosen.context!r} needs the exec plugin {given.command}, which "
                f"is not installed or not on PATH.{self._hint}"
            )

    def run(self, seconds: float) -> bytes:
        """Return what the plugin prints."""
        has_terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
        interactive = self._given.interactive_mode != "Never" and has_terminal
        if self._given.interactive_mode == "Always" and not interactive:
            raise self._none("it wants to ask somebody (interactiveMode: Always), and there is no terminal")
        # A signal that ends the program during the start would leave the plugin behind.
        with held_signals() as release, self._start(interactive=interactive) as process:
            try:
                release()
                printed, complaint = self._wait(process, seconds)
            finally:
                if process.poll() is None:  # its child processes end too, unless it shares our process group
                    process.kill() if interactive else os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            words = (complaint or b"").decode(errors="replace").strip()
            raise self._none(cut(words) or f"it ended with exit code {process.returncode}")
        return printed

    def _start(self, *, interactive: bool) -> subprocess.Popen[bytes]:
        spec: Document = {"interactive": interactive}
        spec |= {"cluster": _cluster(self._chosen)} if self._given.provide_cluster_info else {}
        asked = json.dumps({"apiVersion": self._given.api_version, "kind": "ExecCredential", "spec": spec})
        try:
            return subprocess.Popen(  # noqa: S603  the kubeconfig's own command, as kubectl runs it
                [self._given.command, *(self._given.args or ())],
                env={**os.environ, **self._environment, "KUBERNETES_EXEC_INFO": asked},
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                # The user must see it when the plugin asks for a login.
                stderr=None if interactive else subprocess.PIPE,
                # A process group of its own, so that the plugin's child processes end with it.  An interactive plugin
                # stays in our group, since only the terminal's group may read from the terminal.
                process_group=None if interactive else 0,
            )
        except (OSError, ValueError) as error:  # of a variable whose name has an equals sign, or of a null character
            raise self._none(f"it cannot be started: {getattr(error, 'strerror', error)}") from error

    def _wait(self, process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes | None]:
        named = min(NAMED_AFTER_SECONDS, seconds)
        try:
            with suppress(subprocess.TimeoutExpired) if named < seconds else nullcontext():
                return process.communicate(timeout=named)
            _LOG.warning(
                "the exec plugin %s of context %r has not answered for %g s; it is given up after %g s "
                "(--exec-timeout)",
                *(self._given.command, self._chosen.context, named, seconds),
            )
            return process.communicate(timeout=seconds - named)
        except subprocess.TimeoutExpired:
            raise self._none(
                f"it did not answer within {seconds:g} s and was ended. See what it waits for by calling it yourself, "
                "or give it longer with --exec-timeout"
            ) from None

    def answer(self, printed: bytes) -> _Credentials:
        """Return the credentials that the plugin printed; no message repeats it, since it may be a token."""
        try:
            found = decode_json(printed, _Answer)
        except ValueError:
            raise self._none("what it printed is not an ExecCredential") from None
        if (found.api_version, found.kind) != (self._given.api_version, "ExecCredential"):
            raise self._none(f"what it printed is not an ExecCredential of {self._given.api_version}")
        status = found.status
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._none("it gave a client certificate without its key, or a key without its certificate")
        if not (status.token or status.client_certificate_data):
            raise self._none("its answer has neither a token nor a client certificate")
        return status

    def _none(self, why: str) -> NoCredentials:
        place = f"{self._chosen.files}: the exec plugin {self._given.command} of context {self._chosen.context!r}"
        return NoCredentials(f"{place} gave no credentials: {why.rstrip('.')}.{self._hint}")


def _cluster(chosen: ChosenContext) -> Document:
    cluster = {key: chosen.cluster[key] for key in _CLUSTER if chosen.cluster.get(key)}
    authority = chosen.cluster.get("certificate-authority")
    if authority and "certificate-authority-data" not in cluster:
        try:
            cluster["certificate-authority-data"] = base64.b64encode(Path(str(authority)).read_bytes()).decode()
        except OSError as error:
            raise NoCredentials(f"{chosen.files}: {authority} cannot be read: {error.strerror}") from error
    for body in extensions(chosen.cluster, _OWN_SETTINGS):
        cluster["config"] = body
    return cluster


@contextmanager
def held_signals() -> Iterator[Callable[[], None]]:
    """Let no signal raise while this is entered; what came takes effect when it is left, or what is yielded is called.

    Only the main thread hears signals, so in any other there is nothing to hold.
    """
    before: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {}
    came: list[int] = []

    def release() -> None:
        while before:
            number, handler = before.popitem()
            signal.signal(number, handler)
        while came:
            signal.raise_signal(came.pop(0))

    try:
        for number in _SIGNALS if threading.current_thread() is threading.main_thread() else ():
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler
                signal.signal(number, lambda number, _frame: came.append(number))
        yield release
    finally:
        release()
