"""Whether a pod could run on a node, and if not, why: the descheduler's NodeFit.

Checked in this order: the node is not cordoned; node selector and required node affinity; hard taints; the pod's own
required anti-affinity against the pods on that very node; room by requests, which is not asked on the pod's own node.
Not looked at: pod affinity, the residents' anti-affinity, spread, volumes, host ports, preferences.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm, PodSpec
from rebalancer.cluster.resources import PODS, describe
from rebalancer.cluster.taints import untolerated

_CAUSES_SHOWN = 3


def why_placement_fails(spec: PodSpec, node: Node) -> str:
    """Return why no pod with this spec may be placed on the node whatever runs there; empty if it may."""
    if node.unschedulable:
        return "cordoned"
    if not spec.selects_node(node.labels, node.name):
        return "node selector or affinity does not match"
    taint = untolerated(spec.tolerations, node.taints)
    return f"taint {taint} is not tolerated" if taint else ""


def why_too_full(spec: PodSpec, free: Callable[[str], int]) -> str:
    """Return which request finds no room, given what is free by resource name; empty if all do."""
    if free(PODS) < 1:
        return "no free pod slot"
    for name, request in spec.requests.items():
        if request > free(name):
            return f"insufficient {name} ({describe(name, request)} requested, {describe(name, free(name))} free)"
    return ""


def why_repelled(pod: Pod, node: Node, residents: Iterable[Pod]) -> str:
    """Return which resident the pod's own required anti-affinity keeps apart from it; empty if none."""
    terms = [term for term in pod.spec.anti_affinity if term.topology_key in node.labels]
    if not terms:
        return ""
    for resident in residents:
        if resident.name != pod.name and any(_selects(term, pod, resident) for term in terms):
            return f"anti-affinity against {resident}"
    return ""


def _selects(term: PodAffinityTerm, pod: Pod, other: Pod) -> bool:
    namespaces = term.namespaces or (pod.namespace,)
    return other.namespace in namespaces and term.selector is not None and term.selector.matches(other.labels)


def tally(causes: Iterable[str]) -> str:
    """Return the most frequent causes with their numbers, like `3 x cordoned, 1 x insufficient cpu`.

    What a cause says in parentheses is about one node, and so left out.
    """
    counts = Counter(cause.partition(" (")[0] for cause in causes)
    shown = [f"{count} x {cause}" for cause, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
    more = ["..."] if len(shown) > _CAUSES_SHOWN else []
    return ", ".join(shown[:_CAUSES_SHOWN] + more)
