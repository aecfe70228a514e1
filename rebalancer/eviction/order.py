"""Which pods should go before which: the descheduler's priority and QoS order."""

from collections.abc import Sequence

from rebalancer.cluster.pod import Pod

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
