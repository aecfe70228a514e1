"""Marks on nodes: each written safely while others write to the same node, and taken off where no run needs it.

1. Read the node.
2. Send a JSON patch that only applies if taints and annotation are still as they were read.
3. Act on the answer:

200 with the node                       done
404                                     the node is gone, and its taints with it: done
409, 422 that names no field            somebody else wrote to the node after step 1: back to step 1
422 that names a field                  the node would not be valid: an error
403, or refused by admission            an error
429, 5xx, no answer, 200 with a page    back to step 1: if the patch was applied after all, nothing is left to do

The patch (RFC 6902) first tests that the node's UID, the whole list of taints, our annotation and our labels are still
as they were read.  If somebody has changed one of them in between, it fails (422) and changes nothing.  It contains no
other field.  A test for null passes where the field is absent.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.kube.answers import HttpAnswer, Rejected, Transient, decoded, is_not_found
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.lists import Items, read_list
from rebalancer.kube.marks import KindOfMark, MarkedNode, MarkT, Taint, Wanted
from rebalancer.kube.tries import Deadline, RetryPolicy
from rebalancer.kube.wire.shared_fields import AnnotatedMetadata

NODES = "/api/v1/nodes"

#: Every write to a node is sent to all clients that watch nodes, so there must not be too many at once.
_AT_ONCE = 8

#: For changes that conflict with a change by somebody else: they are tried again almost at once.
CONFLICTS = RetryPolicy(first_wait=0.05, shortest_wait=0.01, longest_wait=2.0, tries_unconnected=1_000)

#: To take marks off all nodes together, in seconds.
CLEAR_SECONDS = 60.0

#: What went wrong, by the node's name.
Problems = Mapping[str, ClusterError]

Operation = dict[str, Any]

_UID = "/metadata/uid"
_TAINTS = "/spec/taints"
_ANNOTATIONS = "/metadata/annotations"
_LABELS = "/metadata/labels"

#: Returns how a node should be, given how it is.
Change = Callable[[MarkedNode], Wanted]


class _MarkedSpec(msgspec.Struct):
    taints: list[Taint] | None = None


class NodeObject(msgspec.Struct):
    """The fields of a node that are used."""

    metadata: AnnotatedMetadata
    kind: str = ""
    spec: _MarkedSpec = msgspec.field(default_factory=_MarkedSpec)

    def marked(self) -> MarkedNode:
        """Return the parts of the node that concern marks."""
        metadata = self.metadata
        return MarkedNode(metadata.name, metadata.uid, self.spec.taints, metadata.annotations, metadata.labels)


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """Changes nodes one by one; safe to share between threads.

    Attributes:
        gate: called before every patch, retries included; raises to stop it.
        doubted: called with the name of a node whose patch may still be carried out, since it had no answer; whatever
            becomes of the next try.
    """

    client: Client
    retry_policy: RetryPolicy
    gate: Callable[[], None] = lambda: None
    doubted: Callable[[str], None] = lambda _: None

    def change(self, name: str, wanted: Change, deadline: Deadline) -> None:
        """Change a node to what is wanted; send nothing if it already is so.  A node that is gone is not an error."""
        self.retry_policy.call(deadline, self._try, name, wanted, deadline)

    def _try(self, name: str, wanted: Change, deadline: Deadline) -> None:
        path = NODES + path_of(name)
        node = self._read(path, deadline)
        if node and (operations := patch(node, wanted(node))):
            self._patch(name, path, msgspec.json.encode(operations), deadline)

    def _patch(self, name: str, path: str, body: bytes, deadline: Deadline) -> None:
        try:
            _judge(self.client.write("PATCH", path, body, deadline=deadline, gate=self.gate))
        except Transient as error:
            if error.maybe_done:
                self.doubted(name)
            raise

    def _read(self, path: str, deadline: Deadline) -> MarkedNode | None:
        """Return the node; None where it is gone."""
        answer = self.client.look(path, deadline=deadline)
        if is_not_found(answer, "nodes"):
            return None
        node = decoded(answer.demanded(), NodeObject, path, "a Node")
        if node.kind != "Node" or not node.metadata.uid:
            raise Rejected(f"the API server does not answer {path} with a Node")
        return node.marked()


def _judge(answer: HttpAnswer) -> None:
    if is_not_found(answer, "nodes"):
        return
    if answer.is_success:
        answer.confirm("Node")
        return
    said = answer.explanation()
    # If the node would not be valid, the answer names fields as causes; if a test in the patch failed, it names none.
    is_test_failed = answer.status == HTTPStatus.UNPROCESSABLE_ENTITY and not said.details.causes
    if answer.status == HTTPStatus.CONFLICT or is_test_failed:
        raise Transient(f"PATCH {answer.path}: others write to this node all the time")
    if "denied the request" in said.message or "denied request" in said.message:
        raise Rejected(f"PATCH {answer.path} is refused by the cluster's admission: {answer.text()}")
    raise answer.error()


def on_each(names: Iterable[str], act: Callable[[str], None]) -> dict[str, ClusterError]:
    """Act on every node, and return what went wrong, by the node's name; an error on one does not stop the others."""
    problems: dict[str, ClusterError] = {}
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="marks")
    try:
        futures = {name: pool.submit(act, name) for name in sorted(set(names))}
        for name, future in futures.items():
            try:
                future.result()
            except ClusterError as error:
                problems[name] = error
    finally:
        pool.shutdown(cancel_futures=True)
    return problems


