"""Which workload a pod is of, and what is recommended for its containers: a rule's answer, and what changes it.

A container that was killed or throttled wanted more than anybody measured, so the amount is raised; the request keeps
its share of the limit.  What a HorizontalPodAutoscaler scales by is left alone (docs/recommend.md has both rules).
"""

import re
from dataclasses import astuple, dataclass, field, replace
from math import ceil
from statistics import median
from typing import Any, NamedTuple

from rebalancer.recommendation.rules import MEBI, Amounts, Need, Rule, in_whole_mebi
from rebalancer.recommendation.samples import Samples

#: Names that Kubernetes makes have these letters only: no vowels, and no 0, 1 and 3.
_LETTERS = "[bcdfghjklmnpqrstvwxz2456789]"
_KINDS = (
    ("CronJob", re.compile(rf"(.+)-\d{{8}}-{_LETTERS}{{5}}")),
    ("Deployment", re.compile(rf"(.+)-{_LETTERS}{{6,10}}-{_LETTERS}{{5}}")),
    ("StatefulSet", re.compile(r"(.+)-\d+")),
    ("DaemonSet", re.compile(rf"(.+)-{_LETTERS}{{5}}")),
)
#: What differs by less from what it is now is fine.
_CLOSE = 0.1
_BURST = 2.0
_OOM_SHARE = 1.2
_OOM_LEAST = 100 * MEBI
_OFTEN = 3

APPS = "apps/v1"
#: The container of samples that are of whole pods.
WHOLE_POD = "(pod)"


class Workload(NamedTuple):
    """An owner of pods, as people know it: the Deployment, and not its ReplicaSet."""

    namespace: str
    kind: str
    name: str


def workload_by_name(namespace: str, pod: str) -> Workload:
    """Return the workload that the pattern of a pod's name tells; a guess, since names may be chosen freely."""
    for kind, pattern in _KINDS:
        match = pattern.fullmatch(pod)
        if match:
            return Workload(namespace, kind, match[1])
    return Workload(namespace, "Pod", pod)


@dataclass(frozen=True, slots=True)
class ContainerCircumstances:
    """What is known of a container besides what it used."""

    autoscaler: str = ""  # the HorizontalPodAutoscaler of its workload; empty if there is none
    scaled: frozenset[str] = frozenset()  # the resources by which that scales, cpu or memory
    oom_kills: int = 0  # how many of its pods were OOM killed
    #: In which share of its CPU periods it was throttled, as a mean of the worst hours of those days on which that was
    #: often; 0 if it was not.
    throttled: float = 0.0
    throttled_days: int = 0  # how many days those were
    version: str = APPS  # the apiVersion of its workload


@dataclass(frozen=True, slots=True)
class History:
    """What is known of a container of a workload, of all its pods."""

    workload: Workload
    container: str
    samples: Samples
    now: Amounts | None = None  # None where the cluster was not looked at
    by_name: bool = True  # whether some pod was joined by the pattern of its name
    replicas: int = 1  # how many pods the workload has; 1 where the cluster was not looked at
    circumstances: ContainerCircumstances = ContainerCircumstances()


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What is recommended for a container; `need` is None where there is too little history, and `why` says so."""

    history: History
    need: Need | None
    why: str
    days: int
    remarks: tuple[str, ...] = field(default=())

    @property
    def confidence(self) -> str:
        """Return none, low (which workload it is was told by names) or high."""
        return "none" if self.need is None else "low" if self.history.by_name else "high"

    @property
    def fine(self) -> bool:
        """Return whether nothing needs to change: all that is recommended is set, and within 10 %."""
        if self.need is None or self.history.now is None:
            return False
        pairs = zip(astuple(self._set), astuple(self.history.now), strict=True)
        return all(wanted is None or (now is not None and abs(wanted - now) < _CLOSE * now) for wanted, now in pairs)

    @property
    def change(self) -> Amounts | None:
        """The amounts that should be set, None for those that are left alone; None if nothing should change.

        A limit that the rule does not ask for is left alone, unless it is below the new request, which the API server
        would refuse: then it becomes the request.
        """
        return None if self.need is None or self.history.now is None or self.fine else self._set

    @property
    def _set(self) -> Amounts:
        need, now = self.need, self.history.now or Amounts()
        assert need is not None

        def limit(request: int | None, wanted: int | None, now: int | None) -> int | None:
            return request if wanted is None and now is not None and request is not None and now < request else wanted

        cpu = need.cpu_request, limit(need.cpu_request, need.cpu_limit, now.cpu_limit)
        return Amounts(*cpu, need.memory_request, limit(need.memory_request, need.memory_limit, now.memory_limit))


def recommend(
    history: History, rule: Rule, share: float, min_days: int, min_samples: int, *, core: bool
) -> Recommendation:
    """Return what a rule recommends, if there is enough history: days with samples in a peak window, and samples."""
    samples = replace(history.samples)  # its columns take memory until it is gone
    peaks = samples.daily_peaks("cpu")
    if len(peaks) < max(1, min_days) or len(samples) < min_samples:
        found = f"{len(peaks)} days with samples in peak windows and {len(samples)} samples"
        why = f"too little history: {found}; needed are {min_days} and {min_samples}"
        return Recommendation(history, None, why, len(peaks))
    need = rule(samples, share, core)
    now = history.now or Amounts()
    highest = max(now.memory_limit or 0, samples.highest("memory"))
    need, remarks = adjusted(need, history.circumstances, now.cpu_limit, highest)
    return Recommendation(history, need, need.why, len(peaks), (*remarks, *_bursts(samples)))


def _bursts(samples: Samples) -> tuple[str, ...]:
    peaks = samples.steady().daily_peaks("cpu")
    usual = median(peaks.values()) if peaks else 0.0
    high = [peak for peak in peaks.values() if peak >= _BURST * usual > 0]
    return (f"burst: {max(high):.0f}m on {len(high)} of {len(peaks)} days",) if high else ()


def adjusted(
    need: Need, known: ContainerCircumstances, cpu_limit: int | None, highest_memory: float
) -> tuple[Need, tuple[str, ...]]:
    """Return what a container needs in its circumstances, and remarks; kills count from its limit or highest memory."""
    remarks: list[str] = []
    if known.oom_kills:
        need = _after_kills(need, known, highest_memory, remarks)
    if known.throttled and cpu_limit:
        need = _unthrottled(need, known, cpu_limit, remarks)
    for name in sorted(known.scaled):
        nothing: dict[str, Any] = {f"{name}_request": None, f"{name}_limit": None}
        need = replace(need, **nothing)
        remarks.append(f"{name} is left alone: HorizontalPodAutoscaler {known.autoscaler} scales by it")
    return need, tuple(remarks)


def _after_kills(need: Need, known: ContainerCircumstances, highest: float, remarks: list[str]) -> Need:
    wanted = in_whole_mebi(max(highest * _OOM_SHARE, highest + _OOM_LEAST))
    request, limit = need.memory_request or 0, need.memory_limit
    pods = "1 pod" if known.oom_kills == 1 else f"{known.oom_kills} pods"
    if "memory" in known.scaled or max(request, limit or 0) >= wanted:
        remarks.append(f"OOM killed in {pods}")
        return need
    remarks.append(f"OOM killed in {pods}: memory raised to {wanted // MEBI}Mi")
    if limit is None:
        return replace(need, memory_request=wanted)
    return replace(need, memory_request=in_whole_mebi(wanted * request / limit), memory_limit=wanted)


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
