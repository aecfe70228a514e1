"""Which pods keep a node busy: those that have to go before the node is empty."""

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod


def occupants(cluster: Cluster, node: Node) -> list[Pod]:
    """Return the active pods of a node that do not stay behind, the oldest first."""
    return [pod for pod in cluster.active_pods_on(node) if not stays_behind(pod)]


def stays_behind(pod: Pod) -> bool:
    """Return whether a pod counts for nothing when its node is removed: it ends with the node, or is ending already."""
    of_daemon_set = any(owner.kind == "DaemonSet" for owner in pod.owners)
    return pod.terminating or pod.mirror or pod.static or of_daemon_set
