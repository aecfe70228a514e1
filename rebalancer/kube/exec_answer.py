"""Reads what a credentials plugin prints, and puts the credentials into the kubeconfig's user.

Source: the Kubernetes API `client.authentication.k8s.io`, v1 and v1beta1.
"""

import base64
from datetime import UTC, datetime

import msgspec

from rebalancer.kube.kubeconfig import Document
from rebalancer.untrusted.documents import decode_json


class Status(msgspec.Struct, rename="camel"):
    """The credentials in an answer."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None

    @property
    def expires(self) -> datetime | None:
        """When the credentials expire; None if the answer does not say."""
        time = self.expiration_timestamp
        return time.replace(tzinfo=UTC) if time and time.tzinfo is None else time


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: Status = msgspec.field(default_factory=Status)


def read_answer(printed: bytes, version: str) -> Status:
    """Return the credentials that a plugin printed.

    Args:
        printed: on its standard output.
        version: the apiVersion that the kubeconfig asks for.

    Raises:
        ValueError: there are none; the message repeats nothing of what was printed, since that may be a token.
    """
    try:
        found = decode_json(printed, _Answer)
    except ValueError:
        raise ValueError("what it printed is not an ExecCredential") from None
    if (found.api_version, found.kind) != (version, "ExecCredential"):
        raise ValueError(f"what it printed is not an ExecCredential of {version}")
    status = found.status
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ValueError("it gave a client certificate without its key, or a key without its certificate")
    if not (status.token or status.client_certificate_data):
        raise ValueError("its answer has neither a token nor a client certificate")
    return status


def with_credentials(user: Document, status: Status) -> Document:
    """Return a kubeconfig's user with the plugin's answer instead of the plugin."""
    replaced = {"exec"}
    given: Document = {}
    if status.token:
        replaced |= {"token", "tokenFile"}
        given["token"] = status.token
    if status.client_certificate_data and status.client_key_data:
        replaced |= {"client-certificate", "client-key"}
        given["client-certificate-data"] = base64.b64encode(status.client_certificate_data.encode()).decode()
        given["client-key-data"] = base64.b64encode(status.client_key_data.encode()).decode()
    return {key: value for key, value in user.items() if key not in replaced} | given
