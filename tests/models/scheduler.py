"""Where kube-scheduler puts a pod by its default scores, told one after the other: slow and obvious on purpose."""

from fractions import Fraction
from math import log

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec
from tests.models.placement import World

UNSAID = {"cpu": 100, "memory": 200 * 1024 * 1024}  # what it assumes of a pod that requests nothing


def likely(world: World, pod: Pod) -> list[Node]:
    """The nodes of the best score, as the scheduler counts."""
    nodes = [node for node in world.nodes if world.fits(pod, node)]
    raw = {node.name: round(siblings(world, pod, node) * log(len(nodes) + 2) + 2) for node in nodes}
    most, least = max(raw.values()), min(raw.values())
    scores = {
        node.name: by_requests(world, pod, node) + 2 * (100 * (most + least - raw[node.name]) // most) for node in nodes
    }
    return [node for node in nodes if scores[node.name] == max(scores.values())]


def siblings(world: World, pod: Pod, node: Node) -> int:
    others = [each for each in world.active(node) if each is not pod]
    return len([each for each in others if pod.controller and each.controller == pod.controller])


def by_requests(world: World, pod: Pod, node: Node) -> int:
    """LeastAllocated and BalancedAllocation of the node with the pod on it, as since Kubernetes 1.36."""
    others = [each.spec for each in world.active(node) if each is not pod]
    offered = {name: node.allocatable[name] for name in UNSAID}
    assumed = {
        name: sum(spec.requests.get(name, 0) or UNSAID[name] for spec in [*others, pod.spec]) for name in offered
    }
    least = sum(max(offered[name] - assumed[name], 0) * 100 // offered[name] for name in offered) // 2
    if not any(pod.spec.requests.get(name) for name in offered):
        return least
    return least + 50 + (50 + balance(node, [*others, pod.spec]) - balance(node, others)) // 2


def balance(node: Node, specs: list[PodSpec]) -> int:
    said = {name: sum(spec.requests.get(name, 0) for spec in specs) for name in UNSAID}
    cpu, memory = (min(said[name] / node.allocatable[name], 1.0) for name in UNSAID)
    return int((1 - abs(cpu - memory) / 2) * 100)  # in floating point, as the scheduler does


def requested(world: World, node: Node) -> Fraction:
    """The mean of cpu and memory in percent."""
    return sum((requested_by(pod, node) for pod in world.active(node)), Fraction(0))


def requested_by(pod: Pod, node: Node) -> Fraction:
    """The same of one pod."""
    shares = [Fraction(pod.spec.requests.get(name, 0) or UNSAID[name], node.allocatable[name]) for name in UNSAID]
    return 100 * sum(shares, Fraction(0)) / 2
