"""HighNodeUtilization with `selection: compaction` and steering: it works with a scheduler that spreads pods."""

from contextlib import nullcontext

import pytest

from rebalancer.balancing.steering.foresight import Foresight
from rebalancer.cluster.pod import Placement
from rebalancer.eviction.causes import Code
from rebalancer.eviction.steering import HOT, MIDDLING, Held, Steer
from rebalancer.eviction.verdict import GRANTED, Unknown
from rebalancer.report.words import text
from tests import make
from tests.measured import KEYS, Landed, cluster, low, node, pod
from tests.strategies.test_high_node_utilization_compaction import SOURCE, compaction
from tests.strategies.test_steered_relief import Closing, waves


def steered(on, steer=None, hold=None, sink=None, **args):
    return make.decide(on, compaction(45, **args), steer=steer or Steer(1.5, KEYS), hold=hold, sink=sink)


def scene(*levels, fields=None, pods=(), snapshot=None, **nodes):
    """n1 and so on use so many points of cpu, by one pod each: p1 and so on."""
    names = [f"n{number}" for number in range(1, len(levels) + 1)]
    own = [
        pod(f"p{name[1:]}", on=name, cpu=f"{level}00m", memory=None, **(fields or {}).get(name, {}))
        for name, level in zip(names, levels, strict=True)
        if level
    ]
    usage = {f"p{name[1:]}": level for name, level in zip(names, levels, strict=True)}
    more = {each.name: 5 for each in pods}
    return cluster(
        [node(name, **nodes.get(name, {})) for name in names], [*own, *pods], usage | more, snapshot=snapshot
    )


def lands(wave):
    return {move.pod.name: move.expected for move in wave.moves}


def test_a_scheduler_that_spreads_is_led_to_the_fullest_nodes():
    """Left alone it would put the pod of n1 back; n1 and n2 are emptied onto n4, which has no room for n3."""
    assert "p1" in make.refused(make.decide(scene(10, 20, 40, 65), compaction(45)))
    assert [lands(wave) for wave in waves(steered(scene(10, 20, 40, 65)))] == [{"p1": "n4"}, {"p2": "n4"}]


def test_nodes_to_be_empty_carry_two_taints_and_those_that_should_not_receive_one():
    """Also a node that was empty before; and n1 once it is empty."""
    first, second = waves(steered(scene(10, 20, 40, 65, 0)))

    assert first.avoid == {"n1": HOT, "n2": MIDDLING, "n3": MIDDLING, "n5": HOT}
    assert second.avoid == {"n1": HOT, "n2": HOT, "n3": MIDDLING, "n5": HOT}


def test_more_nodes_receive_where_one_is_not_enough():
    """Within 70 % n5 has room for 10 points and n4 for 20; the pods of n1 use 20."""
    pods = [pod("a", on="n1", cpu="500m", memory=None), pod("b", on="n1", cpu="500m", memory=None)]
    (wave,) = waves(steered(scene(10, 66, 67, 50, 60, pods=pods), metricsUtilization=SOURCE))

    assert set(lands(wave).values()) == {"n4", "n5"}
    assert wave.avoid == {"n1": HOT, "n2": MIDDLING, "n3": MIDDLING}


def test_a_node_on_which_a_pod_could_not_run_is_not_named():
    """Of n4 and n5, which receive, one has a taint that only b tolerates."""
    pods = [pod("a", on="n1", cpu="500m", memory=None), pod("b", on="n1", cpu="500m", memory=None, tolerations=["gpu"])]
    on = scene(10, 66, 67, 50, 60, pods=pods, n5={"taints": ["gpu"]})
    (wave,) = waves(steered(on, metricsUtilization=SOURCE))

    assert {move.pod.name: set(move.likely) for move in wave.moves} == {"p1": {"n4"}, "a": {"n4"}, "b": {"n4", "n5"}}


def test_where_the_scheduler_looks_at_a_part_of_the_nodes_more_receive():
    """Of 120 nodes it scores about a hundred: a single receiver might not be among them."""
    found = waves(steered(scene(*[10] * 120)))

    assert 120 - len(found[0].avoid) > 1
    assert len(found) >= 60


def test_where_one_taint_is_not_enough_all_others_carry_two():
    """Four siblings on n3 count for more than one taint on n2; there is no room on n4, where the fifth is."""
    web = {"owners": "web", "labels": {"app": "web"}}
    siblings = [pod(f"w{number}", on="n3", memory=None, **web) for number in range(4)]
    siblings.append(pod("w4", on="n4", memory=None, **web))
    found = waves(steered(scene(10, 20, 46, 92, fields={"n1": web}, pods=siblings)))

    assert lands(found[0]) == {"p1": "n3"}
    assert found[0].avoid == {"n1": HOT, "n2": HOT, "n4": HOT}


def test_replicas_do_not_all_come_to_stand_on_one_node():
    """The owner's other pod is on n3, which would receive first; so n2 receives as well, and takes this one."""
    web = {"owners": "web", "labels": {"app": "web"}}
    found = waves(steered(scene(10, 50, 60, fields={"n1": web, "n3": web})))
    alone = steered(scene(10, 60, fields={"n1": web, "n2": web}))

    assert [lands(wave) for wave in found] == [{"p1": "n2"}]
    assert waves(alone) == []
    (kept,) = alone.refusals
    assert text(kept.verdict.cause) == (
        "no destination: all pods of its owner would be on n2; it keeps n1, which is emptied whole or not at all"
    )


