"""Why nodes do not take a pod, in words."""

from collections.abc import Sequence

from rebalancer.cluster.resources import describe
from rebalancer.eviction.causes import Code
from rebalancer.report.words.goes import over
from rebalancer.report.words.numbers import Figures, number_text, words


def _still_in_progress(figures: Figures) -> str:
    pods = ", ".join(figures["pods"])
    return f"evictions still in progress, which count against the limits of this cycle: {pods}"


NOTICES = words(
    {
        Code.LANDED_ELSEWHERE: (
            "{waves} waves in a row landed elsewhere than foreseen, so steering ended: is there another scheduler, "
            "preemption, or a webhook that changes pods?"
        ),
        Code.LANDINGS_UNKNOWN: (
            "{pods} of {candidates} pods stay since it is not known where they would land: {reasons}"
        ),
        Code.BREAKER_OPEN: "the breaker lets one move be tried: {why}",
        Code.FORECAST_MISSED: (
            "only {hits} of the last {of} replacements landed where foretold, so nothing is balanced: is there another "
            "scheduler, or a webhook that changes pods?"
        ),
        Code.MORE_STAY_OVER: "{nodes} more nodes stay over, and nothing more may go that helps",
        Code.STAYS_OVER: lambda figures: f"{over(figures)}, and nothing more may go that helps",
        Code.STILL_IN_PROGRESS: _still_in_progress,
    }
)


_SHOWN = 3


def _insufficient(figures: Figures) -> str:
    name = figures["resource"]
    if "requested" not in figures:
        return f"insufficient {name}"
    return (
        f"insufficient {name} "
        f"({describe(name, figures['requested'])} requested, {describe(name, figures['free'])} free)"
    )


def _above_ceiling(figures: Figures) -> str:
    return f"{figures['resource']} above {number_text(figures['ceiling'])} %"


NODES = words(
    {
        Code.ABOVE_CEILING: _above_ceiling,
        Code.ANTI_AFFINITY: "anti-affinity against {pod}",
        Code.CORDONED: "cordoned",
        Code.HELD_NODE: "which is held empty",
        Code.IDLE_NODE: "which is to be emptied, too",
        Code.INSUFFICIENT: _insufficient,
        Code.NO_POD_SLOT: "no free pod slot",
        Code.NODE_AFFINITY: "node selector or affinity does not match",
        Code.OWN_NODE: "where it is",
        Code.TAINT: "taint {taint} is not tolerated",
        Code.UNKNOWN_USAGE: "whose usage is unknown",
        Code.OTHER_POOL: "which is of another pool",
    }
)


def obstacle_text(obstacle: Figures) -> str:
    """Return why a node does not take a pod; an obstacle is `code` and its figures."""
    return NODES[Code(obstacle["code"])](obstacle)


def obstacles_text(obstacles: Sequence[Figures]) -> str:
    """Return the most frequent obstacles with their numbers, like `3 x cordoned, 1 x insufficient cpu`."""
    counted = sorted((-each["count"], obstacle_text(each)) for each in obstacles)
    shown = [f"{-count} x {what}" for count, what in counted]
    more = ["..."] if len(shown) > _SHOWN else []
    return ", ".join(shown[:_SHOWN] + more)
