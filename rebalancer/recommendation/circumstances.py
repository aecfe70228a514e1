"""What samples do not show: OOM kills, throttling and autoscalers; each changes a rule's answer, with the reason.

A container that was killed or throttled wanted more than anybody measured, so the amount is raised:

- OOM killed: memory as the VerticalPodAutoscaler does, to the limit or the highest value seen, whichever is more, plus
  20 %, and at least 100 Mi more.  Example: a limit of 512 Mi becomes 615 Mi.
- throttled on three days or more: the limit of CPU by the share of its periods in which it was.  Example: 200m and 40 %
  become 280m.  On fewer days it is only told.

The request keeps its share of the limit.  A resource by which a HorizontalPodAutoscaler scales is left alone: another
request would change how many replicas there are.
"""

from dataclasses import dataclass, replace
from math import ceil

from rebalancer.recommendation.rules import MEBI, Need

_OOM_SHARE = 1.2
_OOM_LEAST = 100 * MEBI
_OFTEN = 3


@dataclass(frozen=True, slots=True)
class ContainerCircumstances:
    """What is known of a container besides what it used.

    Attributes:
        autoscaler: the HorizontalPodAutoscaler of its workload; empty if there is none.
        scaled: the resources by which that scales, cpu or memory.
        oom_kills: how many of its pods were OOM killed.
        throttled: in which share of its CPU periods it was throttled, as a mean of the worst hours of those days on
            which that was often; 0 if it was not.
        throttled_days: how many days those were.
    """

    autoscaler: str = ""
    scaled: frozenset[str] = frozenset()
    oom_kills: int = 0
    throttled: float = 0.0
    throttled_days: int = 0


NOTHING_KNOWN = ContainerCircumstances()


def adjusted(
    need: Need, known: ContainerCircumstances, cpu_limit: int | None, highest_memory: float
) -> tuple[Need, tuple[str, ...]]:
    """Return what a container needs in its circumstances, and remarks that say what was changed and why.

    Args:
        need: by the rule.
        known: the circumstances.
        cpu_limit: today's limit of CPU; None if there is none.
        highest_memory: today's limit of memory, or the highest value that was seen, whichever is more.
    """
    remarks: list[str] = []
    if known.oom_kills:
        need = _after_kills(need, known, highest_memory, remarks)
    if known.throttled and cpu_limit:
        need = _unthrottled(need, known, cpu_limit, remarks)
    if "cpu" in known.scaled:
        need = replace(need, cpu_request=None, cpu_limit=None)
    if "memory" in known.scaled:
        need = replace(need, memory_request=None, memory_limit=None)
    scaler = f"HorizontalPodAutoscaler {known.autoscaler}"
    remarks += [f"{name} is left alone: {scaler} scales by it" for name in sorted(known.scaled)]
    return need, tuple(remarks)


def _after_kills(need: Need, known: ContainerCircumstances, highest: float, remarks: list[str]) -> Need:
    wanted = _whole_mebi(max(highest * _OOM_SHARE, highest + _OOM_LEAST))
    request, limit = need.memory_request or 0, need.memory_limit
    pods = "1 pod" if known.oom_kills == 1 else f"{known.oom_kills} pods"
    if "memory" in known.scaled or max(request, limit or 0) >= wanted:
        remarks.append(f"OOM killed in {pods}")
        return need
    remarks.append(f"OOM killed in {pods}: memory raised to {wanted // MEBI}Mi")
    if limit is None:
        return replace(need, memory_request=wanted)
    return replace(need, memory_request=_whole_mebi(wanted * request / limit), memory_limit=wanted)


def _unthrottled(need: Need, known: ContainerCircumstances, now: int, remarks: list[str]) -> Need:
    wanted = ceil(now * (1 + known.throttled))
    request, limit = need.cpu_request or 0, need.cpu_limit
    days = "1 day" if known.throttled_days == 1 else f"{known.throttled_days} days"
    why = f"throttled in {known.throttled * 100:.0f} % of its cpu periods on {days}"
    if "cpu" in known.scaled or (limit or 0) >= wanted or known.throttled_days < _OFTEN:
        remarks.append(why)
        return need
    remarks.append(f"{why}: its limit of cpu raised to {wanted}m")
    return replace(
        need, cpu_request=ceil(wanted * request / limit) if limit else request, cpu_limit=max(wanted, request)
    )


def _whole_mebi(value: float) -> int:
    return ceil(value / MEBI) * MEBI
