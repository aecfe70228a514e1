"""The picture of the future is what a cluster built anew would be, whatever was tried and taken back."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.balancing.usage import requested
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.eligibility import EligibleNodes
from tests import make
from tests.properties.clusters import NODES, pods


class Future:
    """A cluster whose indices all exist from the start, and a plain list of what should be there."""

    def __init__(self, nodes: list[Node], crowd: list[Pod], **fields: Any) -> None:
        self.nodes, self.crowd = nodes, crowd
        self.cluster = make.cluster(nodes, crowd, **fields)
        self.others = self.cluster.index(EligibleNodes).among(nodes)
        self.sources = requested(self.cluster, ["cpu"]).sources(self.cluster)
        self.present = list(crowd)  # the pods that are there
        self.gone: list[Pod] = []  # those that were evicted; nothing brings them back
        self.expected: list[tuple[Pod, Node]] = []  # pods that were placed, with their nodes, in order

    def step(self, draw: st.DataObject) -> None:
        """Remove a pod, place one that is not expected anywhere, evict one, ask, or do some of that in a scope."""
        what = draw.draw(st.sampled_from(["remove", "place", "evict", "ask", "scope"]))
        waiting = [pod for pod in self.crowd if pod.active and pod not in [each for each, _ in self.expected]]
        if what in ("remove", "evict") and self.present:
            self.take(draw.draw(st.sampled_from(self.present)), for_good=what == "evict")
        elif what == "place" and waiting:
            pod, node = draw.draw(st.sampled_from(waiting)), draw.draw(st.sampled_from(self.nodes))
            self.expected.append((pod, node))
            self.cluster.place(pod, node)
        elif what == "ask":
            self.ask()
        elif what == "scope":
            self.scope(draw)

    def take(self, pod: Pod, *, for_good: bool) -> None:
        self.present.remove(pod)
        if for_good:
            self.gone.append(pod)
            self.cluster.evicted(pod)
        else:
            self.cluster.remove(pod)

    def scope(self, draw: st.DataObject) -> None:
        present, expected = list(self.present), list(self.expected)
        with suppress(InterruptedError), self.cluster.scope() as scope:
            for _ in range(draw.draw(st.integers(0, 5))):
                self.step(draw)
            if draw.draw(st.booleans()):
                scope.keep()
            elif draw.draw(st.booleans()):
                raise InterruptedError
        if not scope.kept:
            self.present = [pod for pod in present if pod not in self.gone]
            self.expected = expected

    def ask(self) -> None:
        """Let what is remembered be remembered."""
        for pod in self.crowd:
            self.others.any_for(pod)

    def anew(self) -> Cluster:
        built = make.cluster(self.nodes, self.present)
        for pod, node in self.expected:
            built.place(pod, node)
        return built


def picture(cluster: Cluster, nodes: Iterable[Node], crowd: Iterable[Pod]) -> dict[str, Any]:
    """All that can be asked of a cluster."""
    eligible = cluster.index(EligibleNodes)
    return {
        "pods": {node.name: cluster.pods_on(node) for node in nodes},
        "residents": {node.name: cluster.residents(node) for node in nodes},
        "used": {node.name: {name: each for name, each in cluster.used(node).items() if each} for node in nodes},
        "siblings": {owner.uid: cluster.siblings(owner.uid) for pod in crowd for owner in pod.owners},
        "fits": {(str(pod), node.name): eligible.why_not(pod, node) for pod in crowd for node in nodes},
        "others": {str(pod): eligible.among(list(nodes)).any_for(pod) for pod in crowd},
    }


@given(NODES, pods(), st.data())
def test_after_any_steps_it_is_as_if_the_cluster_were_built_so(nodes, crowd, data):
    """Removals, arrivals and evictions, in scopes within scopes, left by errors too; all indices were there first."""
    future = Future(nodes, crowd)
    for _ in range(data.draw(st.integers(0, 8))):
        future.step(data)

    assert picture(future.cluster, nodes, crowd) == picture(future.anew(), nodes, crowd)
    assert {pod: future.others.any_for(pod) for pod in crowd} == {
        pod: any(future.cluster.index(EligibleNodes).fits(pod, node) for node in nodes if node.name != pod.node)
        for pod in crowd
    }
    assert [each.used for each in future.sources] == [each.used for each in requested_anew(future)]


def requested_anew(future: Future) -> Any:
    """What the pods that are there request; nothing falls for those that are expected."""
    present = make.cluster(future.nodes, future.present)
    return requested(present, ["cpu"]).destinations(present)
