"""The simulated scheduler answers as the slow one does, and as one built anew, whatever comes and goes in between."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import HOSTNAME, State
from tests import make
from tests.attack.seeds import examples
from tests.models.kube_scheduler import Kube
from tests.properties.scheduled_clusters import NAMESPACES, nodes, pods
from tests.properties.test_cluster_scopes import Future

SERVICES = {("blue", "web"): make.selector(app="a"), ("green", "none"): None}
READ = SchedulerInputs(
    services=SERVICES, replica_sets={}, replication_controllers={}, stateful_sets={}, claims={}, volumes={}
)


@examples(20)  # each places up to eight pods, and the slow scheduler is slow
@given(st.data())
def test_every_placement_is_the_slow_schedulers(data: st.DataObject) -> None:
    """Feasible nodes, every plugin's score and the winners; pods are placed one by one, and some leave again."""
    slow = Kube(
        [data.draw(nodes(index)) for index in range(data.draw(st.integers(1, 5)))],
        [],
        NAMESPACES,
        [(namespace, selector) for (namespace, _), selector in SERVICES.items() if selector],
    )
    state = State(make.snapshot(slow.nodes, [], namespaces=NAMESPACES), READ)
    simulator = Simulator(state, profiles)
    for number in range(data.draw(st.integers(1, 8))):
        pod = data.draw(pods(f"p{number}"))
        answer = simulator.ask(pod)

        feasible = [node.name for node in slow.feasible(pod)]
        assert not answer.unknown
        assert list(answer.feasible_nodes()) == sorted(feasible), answer.reason
        assert bool(answer.reason) == (not feasible)
        if not feasible:
            continue
        expected = slow.scores(pod)
        for name in feasible:
            assert dict(answer.scores(name)) == {plugin: scores[name] for plugin, scores in expected.items()}
        assert set(answer.nodes) == slow.winners(pod)

        home = data.draw(st.sampled_from(sorted(feasible)))
        placed = msgspec.structs.replace(pod, node=home)
        slow.pods.append(placed)
        state.place(placed, home)
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(slow.pods))
            slow.pods.remove(gone)
            state.remove(gone, gone.node)


NAMES = ("n1", "n2", "n3")
NODES = [make.node(name, cpu="4", memory="8Gi", labels={HOSTNAME: name}) for name in NAMES]


def some_pods(data: st.DataObject, kind: str) -> list[Pod]:
    """Some pods of two owners on the nodes, one owner's apart from each other."""
    apart = (PodAffinityTerm(HOSTNAME, make.selector(app="a")),)
    owners = [data.draw(st.sampled_from("ab")) for _ in range(data.draw(st.integers(0, 4)))]
    return [
        make.pod(
            f"{kind}{number}",
            node=data.draw(st.sampled_from(NAMES)),
            cpu=data.draw(st.sampled_from(("100m", "2"))),
            labels={"app": owner},
            owners=owner,
            anti_affinity=apart if owner == "a" else (),
        )
        for number, owner in enumerate(owners)
    ]


def answers_of(state: State) -> Any:
    simulator = Simulator(state, profiles)
    fields: tuple[dict[str, Any], ...] = ({"labels": {"app": "a"}}, {"labels": {"app": "b"}, "cpu": "2"})
    found = [simulator.ask(make.pod("p", node="", **each)) for each in fields]
    return [(each, [each.scores(name) for name in NAMES]) for each in found]


def fresh(running: list[Pod]) -> Any:
    return answers_of(State(make.snapshot(NODES, running, namespaces={"default": {}}), READ))


@given(st.data())
def test_what_comes_to_one_does_not_come_to_the_other(data: st.DataObject) -> None:
    running, more, others = (some_pods(data, kind) for kind in ("r", "m", "o"))
    state = State(make.snapshot(NODES, running, namespaces={"default": {}}), READ)
    if data.draw(st.booleans()):
        answers_of(state)  # caches are filled by then
    copied = state.copy()
    gone = running[: data.draw(st.integers(0, len(running)))]
    for pod in more:
        copied.place(pod, pod.node)
    for pod in others:
        state.place(pod, pod.node)
    for pod in gone:
        state.remove(pod, pod.node)

    assert answers_of(copied) == fresh([*running, *more])
    assert answers_of(state) == fresh([*(pod for pod in running if pod not in gone), *others])


KINDS = ("ReplicaSet", "StatefulSet", "Job")
AVOID = {"n0": (make.taint("avoid=hot:PreferNoSchedule"), make.taint("avoid=more:PreferNoSchedule"))}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """A few nodes with pods of owners, bound anywhere."""
    places = [draw(nodes(index)) for index in range(draw(st.integers(1, 4)))]
    names = st.sampled_from([node.name for node in places])
    crowd = [
        draw(pods(f"p{number}", node=draw(names), owners=(make.owner("web", draw(st.sampled_from(KINDS))),)))
        for number in range(draw(st.integers(1, 6)))
    ]
    return places, crowd


def answers(simulation: Simulation, crowd: list[Pod]) -> list[Any]:
    """All that is answered, with the scores of the nodes that may win; and the same under other taints."""
    found = [_with_scores(simulation, pod) for pod in crowd]
    with simulation.tainted(AVOID):
        return [found, [_with_scores(simulation, pod) for pod in crowd]]


def _with_scores(simulation: Simulation, pod: Pod) -> Any:
    answer = simulation.ask(pod)
    return answer, [dict(answer.scores(name)) for name in answer.nodes]


class Simulated(Future):
    def ask(self) -> None:
        answers(self.cluster.index(Simulation), self.crowd[:2])


@given(clusters(), st.data())
def test_after_any_steps_the_answers_are_those_of_one_built_anew(
    built: tuple[list[Node], list[Pod]], data: Any
) -> None:
    """Answers, scores, and both under soft taints; what stands in for templates is the pods themselves."""
    future = Simulated(*built, namespaces=NAMESPACES, scheduler_inputs=READ)
    cluster, crowd = future.cluster, future.crowd
    cluster.index(Simulation)
    for _ in range(data.draw(st.integers(0, 8))):
        future.step(data)

    assert answers(cluster.index(Simulation), crowd) == answers(Simulation(cluster), crowd)
