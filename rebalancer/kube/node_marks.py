"""Marks on nodes: each written safely while others write to the same node, and taken off where no run needs it.

1. Read the node.
2. Send a JSON patch (RFC 6902) that first tests that the node's UID, the whole list of taints, our annotation and our
   labels are still as they were read; else it changes nothing.  It contains no other field.
3. Act on the answer:

200 with the node                       done
404                                     the node is gone, and its taints with it: done
409, 422 that names no field            somebody else wrote to the node after step 1: back to step 1
422 that names a field                  the node would not be valid: an error
403, or refused by admission            an error
429, 5xx, no answer, 200 with a page    back to step 1: if the patch was applied after all, nothing is left to do

A test for null passes where the field is absent.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.kube.answers import HttpAnswer, Rejected, Transient, decoded, is_not_found
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.lists import read_list
from rebalancer.kube.marks import KindOfMark, MarkedNode, MarkT, Taint, Wanted
from rebalancer.kube.tries import Deadline, RetryPolicy
from rebalancer.kube.wire.pages import Items
from rebalancer.kube.wire.shared_fields import AnnotatedMetadata

NODES = "/api/v1/nodes"
_AT_ONCE = 8  # every write to a node is sent to all clients that watch nodes, so there must not be too many at once
#: For changes that conflict with a change by somebody else: they are tried again almost at once.
CONFLICTS = RetryPolicy(first_wait=0.05, shortest_wait=0.01, longest_wait=2.0, tries_unconnected=1_000)
_CLEAR_SECONDS = 60.0  # to take marks off all nodes together
Problems = Mapping[str, ClusterError]  # what went wrong, by the node's name
Operation = dict[str, Any]
_TAINTS = "/spec/taints"
Change = Callable[[MarkedNode], Wanted]  # returns how a node should be, given how it is


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

    The gate is called before every patch, and raises to stop it.  `doubted` hears of each node whose patch had no
    answer and may still be carried out.
    """

    client: Client
    retry_policy: RetryPolicy
    gate: Callable[[], None] = lambda: None
    doubted: Callable[[str], None] = lambda _: None

    def change(self, name: str, wanted: Change, deadline: Deadline) -> None:
        """Change a node to what is wanted; send nothing if it already is so.  A node that is gone is not an error."""
        self.retry_policy.call(deadline, lambda: self._try(name, wanted, deadline))

    def _try(self, name: str, wanted: Change, deadline: Deadline) -> None:
        path = NODES + path_of(name)
        answer = self.client.look(path, deadline=deadline)
        if is_not_found(answer, "nodes"):
            return
        found = decoded(answer.demanded(), NodeObject, path, "a Node")
        if found.kind != "Node" or not found.metadata.uid:
            raise Rejected(f"the API server does not answer {path} with a Node")
        operations = patch(node := found.marked(), wanted(node))
        try:
            if operations:
                body = msgspec.json.encode(operations)
                _judge(self.client.write("PATCH", path, body, deadline=deadline, gate=self.gate))
        except Transient as error:
            if error.maybe_done:
                self.doubted(name)
            raise


def _judge(answer: HttpAnswer) -> None:
    if is_not_found(answer, "nodes"):
        return
    if answer.is_success:
        answer.confirm("Node")
        return
    if answer.is_outdated:
        raise Transient(f"PATCH {answer.path}: others write to this node all the time")
    said = answer.explanation()
    if "denied the request" in said.message or "denied request" in said.message:
        raise Rejected(f"PATCH {answer.path} is refused by the cluster's admission: {answer.text()}")
    raise answer.error()


def on_each(names: Iterable[str], act: Callable[[str], object]) -> dict[str, ClusterError]:
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
    tests = [_test("/metadata/uid", node.uid), _test(_TAINTS, node.taints or None)]
    changes = [] if list(node.taints or ()) == list(wanted.taints) else [_set(_TAINTS, wanted.taints or None)]
    maps = (("annotations", node.annotations, wanted.annotations), ("labels", node.labels, wanted.labels))
    for name, found, entries in maps:
        path = f"/metadata/{name}"
        if entries:
            tests += [_test(_below(path, key), found.get(key)) for key in entries] if found else [_test(path, None)]
        changes += changed_entries(path, found, entries)
    return [*tests, *changes] if changes else []


def _test(path: str, value: object) -> Operation:
    return {"op": "test", "path": path, "value": value}


def _set(path: str, value: object) -> Operation:
    return {"op": "remove", "path": path} if value is None else {"op": "add", "path": path, "value": value}


def changed_entries(path: str, found: Mapping[str, str] | None, wanted: Mapping[str, str | None]) -> list[Operation]:
    """Return the JSON patch operations that set these entries of a map; None removes an entry."""
    if not found:
        added = {key: value for key, value in wanted.items() if value is not None}
        return [_set(path, added)] if added else []
    return [_set(_below(path, key), value) for key, value in wanted.items() if found.get(key) != value]


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What was found on nodes: what is `over` was taken off, except on nodes with problems."""

    over: tuple[MarkedNode, ...]
    in_use: tuple[MarkedNode, ...]  # nodes whose marks a run may still need; the marks stay
    problems: Problems
    claims: tuple[str, ...]  # in words, the taints that stay since only an annotation says that they are ours


def clear_leftovers(
    client: Client,
    kind: KindOfMark[MarkT],
    is_over: Callable[[MarkT], bool],
    gate: Callable[[], None] = lambda: None,
    *,
    dry_run: bool = False,
) -> Leftovers:
    """Take off the marks of runs that are over; each node is read again, and keeps a mark that is in use by then."""

    def is_in_use(node: MarkedNode) -> bool:
        mark = kind.read(node)
        return mark is not None and not is_over(mark)  # nobody relies on one that cannot be read

    def cleared(node: MarkedNode) -> Wanted:
        return Wanted(node.taints or ()) if is_in_use(node) else kind.off(node)

    deadline = Deadline.after(_CLEAR_SECONDS)
    nodes = read_list(client, NODES, lambda: Items("Node", NodeObject, NodeObject.marked), deadline=deadline).items
    found = [each for each in nodes if kind.is_on(each)]
    in_use = tuple(filter(is_in_use, found))
    over = tuple(each for each in found if each not in in_use)
    writer = NodeMarks(client, replace(CONFLICTS, stop=client.ending), gate)
    names = () if dry_run else [each.name for each in over]
    problems = on_each(names, lambda name: writer.change(name, cleared, deadline))
    return Leftovers(over, in_use, problems, tuple(filter(None, map(kind.claim, over))))
