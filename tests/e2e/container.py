"""A pod's one container, started as a kubelet would start it."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.chart.helm import ROOT
from tests.e2e.access import HOME
from tests.e2e.api import Api, Object
from tests.e2e.harness import ControlPlane
from tests.e2e.proxy import Hold, Proxy
from tests.e2e.waiting import wait_for
from tests.functional.probing import Answer, ask

#: The user that the image names.
IMAGE_USER = 1000
#: Where a kubelet puts a ServiceAccount's token.
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_TIMEOUT = 600
_COPY = """
mkdir {scratch}; mount -t tmpfs tmpfs {scratch}; chmod 755 {scratch}; mkdir {scratch}/upper {scratch}/work {root}
mount -t overlay overlay -o lowerdir=/,upperdir={scratch}/upper,workdir={scratch}/work {root}
mount --rbind /proc {root}/proc; mount --rbind /dev {root}/dev
"""


@dataclass(frozen=True)
class Ended:
    exit_code: int
    log: str


@dataclass
class Container:
    """The one container of a pod: its command, args, env, mounts, user, capabilities and token.

    The program is this environment's, under the names that the image has it by. It sees a copy of this machine's files
    and what the pod mounts; that takes root, `unshare`, `setpriv` and overlayfs.
    """

    controlplane: ControlPlane
    pod: Object
    server: str = ""  # where it finds the API server; that of the control plane unless it is given
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="rebalancer-pod-")))

    @property
    def spec(self) -> Object:
        (only,) = self.pod["spec"]["containers"]
        found: Object = only
        return found

    def run(self) -> Ended:
        with self.started() as process:
            return ended(process)

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[str]]:
        """Start it; killed with the block if it still runs then."""
        script = self._script()
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-euc", script],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            with process:  # which closes its pipe
                try:
                    yield process
                finally:
                    process.kill()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def probe(self, name: str) -> bool:
        asked = self.spec[name]["httpGet"]
        return self._asked(asked["port"], asked["path"]).status == HTTPStatus.OK

    def metrics(self) -> str:
        """What is served for Prometheus; empty as long as nothing is."""
        return self._asked(self.spec["livenessProbe"]["httpGet"]["port"], "/metrics").body

    def _asked(self, port: int, path: str) -> Answer:
        try:
            return ask(port, path)
        except OSError:
            return Answer(0, "")

    def _environment(self) -> Mapping[str, str]:
        server = urlsplit(self.server or self.controlplane.server)
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/nonexistent",
            "PYTHONPATH": str(ROOT),
            "KUBERNETES_SERVICE_HOST": str(server.hostname),
            "KUBERNETES_SERVICE_PORT": str(server.port),
            **{each["name"]: each["value"] for each in self.spec.get("env", ())},
        }

    def _script(self) -> str:
        """Mount what the pod mounts into a copy of this machine's files, and become the program there."""
        root = self.folder / "scratch" / "root"
        lines = [_COPY.format(scratch=self.folder / "scratch", root=root)]
        lines += [f"chmod go+rx {root}{path}" for path in _way_to_the_program()]  # of the copy: /root may be closed
        for name in ("rebalancer", "descheduler"):
            program = f"#!{sys.executable}\nfrom rebalancer.__main__ import main\nmain()\n"
            (self.folder / name).write_text(program)
            lines.append(f"install -m 755 {self.folder / name} {root}/usr/bin/{name}")
        for path, content in self._mounts().items():
            inside = f"{root}{path.replace('/var/run/', '/run/')}"  # the one is a link to the other
            lines.append(f"mkdir -p {inside}; mount --bind {content} {inside}; mount -o remount,bind,ro {inside}")
        if self._allowed.get("readOnlyRootFilesystem"):
            lines.append(f"mount -o remount,ro {root}")
        command = [*self.spec.get("command", ["rebalancer"]), *self.spec.get("args", ())]
        if "ports" in self.spec:
            command.append("--bind-address=127.0.0.1")  # all of a pod's addresses would be all of this machine's
        return "\n".join([*lines, f"exec chroot {root} setpriv {shlex.join([*self._privileges(), *command])}"])

    @property
    def _allowed(self) -> Object:
        """The security context, of the pod and over it of the container."""
        return {**self.pod["spec"].get("securityContext", {}), **self.spec.get("securityContext", {})}

    def _privileges(self) -> Sequence[str]:
        user = self._allowed.get("runAsUser", IMAGE_USER)
        options = [f"--reuid={user}", f"--regid={self._allowed.get('runAsGroup', user)}", "--clear-groups"]
        if "ALL" in self._allowed.get("capabilities", {}).get("drop", ()):
            options += ["--inh-caps=-all", "--bounding-set=-all"]
        if self._allowed.get("allowPrivilegeEscalation") is False:
            options.append("--no-new-privs")
        return options

    def _mounts(self) -> Mapping[str, Path]:
        volumes = {each["name"]: each for each in self.pod["spec"].get("volumes", ())}
        found = {_SERVICE_ACCOUNT: self._token()}
        for mount in self.spec.get("volumeMounts", ()):
            volume = volumes[mount["name"]]
            sources = volume.get("projected", {}).get("sources", [volume])
            maps = [each["configMap"] for each in sources if "configMap" in each]
            if maps:
                files = {name: text for each in maps for name, text in self._config_map(each).items()}
                found[mount["mountPath"]] = self._files(mount["name"], files)
        return found

    def _config_map(self, source: Object) -> Mapping[str, str]:
        data = self._api.read("ConfigMap", source["name"], self._namespace)["data"]
        return {each["path"]: data[each["key"]] for each in source["items"]} if "items" in source else data

    def _token(self) -> Path:
        token = self._api.token(self.pod["spec"]["serviceAccountName"], self._namespace)
        certificate = (self.controlplane.directory / "ca.crt").read_text()
        return self._files("token", {"token": token, "ca.crt": certificate, "namespace": self._namespace})

    def _files(self, name: str, data: Mapping[str, str]) -> Path:
        folder = self.folder / "mounted" / name
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        for key, text in data.items():
            (folder / key).write_text(text)
            (folder / key).chmod(0o644)
        return folder

    @property
    def _api(self) -> Api:
        return self.controlplane.api

    @property
    def _namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])


