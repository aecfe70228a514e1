"""The chart, installed on the control plane with the real helm, and its pods started as a kubelet would."""

import json
import os
import shlex
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.chart.helm import CHART, ROOT, helm
from tests.e2e.api import Api, Object
from tests.e2e.harness import ControlPlane
from tests.e2e.waiting import wait_for

#: Where a kubelet puts a ServiceAccount's token.
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_TIMEOUT = 600
_COPY = """
mkdir {scratch}; mount -t tmpfs tmpfs {scratch}; mkdir {scratch}/upper {scratch}/work {root}
mount -t overlay overlay -o lowerdir=/,upperdir={scratch}/upper,workdir={scratch}/work {root}
mount --rbind /proc {root}/proc; mount --rbind /dev {root}/dev
"""


@dataclass
class Release:
    """An installation of the chart; also a context manager, which installs and uninstalls it."""

    controlplane: ControlPlane
    values: str
    name: str = "rebalancer"
    namespace: str = "kube-system"
    notes: str = ""

    def __enter__(self) -> Self:
        self.notes = self._helm("install", "--values", "-")
        wait_for(self._may_read, "the permissions in force")
        return self

    def __exit__(self, *_: object) -> None:
        self._helm("uninstall")

    def upgrade(self, values: str) -> None:
        """Upgrade to other values."""
        self.values = values
        self._helm("upgrade", "--values", "-")

    def _may_read(self) -> bool:
        attributes = {"verb": "list", "group": "", "resource": "nodes"}
        account = f"system:serviceaccount:{self.namespace}:{self.name}"
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        answer = self.controlplane.api.request(
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {**review, "spec": {"user": account, "resourceAttributes": attributes}},
        )
        return bool(answer["status"]["allowed"])

    def _helm(self, verb: str, *options: str) -> str:
        chart = () if verb == "uninstall" else (str(CHART),)
        done = helm(
            verb, self.name, *chart, *options, "--namespace", self.namespace,
            "--kubeconfig", self.controlplane.kubeconfig, text=self.values,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@dataclass(frozen=True)
class Ended:
    """What a container came to."""

    exit_code: int
    log: str


@dataclass
class Container:
    """The one container of a pod, started as a kubelet would: its command, args, env, mounts and token.

    The program is this environment's, under the names that the image has it by. It sees the files of this machine,
    read-only, and beside them what the pod mounts; that takes root, `unshare` and overlayfs.
    """

    controlplane: ControlPlane
    pod: Object
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="rebalancer-pod-")))

    @property
    def spec(self) -> Object:
        """The container's specification."""
        (only,) = self.pod["spec"]["containers"]
        found: Object = only
        return found

    def run(self) -> Ended:
        """Run it to its end."""
        with self.started() as process:
            log, _ = process.communicate(timeout=_TIMEOUT)
            return Ended(process.returncode, log)

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
            yield process
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def probe(self, name: str) -> bool:
        """Whether a probe of the pod would succeed now."""
        asked = self.spec[name]["httpGet"]
        return self._get(asked["port"], asked["path"])[0] == HTTPStatus.OK

    def metrics(self) -> str:
        """What is served for Prometheus."""
        return self._get(self.spec["ports"][0]["containerPort"], "/metrics")[1]

    def _get(self, port: int, path: str) -> tuple[int, str]:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # as a kubelet does
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", timeout=5, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""
        except OSError:
            return 0, ""

    def _environment(self) -> Mapping[str, str]:
        server = urlsplit(self.controlplane.server)
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/nonexistent",
            "PYTHONPATH": str(ROOT),
            "KUBERNETES_SERVICE_HOST": str(server.hostname),
            "KUBERNETES_SERVICE_PORT": str(server.port),
            **{each["name"]: each["value"] for each in self.spec.get("env", ())},
        }

    def _script(self) -> str:
        """Mount what the pod mounts into a read-only copy of this machine's files, and become the program there."""
        root = self.folder / "scratch" / "root"
        lines = [_COPY.format(scratch=self.folder / "scratch", root=root)]
        for name in ("rebalancer", "descheduler"):
            program = f"#!{sys.executable}\nfrom rebalancer.__main__ import main\nmain()\n"
            (self.folder / name).write_text(program)
            lines.append(f"install -m 755 {self.folder / name} {root}/usr/bin/{name}")
        for path, content in self._mounts().items():
            inside = f"{root}{path.replace('/var/run/', '/run/')}"  # the one is a link to the other
            lines.append(f"mkdir -p {inside} && mount --bind {content} {inside}")
        command = shlex.join([*self.spec.get("command", ["rebalancer"]), *self.spec.get("args", ())])
        return "\n".join([*lines, f"mount -o remount,ro {root}", f"exec chroot {root} {command}"])

    def _mounts(self) -> Mapping[str, Path]:
        volumes = {each["name"]: each for each in self.pod["spec"]["volumes"]}
        found = {_SERVICE_ACCOUNT: self._token()}
        for mount in self.spec["volumeMounts"]:
            volume = volumes[mount["name"]]
            if "configMap" in volume:
                found[mount["mountPath"]] = self._config_map(volume["configMap"]["name"])
        return found

    def _config_map(self, name: str) -> Path:
        data = self._api.read("ConfigMap", name, self._namespace)["data"]
        return self._files(name, data)

    def _token(self) -> Path:
        token = self._api.token(self.pod["spec"]["serviceAccountName"], self._namespace)
        certificate = (self.controlplane.directory / "ca.crt").read_text()
        return self._files("token", {"token": token, "ca.crt": certificate, "namespace": self._namespace})

    def _files(self, name: str, data: Mapping[str, str]) -> Path:
        folder = self.folder / "mounted" / name
        folder.mkdir(parents=True)
        for key, text in data.items():
            (folder / key).write_text(text)
        return folder

    @property
    def _api(self) -> Api:
        return self.controlplane.api

    @property
    def _namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])


def can_play_kubelet() -> bool:
    """Whether files can be put where a pod mounts them."""
    if os.getuid() or not shutil.which("unshare"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        script = _COPY.format(scratch=f"{folder}/scratch", root=f"{folder}/scratch/root")
        return not subprocess.call(["unshare", "--mount", "sh", "-euc", script], stderr=subprocess.DEVNULL)


def strictly(api: Api, manifest: Object, path: str) -> Object:
    """Let the server check an object strictly, as if it were created."""
    return api.request(
        "POST", path, json.loads(json.dumps(manifest)), query={"dryRun": "All", "fieldValidation": "Strict"}
    )
