"""Moves tried out in the cluster's picture of the future, and taken back."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod

#: A pod, and the node where its replacement is expected.
Expected = tuple[Pod, str]


@contextmanager
def made(cluster: Cluster, moves: Iterable[Expected]) -> Iterator[None]:
    """Make all these moves, and take them back at the end of this context."""
    with cluster.scope():
        for pod, name in moves:
            node = cluster.node(name)
            assert node is not None
            cluster.remove(pod)
            cluster.place(pod, node)
        yield
