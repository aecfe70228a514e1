"""The simulated scheduler answers as the slow one does, whatever comes and goes in between."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from tests import make
from tests.attack.seeds import examples
from tests.models.kube_scheduler import Kube
from tests.properties.scheduled_clusters import NAMESPACES, nodes, pods

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
        assert answer.known
        assert answer.feasible == len(feasible), (answer.reason, feasible)
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
