"""Which workload a pod is of, and what is recommended for its containers."""

import re
from dataclasses import astuple, dataclass, field
from statistics import median
from typing import NamedTuple

from rebalancer.recommendation.circumstances import NOTHING_KNOWN, ContainerCircumstances, adjusted
from rebalancer.recommendation.rules import Need, Rule, Settings
from rebalancer.recommendation.samples import Samples

#: Names that Kubernetes makes have these letters only: no vowels, and no 0, 1 and 3.
_LETTERS = "[bcdfghjklmnpqrstvwxz2456789]"
_KINDS = (
    ("CronJob", re.compile(rf"(.+)-\d{{8}}-{_LETTERS}{{5}}")),
    ("Deployment", re.compile(rf"(.+)-{_LETTERS}{{6,10}}-{_LETTERS}{{5}}")),
    ("StatefulSet", re.compile(r"(.+)-\d+")),
    ("DaemonSet", re.compile(rf"(.+)-{_LETTERS}{{5}}")),
)
_RANDOM = re.compile(rf"-{_LETTERS}{{5}}$")
#: What differs by less from what it is now is fine.
_CLOSE = 0.1
_BURST = 2.0

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


def is_made_up(pod: str) -> bool:
    """Return whether a pod's name has random letters, so that no other cluster has a pod of this name."""
    return _RANDOM.search(pod) is not None


@dataclass(frozen=True, slots=True)
class Now:
    """What a container has: millicores and bytes, None where nothing is set."""

    cpu_request: int | None = None
    cpu_limit: int | None = None
    memory_request: int | None = None
    memory_limit: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What is known of a container of a workload, of all its pods.

    Attributes:
        now: None where the cluster was not looked at.
        by_name: whether some pod was joined by the pattern of its name.
        replicas: how many pods the workload has; 1 where the cluster was not looked at.
    """

    workload: Workload
    container: str
    samples: Samples
    now: Now | None = None
    by_name: bool = True
    replicas: int = 1
    circumstances: ContainerCircumstances = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class Enough:
    """How much history is needed for a number: days with samples in a peak window, and samples in all."""

    days: int = 14
    samples: int = 100


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
    def change(self) -> Now | None:
        """The amounts that should be set, None for those that are left alone; None if nothing should change.

        A limit that the rule does not ask for is left alone, unless it is below the new request, which the API server
        would refuse: then it becomes the request.
        """
        return None if self.need is None or self.history.now is None or self.fine else self._set

    @property
    def _set(self) -> Now:
        need, now = self.need, self.history.now or Now()
        assert need is not None
        return Now(
            need.cpu_request,
            _limit(need.cpu_request, need.cpu_limit, now.cpu_limit),
            need.memory_request,
            _limit(need.memory_request, need.memory_limit, now.memory_limit),
        )


def _limit(request: int | None, wanted: int | None, now: int | None) -> int | None:
    is_below = wanted is None and now is not None and request is not None and now < request
    return request if is_below else wanted


def recommend(history: History, rule: Rule, settings: Settings, enough: Enough, *, core: bool) -> Recommendation:
    """Return what a rule recommends, if there is enough history."""
    samples = history.samples.held()
    peaks = samples.daily_peaks("cpu")
    if len(peaks) < max(1, enough.days) or len(samples) < enough.samples:
        found = f"{len(peaks)} days with samples in peak windows and {len(samples)} samples"
        why = f"too little history: {found}; needed are {enough.days} and {enough.samples}"
        return Recommendation(history, None, why, len(peaks))
    need = rule.need(samples, settings, core=core)
    now = history.now or Now()
    highest = max(now.memory_limit or 0, samples.highest("memory"))
    need, remarks = adjusted(need, history.circumstances, now.cpu_limit, highest)
    return Recommendation(history, need, need.why, len(peaks), (*remarks, *_bursts(samples)))


def _bursts(samples: Samples) -> tuple[str, ...]:
    """Return a remark where some days have a CPU peak of twice the usual or more."""
    peaks = samples.steady().daily_peaks("cpu")
    usual = median(peaks.values()) if peaks else 0.0
    high = [peak for peak in peaks.values() if peak >= _BURST * usual > 0]
    return (f"burst: {max(high):.0f}m on {len(high)} of {len(peaks)} days",) if high else ()
