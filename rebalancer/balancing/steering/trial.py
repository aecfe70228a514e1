"""Moves tried out in the one picture of the future, and taken back."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod

#: A pod, and the node where its replacement is expected.
Expected = tuple[Pod, str]


@contextmanager
def made(cluster: Cluster, moves: Iterable[Expected]) -> Iterator[None]:
    """Let these moves be made, all of them, for as long as this lasts."""
    with cluster.scope():
        for pod, name in moves:
            node = cluster.node(name)
            assert node is not None
            cluster.remove(pod)
            cluster.place(pod, node)
        yield
