"""`rebalancer unmark`: take off the marks that steered runs and `rebalancer mark` have left on nodes."""

from collections.abc import Callable

from pydantic import ValidationError

from rebalancer.errors import MarksLeft, UsageError
from rebalancer.kube.marks import Keys, KindOfMark, MarkedNode, any_mark, expired, hold_marks, steering_marks
from rebalancer.kube.node_marks import Leftovers, clear_leftovers
from rebalancer.kube.pressure_marks import PressureMarks, mark_of
from rebalancer.marking.rules import Signs, read_sign
from rebalancer.policy.steering import HOLD_KEY, Steering
from rebalancer.report.document import timestamp
from rebalancer.run.live import open_cluster
from rebalancer.run.options import MARKING_LEASE, ClientOptions, LeaseOptions
from rebalancer.run.steered import record_of


def unmark(
    client: ClientOptions, key: str, sign: str, *, everything: bool, dry_run: bool
) -> tuple[tuple[str, ...], int]:
    """Take off the marks that have expired, or all of them.

    Args:
        client: where the API server is, and how it is asked.
        key: of steering's taints, from which that of the second one is made.
        sign: of marks of pressure, KEY or KEY=VALUE.
        everything: whether to take off also marks that a run may still need.
        dry_run: whether to say only what would be done.

    Returns:
        A line for each node, and the exit code.

    Raises:
        UsageError: the key or the sign is not valid.
        ClusterError: nodes cannot be listed.
    """
    try:
        key, pressure = Steering(key=key).key, read_sign(sign)
    except ValidationError as error:
        raise UsageError(f"--key: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    except ValueError as error:
        raise UsageError(f"--mark: {error}") from None
    signs = Signs(label=pressure, taint=pressure)
    cluster = open_cluster(client)
    # The runs that may have left something, and the labels and taints that `rebalancer mark` has set.
    keys = Keys.of(key, [each.run for each in record_of(cluster, LeaseOptions()).read() or ()])
    earlier = record_of(cluster, LeaseOptions(resource_name=MARKING_LEASE)).signs()
    is_over = any_mark if everything else expired
    kinds: list[tuple[KindOfMark, Callable[[MarkedNode], str], str]] = [
        (steering_marks(keys, is_over), _steered_by, "that run may be at work"),
        (hold_marks(is_over), _held_by, "it has not expired"),
        (PressureMarks(signs, earlier).kind(is_over), _pressed_by, "it has not expired"),
    ]
    lines: list[str] = []
    claims: list[str] = []
    failed = False
    for kind, whose, why in kinds:
        found = clear_leftovers(cluster.client, kind, dry_run=dry_run)
        lines += [f"node {node.name} ({whose(node)}): {_outcome(node, found, dry_run=dry_run)}" for node in found.over]
        lines += [f"node {node.name} ({whose(node)}): stays, since {why} (--all takes it off)" for node in found.in_use]
        claims += found.claims
        failed = failed or bool(found.problems)
    told = (*lines, *claims) or (f"no node carries {keys.first}, {HOLD_KEY} or {signs.label}",)
    return told, MarksLeft.exit_code if failed else 0


def _steered_by(node: MarkedNode) -> str:
    mark = node.mark
    return f"run {mark.run}, until {timestamp(mark.expires)}" if mark else "nobody's"


def _held_by(node: MarkedNode) -> str:
    mark = node.hold
    return f"held empty by run {mark.run}, until {timestamp(mark.expires)}" if mark else "held empty, nobody's"


def _pressed_by(node: MarkedNode) -> str:
    mark = mark_of(node)
    return f"pressure: {', '.join(mark.rules)}, until {timestamp(mark.expires)}" if mark else "pressure, nobody's"


def _outcome(node: MarkedNode, found: Leftovers, *, dry_run: bool) -> str:
    if dry_run:
        return "would be unmarked"
    problem = found.problems.get(node.name)
    return f"stays marked: {problem}" if problem else "unmarked"
