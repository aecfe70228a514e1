"""What a strategy asks of the engine, and the descheduler's order in which pods should go."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Cause
from rebalancer.eviction.observation import Observation
from rebalancer.eviction.steering import Destination, Steer
from rebalancer.eviction.verdict import Refused, Verdict


class Outlook(Protocol):
    """What earlier cycles tell of nodes and moves."""

    def not_lasting(self, node: Node, targets: Mapping[str, float]) -> Refused | None:
        """Return a refusal by NotLasting if a node that is over targets now was so in too few of the last cycles."""

    def hours(self, node: Node, low: Mapping[str, float], high: Mapping[str, float]) -> float:
        """Return for how many hours a node that is below `low` or above `high` now is expected to stay so."""

    def price(self, pod: Pod) -> float:
        """Return what moving a pod costs, in points over the target x hours; 0 where no cycle was measured."""


class Evict(Protocol):
    """The questions and requests that a strategy puts to the engine.

    The questions are the descheduler's extension points.  They are answered for the profile the strategy runs in, and
    by the present state of the cluster; so ask for all pods of a list before evicting the first of them.  There is no
    `steer` where replacements are not steered, and no `outlook` where nothing is remembered.
    """

    steer: Steer | None
    outlook: Outlook | None

    def filter_refusal(self, pod: Pod, because: Cause | str | None = None) -> Refused | None:
        """Return what protects the pod (the descheduler's Filter), or None; `because` as in `evictable`."""

    def pre_eviction_refusal(self, pod: Pod, because: Cause | str | None = None) -> Refused | None:
        """Return why it can go nowhere (the descheduler's PreEvictionFilter), or None; `because` as in `evictable`."""

    def evictable(self, pod: Pod, because: Cause | str | None = None) -> bool:
        """Return whether the pod passes both filters; a no is recorded as a refusal only if `because` is given."""

    def each(self, listed: Iterable[tuple[Pod, Cause | str]]) -> None:
        """Ask for the eviction of each of these pods, in this order, with why; raises CycleOver as `__call__`.

        For a list that no verdict changes: with `--max-parallel` several requests are under way at once.
        """

    def first_refusal(self, pods: Sequence[Pod]) -> tuple[Pod, Refused] | None:
        """Return the first of these pods that would be refused if all were asked for in this order, and why.

        Filters, limits, PDBs and replicas are counted as if the earlier ones had gone; nothing is evicted or recorded.
        """

    def try_out(self, pod: Pod) -> Refused | None:
        """Return why a pod would be refused; if it would not, it counts as gone until the present scope ends."""

    def resting(self, pod: Pod, rest: timedelta) -> Refused | None:
        """Return a refusal by Newcomer if the pod started within this time, unless with its owner's first pods."""

    def with_owner_limit(self) -> "Evict":
        """Return this with one more rule: an owner without a PDB loses few of its pods in a cycle.

        That is at most a quarter of its pods, and at least one, over all strategies; more are refused by OwnerShare.
        """

    def refuse(self, pod: Pod, because: Cause | str, refusal: Refused) -> None:
        """Record that a pod which should go stays because of a rule of the strategy."""

    def emptied(self, node: Node) -> None:
        """Tell that a node has lost all pods that had to go; where the run holds nodes it is kept empty for a while."""

    def warn(self, what: Cause | str) -> None:
        """Warn the person who runs the program; a repeated warning counts once."""

    def count(self, counts: Mapping[str, int], **figures: float) -> None:
        """Count what was looked at, like `{"pods": 214, "older": 0}`, so that a report can say why nothing was done.

        Repeated counts add up; figures are limits, like an age in seconds.  Their words: `rebalancer.report.document`.
        """

    def observe(self, observation: Observation) -> None:
        """Add to what was looked at."""

    def __call__(self, pod: Pod, because: Cause | str, destination: Destination | None = None) -> Verdict:
        """Ask for the eviction of a pod and return the verdict; `granted` says whether it goes.

        A granted pod leaves the cluster at once.  `because` has details that a person can check; text becomes the cause
        `Custom`.  `destination` is where its replacement will likely run, if the strategy looks at that.  Raises
        CycleOver if the total limit is used up; it ends the strategy, which must not catch it.
        """


#: Whether there is a priority; the priority; QoS; whether the pod prefers no eviction.
EvictionClass = tuple[bool, int, int, bool]

_QOS_ORDER = ("BestEffort", "Burstable", "Guaranteed")


def eviction_class(pod: Pod) -> EvictionClass:
    """Return how costly it is to evict a pod: pods of a lower class go before pods of a higher one."""
    priority = pod.spec.priority
    qos = _QOS_ORDER.index(pod.qos) if pod.qos in _QOS_ORDER else len(_QOS_ORDER)
    return (priority is not None, priority or 0, qos, pod.prefer_no_eviction)


def cheapest_first(pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods in the order in which they should go.

    Pods without a priority first, then low before high, BestEffort before Burstable before Guaranteed, pods that prefer
    no eviction last; ties by age, oldest first, then namespace and name.
    """
    return sorted(pods, key=lambda pod: (eviction_class(pod), pod.age_order))
