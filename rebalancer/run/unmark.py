"""`rebalancer unmark`: take off the marks that steered runs and `rebalancer mark` have left on nodes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic import ValidationError

from rebalancer.errors import MarksLeft, UsageError
from rebalancer.kube.marks import Keys, KindOfMark, MarkedNode, any_mark, expired, hold_marks, steering_marks
from rebalancer.kube.node_marks import Leftovers, clear_leftovers
from rebalancer.kube.pressure_marks import USUAL, PressureMarks, mark_of
from rebalancer.marking.rules import Sign, Signs, read_sign
from rebalancer.policy.steering import HOLD_KEY, Steering
from rebalancer.report.document import timestamp
from rebalancer.run.live import open_cluster
from rebalancer.run.options import MARKING_LEASE, ClientOptions, LeaseOptions
from rebalancer.run.steered import record_of


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


def pressure_signs(sign: str) -> Signs:
    """Return the label and the taint of marks of pressure, from KEY or KEY=VALUE.

    Raises:
        UsageError: it is not valid.
    """
    try:
        found: Sign = read_sign(sign)
    except ValueError as error:
        raise UsageError(f"--mark: {error}") from None
    return Signs(label=found, taint=found)


def unmark(
    kubeconfig: str | None,
    context: str | None,
    keys: Keys,
    asking: ClientOptions | None = None,
    *,
    signs: Signs = USUAL,
    everything: bool,
    dry_run: bool,
) -> Unmarked:
    """Take off the marks that have expired, or all of them.

    Args:
        kubeconfig: the explicit file, if any.
        context: the explicit context, if any.
        keys: of steering's taints.
        asking: how the API server is asked.
        signs: of marks of pressure.
        everything: whether to take off also marks that a run may still need.
        dry_run: whether to say only what would be done.

    Raises:
        ClusterError: nodes cannot be listed.
    """
    cluster = open_cluster(kubeconfig, context, asking=asking)
    # The runs that may have left something, and the labels and taints that `rebalancer mark` has set.
    keys = replace(keys, runs=frozenset(each.run for each in record_of(cluster, LeaseOptions()).read() or ()))
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
    return Unmarked(told, MarksLeft.exit_code if failed else 0)


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