def test_replicas_that_stand_on_one_node_may_do_so_on_another():
    web = {"owners": "web", "labels": {"app": "web"}}
    budget = {"budgets": (make.pdb("web", 2),)}
    pods = [pod("w2", on="n1", memory=None, **web)]
    (wave,) = waves(steered(scene(10, 60, fields={"n1": web}, pods=pods, snapshot=budget)))

    assert lands(wave) == {"p1": "n2", "w2": "n2"}


def test_what_has_received_receives_first():
    """n4 before n3 as the last to be emptied, and again as it has received a pod."""
    found = waves(steered(scene(10, 15, 20, 25)))

    assert [set(lands(wave).values()) for wave in found] == [{"n4"}, {"n4"}, {"n4"}]


@pytest.mark.parametrize(
    "fields", [{"taints": ["team/keep-off:PreferNoSchedule"]}, {"unschedulable": True}], ids=["soft taint", "cordoned"]
)
def test_nodes_that_others_want_to_receive_nothing_are_left_out(fields):
    found = waves(steered(scene(10, 20, 65, n3=fields)))

    assert [lands(wave) for wave in found] == [{"p1": "n2"}]


def test_a_scheduler_that_nobody_knows_is_not_steered():
    ledger = steered(scene(10, 60), metricsUtilization={**SOURCE, "scheduler": "unknown"})

    assert make.evicted(ledger) == ["p1"]
    assert waves(ledger) == []


def test_what_nobody_knows_is_not_tried_with_one_choice_of_receivers_after_another(monkeypatch):
    """The answer would be the same: where all pods are so, it takes as long as a large cluster has nodes."""
    tried = []
    monkeypatch.setattr(Foresight, "avoiding", lambda _, avoid: tried.append(avoid) or nullcontext())
    levels = (10, 11, 12, 13, 14, 15)
    strange = {"placement": Placement(scheduler="someone-else")}

    ledger = steered(scene(*levels, fields={f"n{number}": strange for number, _ in enumerate(levels, 1)}))

    assert "nothing is known of the scheduler 'someone-else'" in make.why(ledger)["p1"]
    assert len(tried) == len(levels)


def test_a_node_that_takes_no_pods_any_more_receives_none():
    """n4 was cordoned, say, after the cluster was read: n3 receives in its place, and n4 is avoided."""
    made = waves(steered(scene(10, 20, 40, 60), Closing(1.5, KEYS)))

    assert [lands(wave) for wave in made] == [{"p1": "n3"}, {"p2": "n3"}]
    assert [wave.avoid["n4"] for wave in made] == [HOT, HOT]


def test_it_goes_on_with_where_pods_landed():
    """The first pod lands on n2 and not on n4: n2 is not emptied any more, and the next pods are sent there too."""
    ledger = steered(scene(10, 20, 30, 60), Landed(node="n2", replacement="new"))

    assert [lands(wave) for wave in waves(ledger)] == [{"p1": "n4"}, {"p3": "n2"}]


def test_it_ends_after_two_nodes_whose_pods_landed_elsewhere():
    steer = Landed(node="n5", replacement="new")
    ledger = steered(scene(10, 20, 30, 60, 69), steer, destinationThresholds={"cpu": 65})

    assert len(waves(ledger)) == 2
    assert [each.cause.code for each in ledger.warnings if each.cause.code != Code.CUSTOM] == [Code.LANDED_ELSEWHERE]
    assert steer.ended == 1


def test_an_empty_node_that_gets_a_pod_is_in_use():
    """The pod of n1 lands on n4, which was empty: it carries one taint from then on, not two."""
    first, second = waves(steered(scene(10, 20, 60, 0), Landed(node="n4", replacement="new")))

    assert first.avoid == {"n1": HOT, "n2": MIDDLING, "n4": HOT}
    assert second.avoid == {"n1": HOT, "n2": HOT, "n4": MIDDLING}


def test_a_node_that_another_strategy_has_filled_is_not_emptied():
    """Relief sends a pod of n1 to n2: its replacement runs there when compaction looks for nodes to empty."""

    def on():
        return scene(60, 10, 50, pods=[pod("w", on="n1", cpu="100m", memory=None)])

    compacts = compaction(45, metricsUtilization=SOURCE)
    both = make.decide(on(), low({"cpu": 20}, {"cpu": 62}), compacts, steer=Steer(1.5, KEYS))

    assert [lands(wave) for wave in waves(make.decide(on(), compacts, steer=Steer(1.5, KEYS)))] == [{"p2": "n3"}]
    assert make.evicted(both) == ["w"]


def test_a_node_to_which_a_replacement_came_back_is_not_held():
    """No other node took it; the node is in use, and not empty."""
    ledger = steered(scene(10, 20, 60), Landed(node="n1", replacement="new"), hold=lambda name: Held(name, make.NOW))

    assert [lands(wave) for wave in waves(ledger)] == [{"p1": "n3"}, {"p2": "n1"}]
    assert [each.node for each in ledger.held] == ["n2"]


def test_a_node_whose_pod_may_not_have_gone_is_not_held():
    def sink(pod, *_):
        return Unknown("lost") if pod.name == "p1" else GRANTED

    ledger = steered(scene(10, 20, 60), hold=lambda name: Held(name, make.NOW), sink=sink)

    assert [each.node for each in ledger.held] == ["n2"]


def test_a_replacement_that_is_nowhere_occupies_no_node():
    """Its node is empty; the plan goes on without it."""
    assert len(waves(steered(scene(10, 20, 60), Landed(node=None)))) == 2
