"""Where kube-scheduler puts replacements, soon and later, told one after the other: slow and obvious on purpose."""

import msgspec

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import LabelSelector
from tests.models.kube_scheduler import Kube
from tests.models.placement import World


def likely(world: World, pod: Pod, gone: list[Pod], services: list[tuple[str, LabelSelector]]) -> list[Node]:
    """The nodes that may win while pods that went still end, or when they are gone; none if there may be none."""
    others = [each for node in world.nodes for each in world.active(node) if each is not pod]
    ending = [msgspec.structs.replace(each, terminating=True) for each in gone]
    own = msgspec.structs.replace(pod, terminating=True)
    states = [[*others, own], [*others, own, *ending]]
    if any(owner.controller and owner.kind == "Job" for owner in pod.owners):  # it may wait for the end
        states += [others, [*others, *ending]]
    found = [Kube(world.nodes, pods, services=services).winners(pod) for pods in states]
    return [node for node in world.nodes if node.name in set.union(*found)] if all(found) else []
