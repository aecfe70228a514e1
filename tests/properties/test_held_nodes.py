"""Nodes that are kept empty: whatever the cluster, nothing fills them, and what is emptied is held."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.eviction.steering import Held, Steer
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests import make
from tests.measured import KEYS, PACKS
from tests.properties.measured_clusters import scenes, sparse_scenes
from tests.strategies.test_held_nodes import UNTIL, held


def some(data, scene):
    return data.draw(st.sets(st.sampled_from([each.name for each in scene.nodes])))


STEERS = st.sampled_from((None, Steer(1.5, KEYS)))


@given(scenes(), STEERS, st.data())
def test_relief_expects_no_pod_on_a_held_node(scene, steer, data):
    names = some(data, scene)
    strategy = LowNodeUtilization(LowNodeUtilizationArgs.model_validate(scene.args))
    ledger = make.decide(held(scene.cluster(), *names), strategy, steer=steer)

    assert not names & {name for each in ledger.evictions if each.destination for name in each.destination.nodes}


@given(sparse_scenes(), STEERS, st.data())
def test_compaction_expects_none_there_and_holds_what_it_empties(scene, steer, data):
    """Those nodes that have lost all pods that had to go, and no others."""
    names, more = some(data, scene), {} if steer else {"scheduler_configuration": PACKS}
    on = held(scene.cluster(**more), *names)
    strategy = HighNodeUtilization(HighNodeUtilizationArgs.model_validate(scene.args))
    ledger = make.decide(on, strategy, steer=steer, hold=partial(Held, until=UNTIL))

    emptied = {each.pod.node for each in ledger.evictions}
    assert not (names | emptied) & {each.destination.nodes[0] for each in ledger.evictions}
    assert {each.node for each in ledger.held} == emptied
    assert on.held == names | emptied
