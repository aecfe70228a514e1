"""`rebalancer unmark`: take off the marks that steered runs have left on nodes."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from rebalancer.app.leftovers import Leftovers, any_mark, clear_leftovers, expired
from rebalancer.app.live import open_cluster
from rebalancer.app.options import ClientOptions
from rebalancer.args.steering import Steering
from rebalancer.errors import MarksLeft, UsageError
from rebalancer.kube.marks import Keys, MarkedNode
from rebalancer.report.document import timestamp


@dataclass(frozen=True, slots=True)
class Unmarked:
    """The outcome of `unmark`: a line for each node, and the exit code."""

    lines: tuple[str, ...]
    exit_code: int


def taint_keys(key: str) -> Keys:
    """Return the keys of both taints, made from the configured key.

    Raises:
        UsageError: it is not a valid key of a taint.
    """
    try:
        return Keys.of(Steering(key=key).key)
    except ValidationError as error:
        raise UsageError(f"--key: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None


def unmark(
    kubeconfig: str | None,
    context: str | None,
    keys: Keys,
    asking: ClientOptions | None = None,
    *,
    everything: bool,
    dry_run: bool,
) -> Unmarked:
    """Take off the marks that have expired, or all of them.

    Args:
        kubeconfig: the explicit file, if any.
        context: the explicit context, if any.
        keys: of the taints.
        asking: how the API server is asked.
        everything: whether to take off also marks that a run may still need.
        dry_run: whether to say only what would be done.

    Raises:
        ClusterError: nodes cannot be listed.
    """
    cluster = open_cluster(kubeconfig, context, asking=asking)
    is_over = any_mark if everything else expired
    found = clear_leftovers(cluster.client, keys, is_over, dry_run=dry_run)
    return Unmarked(tuple(_lines(found, keys, dry_run=dry_run)), MarksLeft.exit_code if found.problems else 0)


def _lines(found: Leftovers, keys: Keys, *, dry_run: bool) -> Iterator[str]:
    if not found.over and not found.in_use:
        yield f"no node carries {keys.first}"
    for node in found.over:
        yield f"{_described(node)}: {_outcome(node, found, dry_run=dry_run)}"
    for node in found.in_use:
        yield f"{_described(node)}: stays, since that run may be at work (--all takes it off)"


def _described(node: MarkedNode) -> str:
    mark = node.mark
    whose = f"run {mark.run}, until {timestamp(mark.expires)}" if mark else "nobody's"
    return f"node {node.name} ({whose})"


def _outcome(node: MarkedNode, found: Leftovers, *, dry_run: bool) -> str:
    if dry_run:
        return "would be unmarked"
    problem = found.problems.get(node.name)
    return f"stays marked: {problem}" if problem else "unmarked"