def ended(process: "subprocess.Popen[str]") -> Ended:
    log, _ = process.communicate(timeout=_TIMEOUT)
    return Ended(process.returncode, log)


@dataclass(frozen=True)
class Privileges:
    """What a process may do, as its kernel tells it."""

    user: str
    capabilities: str
    new_privileges: bool
    root_read_only: bool


def privileges_of(process: "subprocess.Popen[str]") -> Privileges:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    mounts = [line.split() for line in Path(f"/proc/{process.pid}/mountinfo").read_text().splitlines()]
    (options,) = [fields[5] for fields in mounts if fields[4] == "/"]
    return Privileges(
        user=status["Uid"].split()[1],
        capabilities=status["CapEff"].strip("0") + status["CapBnd"].strip("0"),
        new_privileges=status["NoNewPrivs"] == "0",
        root_read_only="ro" in options.split(","),
    )


def _can_play_kubelet() -> bool:
    """Whether files can be put where a pod mounts them."""
    if os.getuid() or not shutil.which("unshare") or not shutil.which("setpriv"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        script = _COPY.format(scratch=f"{folder}/scratch", root=f"{folder}/scratch/root")
        return not subprocess.call(["unshare", "--mount", "sh", "-euc", script], stderr=subprocess.DEVNULL)


def _way_to_the_program() -> list[Path]:
    """The folders through which any user has to come to Python and to the program, the uppermost first."""
    ends = [Path(sys.prefix), Path(sys.base_prefix), ROOT]
    return sorted({folder for end in ends for folder in (end, *end.parents) if folder != folder.parent})


@dataclass
class AtWork:
    """A container whose first eviction is on its way."""

    container: Container
    process: "subprocess.Popen[str]"
    hold: Hold

    def go_on(self) -> None:
        self.hold.release()

    def finish(self) -> Ended:
        self.go_on()
        return ended(self.process)

    def stop(self) -> Ended:
        """End a loop after a cycle, as a kubelet does."""
        wait_for(lambda: "rebalancer_cycles_total{" in self.container.metrics(), "the first cycle's end")
        self.process.terminate()
        return ended(self.process)


@contextmanager
def at_work(controlplane: ControlPlane, pod: Object) -> Iterator[AtWork]:
    """Start a pod's container; the block begins when it asks for its first eviction."""
    hold = Hold("POST", "/eviction")
    with Proxy(controlplane, hold) as proxy:
        container = Container(controlplane, pod, server=proxy.url)
        with container.started() as process:
            hold.wait()
            yield AtWork(container, process, hold)


def pod_of(api: Api, selector: str) -> Object:
    return wait_for(lambda: api.list("Pod", HOME, labelSelector=selector), f"a pod of {selector}")[0]


needs_kubelet = pytest.mark.skipif(
    not _can_play_kubelet(), reason="playing the kubelet takes root, unshare, setpriv and overlayfs"
)
