"""One node's mark, written safely while others write to the same node.

1. Read the node.
2. Send a JSON patch that only applies if taints and annotation are still as they were read; see `node_patch`.
3. Act on the answer:

200                                     done
404                                     the node is gone, and its taints with it: done
409, 422 that names no field            somebody else wrote to the node after step 1: back to step 1
422 that names a field                  the node would not be valid: an error
403, or refused by admission            an error
429, 5xx, no answer                     back to step 1: if the patch was applied after all, nothing is left to do
"""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from rebalancer.kube.answers import Answer, NotFound, Rejected, Transient, error_of
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.eviction_request import is_not_found
from rebalancer.kube.marks import MarkedNode, Taint, Wanted
from rebalancer.kube.node_patch import patch
from rebalancer.kube.retry_policy import RetryPolicy
from rebalancer.untrusted.documents import Unreadable, decode_json

NODES = "/api/v1/nodes"

#: Returns how a node should be, given how it is.
Change = Callable[[MarkedNode], Wanted]


class NodeMetadata(msgspec.Struct):
    """The fields of a node's metadata that are used."""

    name: str
    uid: str = ""
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class NodeSpec(msgspec.Struct):
    """The fields of a node's spec that are used."""

    taints: list[Taint] | None = None


class NodeObject(msgspec.Struct):
    """The fields of a node that are used."""

    metadata: NodeMetadata
    kind: str = ""
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)

    def marked(self) -> MarkedNode:
        """Return the parts of the node that concern marks."""
        metadata = self.metadata
        return MarkedNode(metadata.name, metadata.uid, self.spec.taints, metadata.annotations, metadata.labels)


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """Changes nodes one by one; safe to share between threads.

    Attributes:
        client: the API server.
        retry_policy: how one node's change is tried again.
        gate: called before every patch, retries included; raises to stop it.
        doubted: called with the name of a node whose patch may still be carried out, since it had no answer; whatever
            becomes of the next try.
    """

    client: Client
    retry_policy: RetryPolicy
    gate: Callable[[], None] = lambda: None
    doubted: Callable[[str], None] = lambda _: None

    def change(self, name: str, wanted: Change, deadline: Deadline) -> None:
        """Change a node to what is wanted; send nothing if it already is so.  A node that is gone is not an error.

        Raises:
            Transient: it was not done in time; `maybe_done` says whether the last try may have succeeded.
            Forbidden, Rejected, Unreachable: it cannot be done.
            Halted: the gate stopped it.
        """
        self.retry_policy.tries(deadline)(self._try, name, wanted, deadline)

    def _try(self, name: str, wanted: Change, deadline: Deadline) -> None:
        path = NODES + path_of(name)
        try:
            node = self._read(path, deadline)
        except NotFound:
            return
        if operations := patch(node, wanted(node)):
            self._patch(name, path, msgspec.json.encode(operations), deadline)

    def _patch(self, name: str, path: str, body: bytes, deadline: Deadline) -> None:
        try:
            _judge(self.client.patch(path, body, deadline=deadline, gate=self.gate), path)
        except Transient as error:
            if error.maybe_done:
                self.doubted(name)
            raise

    def _read(self, path: str, deadline: Deadline) -> MarkedNode:
        answer = self.client.look(path, deadline=deadline)
        if is_not_found(answer, "nodes"):
            raise NotFound(path)
        if not answer.is_success:
            raise error_of(answer, "GET", path)
        try:
            node = decode_json(answer.body, NodeObject)
        except Unreadable as error:
            raise Rejected(f"the API server does not answer {path} with a Node: {error}") from error
        if node.kind != "Node" or not node.metadata.uid:
            raise Rejected(f"the API server does not answer {path} with a Node")
        return node.marked()


def _judge(answer: Answer, path: str) -> None:
    if answer.is_success or is_not_found(answer, "nodes"):
        return
    if answer.status == HTTPStatus.CONFLICT or _is_test_failed(answer):
        raise Transient(f"PATCH {path}: others write to this node all the time")
    if _is_denied(answer):
        raise Rejected(f"PATCH {path} is refused by the cluster's admission: {answer.text()}")
    raise error_of(answer, "PATCH", path)


def _is_test_failed(answer: Answer) -> bool:
    """Return whether a test in the patch failed; if the node would not be valid, the answer names fields as causes."""
    return answer.status == HTTPStatus.UNPROCESSABLE_ENTITY and not answer.explanation().details.causes


def _is_denied(answer: Answer) -> bool:
    message = answer.explanation().message
    return "denied the request" in message or "denied request" in message
