"""What the API server was asked: its audit log, read back."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.api import Object

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: None
    users: [components, "system:apiserver"]
  - level: Metadata
"""
READING_VERBS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class Request:
    """One request that the API server has answered; `received` and `answered` are times as it writes them."""

    user: str
    verb: str
    path: str
    resource: str
    subresource: str
    namespace: str
    name: str
    status: int
    received: str = ""
    answered: str = ""

    @property
    def reads_only(self) -> bool:
        """Whether it cannot have changed anything; an access review (create) does not count as reading."""
        return self.verb in READING_VERBS


def read_audit(log: Path, offset: int) -> list[Request]:
    """Read the requests logged from a byte offset on, in order; a line still being written is left out."""
    with log.open("rb") as stream:
        stream.seek(offset)
        lines = stream.read().split(b"\n")[:-1]
    return [_request(json.loads(line)) for line in lines]


def _request(entry: Object) -> Request:
    about = entry.get("objectRef", {})
    return Request(
        user=entry["user"]["username"],
        verb=entry["verb"],
        path=entry["requestURI"],
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        status=entry.get("responseStatus", {}).get("code", 0),
        received=entry["requestReceivedTimestamp"],
        answered=entry["stageTimestamp"],
    )