def patch(node: MarkedNode, wanted: Wanted) -> list[Operation]:
    """Return the patch; empty where the node is already as wanted."""
    tests = [_test(_UID, node.uid), _test(_TAINTS, node.taints or None)]
    changes = _taints(node, wanted)
    maps = ((_ANNOTATIONS, node.annotations, wanted.annotations), (_LABELS, node.labels, wanted.labels))
    for path, found, entries in maps:
        tests += _tests(path, found, entries)
        changes += changed_entries(path, found, entries)
    return [*tests, *changes] if changes else []


def _test(path: str, value: object) -> Operation:
    return {"op": "test", "path": path, "value": value}


def _tests(path: str, found: Mapping[str, str] | None, wanted: Mapping[str, str | None]) -> list[Operation]:
    if not wanted:
        return []
    return [_test(_below(path, key), found.get(key)) for key in wanted] if found else [_test(path, None)]


def _taints(node: MarkedNode, wanted: Wanted) -> list[Operation]:
    if list(node.taints or ()) == list(wanted.taints):
        return []
    if not wanted.taints:
        return [{"op": "remove", "path": _TAINTS}]
    return [{"op": "add", "path": _TAINTS, "value": wanted.taints}]


def changed_entries(path: str, found: Mapping[str, str] | None, wanted: Mapping[str, str | None]) -> list[Operation]:
    """Return the JSON patch operations that set these entries of a map; None removes an entry."""
    if not found:
        added = {key: value for key, value in wanted.items() if value is not None}
        return [{"op": "add", "path": path, "value": added}] if added else []
    changed = {key: value for key, value in wanted.items() if found.get(key) != value}
    return [
        {"op": "remove", "path": _below(path, key)}
        if value is None
        else {"op": "add", "path": _below(path, key), "value": value}
        for key, value in changed.items()
    ]


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What was found on nodes.

    Attributes:
        over: nodes whose marks no run needs; the marks were taken off, except on nodes with problems.
        in_use: nodes whose marks a run may still need; the marks stay.
        problems: why a mark could not be taken off, by the node's name.
        claims: in words, the taints that stay since only an annotation says that they are ours.
    """

    over: tuple[MarkedNode, ...] = ()
    in_use: tuple[MarkedNode, ...] = ()
    problems: Problems = field(default_factory=dict)
    claims: tuple[str, ...] = ()


def clear_leftovers(
    client: Client,
    kind: KindOfMark[MarkT],
    is_over: Callable[[MarkT], bool],
    gate: Callable[[], None] = lambda: None,
    *,
    dry_run: bool = False,
) -> Leftovers:
    """Take off the marks of runs that are over; each node is read again, and keeps a mark that is in use by then.

    Nobody uses a mark any more of which `is_over` returns True.  The gate is called before every write, and raises to
    prevent it.  A dry run only finds them.
    """
    deadline = Deadline.after(CLEAR_SECONDS)
    try:
        nodes = read_list(client, NODES, lambda: Items("Node", NodeObject, NodeObject.marked), deadline=deadline).items
    except ValueError as error:
        raise ClusterError(f"the API server does not answer GET {NODES} with a list of nodes: {error}") from error
    found = [each for each in nodes if kind.is_on(each)]
    in_use = tuple(each for each in found if kind.is_in_use(each, is_over))
    over = tuple(each for each in found if each not in in_use)
    writer = NodeMarks(client, replace(CONFLICTS, stop=client.ending), gate)
    names = () if dry_run else [each.name for each in over]
    problems = on_each(names, lambda name: writer.change(name, lambda node: kind.cleared(node, is_over), deadline))
    return Leftovers(over, in_use, problems, tuple(claim for each in over if (claim := kind.claim(each))))
