"""Which version of Kubernetes a cluster runs; some rules of the scheduler depend on it."""

import re
from collections.abc import Iterable

from rebalancer.cluster.node import Node

NEWEST_MINOR = 36

_KUBERNETES = re.compile(r"v?1\.(\d+)\b")


def newest_minor(nodes: Iterable[Node]) -> int:
    """Return the minor version (1.x) of the newest kubelet; the newest version known if no kubelet reports one.

    Kubelets may lag behind the scheduler, but are never ahead of the API server.
    """
    versions = (_KUBERNETES.match(node.kubelet_version) for node in nodes)
    return max((int(version[1]) for version in versions if version), default=NEWEST_MINOR)
