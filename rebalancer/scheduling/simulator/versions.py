"""Which version of Kubernetes a cluster is of: rules of the scheduler change with it."""

import re
from collections.abc import Iterable

from rebalancer.cluster.node import Node
from rebalancer.scheduling.simulator.profile import NEWEST_MINOR

_KUBERNETES = re.compile(r"v?1\.(\d+)\b")


def newest_minor(nodes: Iterable[Node]) -> int:
    """Return the minor version of Kubernetes 1 that the newest kubelet is of; the newest known if none tells.

    Kubelets may lag behind the scheduler, but are never ahead of the API server.
    """
    versions = (_KUBERNETES.match(node.kubelet_version) for node in nodes)
    return max((int(version[1]) for version in versions if version), default=NEWEST_MINOR)
