"""RemovePodsViolatingNodeAffinity as strategies.md 7 tells it; a pod that went is not there for the next type."""

from collections.abc import Iterable

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from tests.models.placement import World, matches_node, term_matches


def evictions(world: World, types: Iterable[str]) -> list[str]:
    """Return the pods that go, in order; the world loses them."""
    gone = []
    for kind in types:
        for node in world.nodes:
            listed = [
                pod
                for pod in world.active(node)
                if world.passes_filter(pod) and world.passes_pre_eviction_filter(pod) and misplaced(world, kind, pod)
            ]
            for pod in listed:
                world.pods.remove(pod)
                gone.append(str(pod))
    return gone


def misplaced(world: World, kind: str, pod: Pod) -> bool:
    here = world.node(pod)
    if not any(world.fits(pod, node) for node in world.nodes):
        return False
    if kind == "requiredDuringSchedulingIgnoredDuringExecution":
        return pod.spec.node_terms is not None and not matches_node(pod.spec, here)
    if kind == "preferredDuringSchedulingIgnoredDuringExecution":
        return max(0, *(weight(pod, node) for node in world.nodes)) > weight(pod, here) and pod.spec.preferred != ()
    return False


def weight(pod: Pod, node: Node) -> int:
    return sum(each.weight for each in pod.spec.preferred if term_matches(each.term, node))
