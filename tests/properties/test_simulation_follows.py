"""The simulation on the cluster answers as one built anew would, whatever was tried and taken back."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulation import Simulation
from tests import make
from tests.properties.scheduled_clusters import NAMESPACES, nodes, pods
from tests.properties.test_simulated_scheduler import READ

KINDS = ("ReplicaSet", "StatefulSet", "Job")
AVOID = {"n0": (make.taint("avoid=hot:PreferNoSchedule"), make.taint("avoid=more:PreferNoSchedule"))}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Cluster, list[Pod]]:
    """A few nodes with pods of owners, bound anywhere."""
    places = [draw(nodes(index)) for index in range(draw(st.integers(1, 4)))]
    names = st.sampled_from([node.name for node in places])
    crowd = [
        draw(pods(f"p{number}", node=draw(names), owners=(make.owner("web", draw(st.sampled_from(KINDS))),)))
        for number in range(draw(st.integers(1, 6)))
    ]
    return make.cluster(places, crowd, namespaces=NAMESPACES, scheduler_inputs=READ), crowd


def answers(simulation: Simulation, crowd: list[Pod]) -> list[Any]:
    """All that is answered, with the scores of the nodes that may win; and the same under other taints."""
    found = [_with_scores(simulation, pod) for pod in crowd]
    with simulation.tainted(AVOID):
        return [found, [_with_scores(simulation, pod) for pod in crowd]]


def _with_scores(simulation: Simulation, pod: Pod) -> Any:
    answer = simulation.ask(pod)
    return answer, [dict(answer.scores(name)) for name in answer.nodes]


def step(cluster: Cluster, crowd: list[Pod], data: st.DataObject) -> None:
    """Remove, place or evict a pod, ask for one, or do some of that in a scope."""
    what = data.draw(st.sampled_from(("remove", "place", "evict", "ask", "scope")))
    pod = data.draw(st.sampled_from(crowd))
    expected = {each for node in cluster.nodes for each in cluster.expected_on(node)}
    if what == "remove" and cluster.contains(pod):
        cluster.remove(pod)
    elif what == "evict" and cluster.contains(pod):
        cluster.evicted(pod)
    elif what == "place" and pod not in expected and cluster.nodes:
        cluster.place(pod, data.draw(st.sampled_from(cluster.nodes)))
    elif what == "ask":
        answers(cluster.index(Simulation), [pod])
    elif what == "scope":
        scope(cluster, crowd, data)


def scope(cluster: Cluster, crowd: list[Pod], data: st.DataObject) -> None:
    with cluster.scope() as attempt:
        for _ in range(data.draw(st.integers(0, 4))):
            step(cluster, crowd, data)
        if data.draw(st.booleans()):
            attempt.keep()


@given(clusters(), st.data())
def test_after_any_steps_the_answers_are_those_of_one_built_anew(built: tuple[Cluster, list[Pod]], data: Any) -> None:
    """Answers, scores, and both under soft taints; what stands in for templates is the pods themselves."""
    cluster, crowd = built
    cluster.index(Simulation)
    for _ in range(data.draw(st.integers(0, 8))):
        step(cluster, crowd, data)

    assert answers(cluster.index(Simulation), crowd) == answers(Simulation(cluster), crowd)
