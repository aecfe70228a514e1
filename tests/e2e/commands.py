"""The command lines of the control plane's programs, and their keys and certificates, made by openssl."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.commands import run

CERTIFICATE = "req -x509 -config openssl.cnf -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"


@dataclass(frozen=True)
class Keys:
    """Files in ``directory`` and the tokens of the users, by name; all are of group system:masters.

    The users are "admin" (the tests), "program" (what is tested) and "components" (the control plane's own
    programs), so that the audit log tells their requests apart.
    """

    directory: Path
    tokens: Mapping[str, str]

    def path(self, name: str) -> str:
        """A file of the directory: ca.crt, server.key, sa.pub, front-proxy.crt, tokens.csv, ..."""
        return str(self.directory / name)


def make_keys(directory: Path) -> Keys:
    # A configuration of our own: the system's would add extensions that differ from one system to the next.
    (directory / "openssl.cnf").write_text("[req]\ndistinguished_name = name\n[name]\n")
    openssl(directory, "genrsa -out sa.key 2048")
    openssl(directory, "rsa -in sa.key -pubout -out sa.pub")
    certificate(directory, "ca", "keyUsage=critical,keyCertSign,cRLSign", "basicConstraints=critical,CA:TRUE")
    certificate(directory, "server", "subjectAltName=IP:127.0.0.1", "extendedKeyUsage=serverAuth", signer="ca")
    certificate(directory, "front-proxy-client", "extendedKeyUsage=clientAuth", signer="ca")
    tokens = {user: secrets.token_hex(16) for user in ("admin", "program", "components")}
    lines = [f'{token},{user},{user},"system:masters"\n' for user, token in tokens.items()]
    (directory / "tokens.csv").write_text("".join(lines))
    return Keys(directory, tokens)


def certificate(directory: Path, name: str, *extensions: str, signer: str = "") -> None:
    command = f"{CERTIFICATE} -subj /CN={name} -keyout {name}.key -out {name}.crt"
    if signer:
        command += f" -CA {signer}.crt -CAkey {signer}.key"
    for extension in extensions:
        command += f" -addext {extension}"
    openssl(directory, command)


def openssl(directory: Path, command: str) -> None:
    """Run openssl; arguments are split at spaces."""
    run("openssl", *command.split(), cwd=directory)


def write_kubeconfig(path: Path, server: str, authority: Path, token: str) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "e2e", "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


UNLIMITED = ["--kube-api-qps", "500", "--kube-api-burst", "1000"]
KWOK_CONFIGURATION = Path(__file__).with_name("kwok.yaml")


@dataclass(frozen=True)
class Ports:
    etcd: int
    etcd_peer: int
    apiserver: int
    kwok: int
    metrics_server: int


@dataclass(frozen=True)
class Commands:
    """What to run, given where the executables are, the keys, the ports and the components' kubeconfig."""

    binaries: Path
    keys: Keys
    ports: Ports
    kubeconfig: Path
    scheduler_options: Sequence[str] = ()
    stages: Sequence[Path] = ()  # of kwok, in place of its own of the kinds that these files name

    def etcd(self) -> list[str]:
        """The store; it need not survive a crash of the machine, so it does not wait for the disk."""
        clients = f"http://127.0.0.1:{self.ports.etcd}"
        peers = f"http://127.0.0.1:{self.ports.etcd_peer}"
        return [
            *self._controlplane("etcd"),
            *("--name", "one", "--data-dir", self.keys.path("etcd")),
            *("--listen-client-urls", clients, "--advertise-client-urls", clients),
            *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
            *("--initial-cluster", f"one={peers}", "--unsafe-no-fsync", "--log-level", "warn"),
        ]

    def apiserver(self) -> list[str]:
        """The API server, with RBAC, an audit log and the aggregation of the metrics API."""
        key = self.keys.path
        return [
            *self._controlplane("kube-apiserver"),
            *("--etcd-servers", f"http://127.0.0.1:{self.ports.etcd}"),
            *("--secure-port", str(self.ports.apiserver), "--bind-address", "127.0.0.1"),
            *("--tls-cert-file", key("server.crt"), "--tls-private-key-file", key("server.key")),
            *("--token-auth-file", key("tokens.csv"), "--client-ca-file", key("ca.crt")),
            *("--authorization-mode", "RBAC,Node", "--disable-admission-plugins", "ServiceAccount"),
            *("--service-account-key-file", key("sa.pub"), "--service-account-signing-key-file", key("sa.key")),
            *("--service-account-issuer", "https://kubernetes.default.svc"),
            *("--service-cluster-ip-range", "10.96.0.0/16", "--endpoint-reconciler-type", "none"),
            *("--audit-policy-file", key("audit-policy.yaml"), "--audit-log-path", key("audit.jsonl")),
            *("--audit-log-maxsize", "10000"),  # MB: never rotated, so that offsets stay true
            # Each eviction lists the PDBs, and a list from the watch cache waits up to 0.1 s until that is up to date.
            *("--watch-cache-sizes", "poddisruptionbudgets.policy#0"),
            # Without a front-proxy certificate the aggregated metrics API answers 403.
            *("--requestheader-client-ca-file", key("ca.crt")),
            *("--requestheader-allowed-names", "front-proxy-client"),
            *("--requestheader-extra-headers-prefix", "X-Remote-Extra-"),
            *("--requestheader-group-headers", "X-Remote-Group"),
            *("--requestheader-username-headers", "X-Remote-User"),
            *("--proxy-client-cert-file", key("front-proxy-client.crt")),
            *("--proxy-client-key-file", key("front-proxy-client.key")),
        ]

    def controllers(self) -> list[str]:
        """The controllers, without those that hand out node networks and speak to a cloud.

        They wait longer for a node's heartbeat than kwok does between two: ten minutes, when it plays no leases.
        """
        disabled = "*,-node-ipam-controller,-node-route-controller,-cloud-node-lifecycle-controller"
        return [
            *self._controlplane("kube-controller-manager"),
            *("--kubeconfig", str(self.kubeconfig)),
            *("--leader-elect=false", "--secure-port", "0", "--controllers", disabled, *UNLIMITED),
            *("--node-monitor-grace-period", "1h"),
            *("--service-account-private-key-file", self.keys.path("sa.key")),
        ]

    def scheduler(self) -> list[str]:
        return [
            *self._controlplane("kube-scheduler"),
            *("--kubeconfig", str(self.kubeconfig)),
            *("--leader-elect=false", "--secure-port", "0", *UNLIMITED),
            *self.scheduler_options,
        ]

    def kwok(self) -> list[str]:
        """kwok, which plays the kubelet of every node.

        Without node leases: with them it passes over, for good, a pod that is bound to a node before its cache knows
        the lease of that node.
        """
        return [
            *(str(self.binaries / "kwok"), "--kubeconfig", str(self.kubeconfig)),
            *(option for each in (KWOK_CONFIGURATION, *self.stages) for option in ("--config", str(each))),
            *("--manage-all-nodes=true", "--node-lease-duration-seconds", "0"),
            *("--node-ip", "127.0.0.1", "--node-port", str(self.ports.kwok)),
            *("--server-address", f"127.0.0.1:{self.ports.kwok}"),
        ]

    def metrics_server(self) -> list[str]:
        """metrics-server, reading what kwok says the pods use."""
        config = str(self.kubeconfig)
        return [
            *(str(self.binaries / "metrics-server"), "--kubeconfig", config),
            *("--authentication-kubeconfig", config, "--authorization-kubeconfig", config),
            *("--kubelet-insecure-tls", "--kubelet-use-node-status-port"),
            *("--kubelet-preferred-address-types", "InternalIP", "--kubelet-request-timeout", "5s"),
            *("--metric-resolution", "10s", "--secure-port", str(self.ports.metrics_server)),
            *("--bind-address", "127.0.0.1", "--cert-dir", self.keys.path("metrics-server")),
        ]

    def _controlplane(self, program: str) -> tuple[str, str]:
        return str(self.binaries / "controlplane"), program
