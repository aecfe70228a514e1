"""Keys, certificates and credentials of one control plane, made by openssl in its directory."""

import secrets
from collections.abc import Mapping
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
    """Write a kubeconfig with one cluster, named "e2e", and one user, known by a token."""
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
