"""RemovePodsViolatingInterPodAntiAffinity as strategies.md 6 tells it, with the terms as Kubernetes reads them.

For `selection: fewest` the model tries all sets of pods.
"""

from collections.abc import Iterable
from itertools import combinations

import msgspec

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from tests.models.placement import World, cheapest_first, importance, selected


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


Conflicts = set[frozenset[Pod]]


def conflicts(world: World) -> Conflicts:
    """All pairs of pods that stay and must not be next to each other."""
    staying = [pod for node in world.nodes for pod in world.active(node) if not pod.terminating]
    return {frozenset((pod, peer)) for pod in staying for peer in staying if breaks(world, pod, peer)}


def breaks(world: World, pod: Pod, peer: Pod) -> bool:
    return any(violated(world, pod, peer, term) for term in pod.spec.anti_affinity)


def may_go(world: World, pod: Pod) -> bool:
    """What the filters let go and breaks a term of its own, or is welcome elsewhere."""
    if not (world.passes_filter(pod) and world.passes_pre_eviction_filter(pod)):
        return False
    peers = [peer for node in world.nodes for peer in world.active(node) if not peer.terminating]
    return any(breaks(world, pod, peer) for peer in peers) or any(
        welcome(world, pod, node) for node in world.nodes if node.name != pod.node
    )


def welcome(world: World, pod: Pod, node: Node) -> bool:
    replacement = msgspec.structs.replace(pod, name=f"{pod.name}-again", node=node.name)
    residents = [other for each in world.nodes for other in world.active(each) if other is not pod]
    return world.fits(pod, node) and not any(breaks(world, other, replacement) for other in residents)


def best(world: World) -> set[str]:
    """The fewest, then the cheapest pods whose going ends all conflicts of pods of which one may go."""
    pairs = conflicts(world)
    free = [pod for pod in {pod for pair in pairs for pod in pair} if may_go(world, pod)]
    curable = [pair for pair in pairs if not pair.isdisjoint(free)]
    order = {pod: place for place, pod in enumerate(cheapest_first(list({pod for pair in pairs for pod in pair})))}
    for number in range(len(free) + 1):
        cures = [set(some) for some in combinations(free, number) if all(not pair.isdisjoint(some) for pair in curable)]
        if cures:
            return {str(pod) for pod in min(cures, key=lambda some: dearest(some, order))}
    raise AssertionError("all of them together end all conflicts that can be ended")


def dearest(pods: Iterable[Pod], order: dict[Pod, int]) -> tuple[object, ...]:
    """The classes of the pods, the costliest first, and then their places."""
    return sorted(map(importance, pods), reverse=True), sorted((order[pod] for pod in pods), reverse=True)
