"""RemovePodsViolatingInterPodAntiAffinity as strategies.md 6 tells it, with the terms as Kubernetes reads them."""

from rebalancer.cluster.pod import Pod, PodAffinityTerm
from tests.models.placement import World, cheapest_first, selected


def evictions(world: World) -> list[str]:
    """Return the pods that go, in order; the world loses them."""
    gone = []
    for node in world.nodes:
        for pod in cheapest_first(world.active(node)):
            peers = [peer for each in world.nodes for peer in world.active(each)]
            if (
                any(violated(world, pod, peer, term) for term in pod.spec.anti_affinity for peer in peers)
                and world.passes_filter(pod)
                and world.passes_pre_eviction_filter(pod)
            ):
                world.pods.remove(pod)
                gone.append(str(pod))
    return gone


def violated(world: World, pod: Pod, peer: Pod, term: PodAffinityTerm) -> bool:
    if peer.name == pod.name or not in_namespaces(world, pod, peer, term):
        return False
    if not selected(term.selector, peer.labels):
        return False
    if any(key in pod.labels and peer.labels.get(key) != pod.labels[key] for key in term.match_label_keys):
        return False
    if any(key in pod.labels and peer.labels.get(key) == pod.labels[key] for key in term.mismatch_label_keys):
        return False
    mine, theirs = world.node(pod), world.node(peer)
    if mine.name == theirs.name:
        return True
    key = term.topology_key
    return key in mine.labels and key in theirs.labels and mine.labels[key] == theirs.labels[key]


def in_namespaces(world: World, pod: Pod, peer: Pod, term: PodAffinityTerm) -> bool:
    if not term.namespaces and term.namespace_selector is None:
        return peer.namespace == pod.namespace
    if peer.namespace in term.namespaces:
        return True
    if term.namespace_selector is None:
        return False
    if not term.namespace_selector.requirements:
        return True
    known = world.namespaces or {}
    return peer.namespace in known and selected(term.namespace_selector, known[peer.namespace])
