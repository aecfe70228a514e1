"""Waves to many nodes, for schedulers that score only some of them.

Nodes have a hundred points of cpu, targets are 50 %.  The least gain is 1.5 points, so nodes are brought to 47 %.
"""

import pytest

from rebalancer.balancing.steering.broad import BroadWaves
from rebalancer.eviction.steering import HOT
from tests.measured import cluster, node, planner, pod, points

ZONE = "topology.kubernetes.io/zone"


def parts_of(on, **fields):
    return planner(on, {"cpu": 20}, {"cpu": 50}, **fields)


def drafted(on, **fields):
    return BroadWaves(parts_of(on, **fields)).next_wave(on.nodes, on.nodes)


def moved(draft):
    return [pod.name for pod in draft.pods] if draft else []


def hot(*pods, receivers=8, labels=None, **snapshot):
    """n0 and n1 with these pods, given with their points, and so many other nodes at 5 points."""
    others = [f"n{number}" for number in range(2, 2 + receivers)]
    pods = [*pods, *((pod(f"on-{name}", name), 5) for name in others)]
    nodes = [node(name, labels=(labels or {}).get(name)) for name in ("n0", "n1", *others)]
    return cluster(nodes, [each for each, _ in pods], {each.name: points for each, points in pods}, snapshot=snapshot)


def stays(name, on, **fields):
    """A pod without a controller, which nothing evicts."""
    return pod(name, on, **{"owners": None, **fields})


def test_nodes_below_the_mean_receive_and_all_others_are_avoided_alike():
    """n0 is at 60, n1 at 40 and the others at 5, so the mean is 14: eight receive, and two carry two taints."""
    draft = drafted(hot((pod("a", "n0"), 20), (pod("b", "n0"), 40), (pod("c", "n1"), 40)))

    assert draft.avoid == {"n0": HOT, "n1": HOT}
    assert draft.destinations == tuple(f"n{number}" for number in range(2, 10))


def test_at_least_the_emptiest_15_percent_receive():
    """Half way from the mean to the target is 46.95, where n1 alone is below; but of ten nodes two receive."""
    names = [f"n{number}" for number in range(10)]
    pods = [pod("a", "n0"), stays("b", "n0"), *(pod(f"on-{name}", name) for name in names[1:])]
    usage = {"a": 1.3, "b": 60.7, "on-n1": 1} | {f"on-{name}": 47 for name in names[2:]}

    assert drafted(cluster([node(name) for name in names], pods, usage)).destinations == ("n1", "n2")


def test_nodes_without_room_for_the_first_pod_do_not_receive_with_it():
    """`a` of 20 points asks for 45.  So four at 5 points receive it, and `b` with it, but not those at 8."""
    pods = [(pod("a", "n0"), 20), (stays("rest", "n0"), 50), (pod("b", "n1"), 14), (stays("more", "n1"), 50)]
    on = hot(*pods, receivers=4)
    fuller = [node(f"m{number}") for number in range(4)]
    filled = [stays(f"on-{each.name}", each.name) for each in fuller]
    usage = {"a": 20, "rest": 50, "b": 14, "more": 50} | {f"on-n{number}": 5 for number in range(2, 6)}
    usage |= {each.name: 8 for each in filled}

    draft = drafted(cluster([*on.nodes, *fuller], [*on.snapshot.pods, *filled], usage))

    assert (moved(draft), sorted(draft.destinations)) == (["a", "b"], ["n2", "n3", "n4", "n5"])


def test_nodes_receive_up_to_half_way_from_the_mean_to_the_target():
    """The mean is 17.7 and half way 33.8, so a node at 33 receives a small pod, and one at 36 does not."""
    usage = {"n0": 60, **dict.fromkeys(("n1", "n2", "n3", "n4", "n5", "n6"), 5), "n7": 33, "n8": 36}
    on = cluster(map(node, usage), [pod("a", "n0")], {"a": 4}, usage | {"n0": 56})

    assert sorted(drafted(on).destinations) == ["n1", "n2", "n3", "n4", "n5", "n6", "n7"]


def test_a_pod_too_large_for_nodes_in_each_part_does_not_keep_smaller_ones():
    """Of 120 nodes 100 in a row are scored.  `a` has room on two nodes, next to each other, and `b` on 20 of them."""
    names = [f"n{number:03}" for number in range(120)]
    usage = {f"on-{name}": 0 if place < 2 else 15 if place % 6 == 0 else 45 for place, name in enumerate(names)}
    pods = [pod("a", "n119"), pod("b", "n118"), *(stays(f"on-{name}", name) for name in names)]

    draft = drafted(cluster([node(name) for name in names], pods, usage | {"a": 20, "b": 14}))

    assert (moved(draft), len(draft.destinations)) == (["b"], 21)


@pytest.mark.parametrize(("far", "moves"), [(2, 0), (3, 3), (6, 7)])
def test_receivers_stand_in_each_part_of_the_nodes_that_may_be_scored(far, moves):
    """Of 120 nodes 100 in a row are scored: the 20 left out may be the first ones, with all receivers but the far ones.

    18 receive, the emptiest 15 %.  Three far ones are enough for a wave; it has as many moves as would receive if each
    part had as few, so 3.6 or 7.2, and not nine.
    """
    receivers = [*range(18 - far), *range(60, 60 + far)]
    nodes = [f"n{number:03}" for number in range(120)]
    usage = {f"on-{name}": 0 if place in receivers else 40 for place, name in enumerate(nodes)}
    giving = {f"a{name}": name for name in nodes[-10:]}
    pods = [*(pod(*each) for each in giving.items()), *(stays(f"on-{name}", name) for name in nodes)]
    usage |= dict.fromkeys(giving, 20)

    assert len(moved(drafted(cluster([node(name) for name in nodes], pods, usage)))) == moves


@pytest.mark.parametrize(("requests", "expected"), [("2", ["n4", "n3"]), ("100m", ["n4"])])
def test_pods_are_expected_where_they_score_best_and_have_to_find_room_there(requests, expected):
    """Of n4 least is requested, then of n3.  With 2 cores of `a` on n4, n3 is next; else `c` would come to n4 as well.

    n4 is at 12 points with `a` then.  It has room for 38 more, so for both twice, 32, but not for both 2.5 times, 43.
    """
    on = hot((pod("a", "n0", cpu=requests), 12), (stays("b", "n0"), 53), (pod("c", "n1"), 10), (stays("d", "n1"), 52))
    more = {"n4": "1", "n3": "2"}
    filled = [stays(f"z-{each.name}", each.name, cpu=more.get(each.name, "3")) for each in on.nodes[2:]]
    usage = {"a": 12, "b": 53, "c": 10, "d": 52, **{f"on-n{number}": 10 for number in range(2, 10)}, "on-n4": 0}

    draft = drafted(cluster(on.nodes, [*on.snapshot.pods, *filled], usage))

    assert list(draft.expected.values()) == expected
    assert [(names[:1], len(names)) for names in draft.likely.values()] == [([name], 8) for name in expected]


def test_a_node_without_room_receives_nothing_though_the_scheduler_prefers_it():
    """Nothing is requested of x, so each pod would come there; it has no memory for one: 36 points, and 2.25 times 13.

    Against the mean n0 is fuller, and has room.  Without x twelve receive, and take six pods.
    """
    hot_ones, others = [f"h{number:02}" for number in range(11)], [f"n{number}" for number in range(12)]
    pods = [pod(f"a-{name}", name, cpu="1") for name in hot_ones]
    pods += [stays(f"b-{name}", name, cpu="3") for name in hot_ones]
    usage = {f"a-{name}": points(6, 13) for name in hot_ones} | {f"b-{name}": points(49, 49) for name in hot_ones}
    pods += [stays(f"c-{name}", name, cpu="3") for name in others]
    rest = dict.fromkeys(others, points(28, 30)) | {"n0": points(32, 15), "x": points(5, 36)}
    on = cluster([node(name) for name in (*hot_ones, *others, "x")], pods, usage, rest)
    waves = BroadWaves(planner(on, {"cpu": 20, "memory": 20}, {"cpu": 50, "memory": 60}))

    draft = waves.next_wave(on.nodes, on.nodes)

    assert len(draft.offers) == len(others) // 2
    assert (sorted(draft.destinations), draft.avoid["x"]) == (sorted(others), HOT)


def test_zones_take_turns_each_with_its_own_emptiest_nodes():
    """Owners spread evenly stay in their zone, where 120 nodes are empty; of those of both zones 200 would receive."""
    places = [f"{zone}{number:03}" for number in range(180) for zone in "ab"]
    giving = [name for name in places if int(name[1:]) % 3 == 0]
    pods = [pod(f"p-{name}", name, owners=f"web-{name[1:]}") for name in giving]
    usage = {f"p-{name}": 12 for name in giving}
    nodes = [node(name, labels={ZONE: name[0]}) for name in places]

    rest = {name: 45 if name in giving else int(name[1:]) / 180 for name in places}
    on = cluster(nodes, pods, usage, rest)
    waves = BroadWaves(parts_of(on))

    drafts = [waves.next_wave(on.nodes, on.nodes) for _ in range(3)]

    assert [{name[0] for name in draft.destinations} for draft in drafts] == [{"a"}, {"b"}, {"a"}]
    assert {(len(draft.destinations), len(draft.offers)) for draft in drafts} == {(120, 60)}


@pytest.mark.parametrize(("tolerations", "names"), [([], ["a"]), (["node.kubernetes.io/unschedulable"], [])])
def test_a_pod_stays_if_it_fits_on_a_node_that_neither_receives_nor_is_avoided(tolerations, names):
    """A cordoned node is not avoided: only a pod that tolerates the cordon may land there."""
    on = hot((pod("a", "n0", tolerations=tolerations), 20), (stays("b", "n0"), 60))
    on = cluster([*on.nodes, node("n99", unschedulable=True)], on.snapshot.pods, {"a": 20, "b": 60})
    opened = [each for each in on.nodes if not each.unschedulable]

    assert moved(BroadWaves(parts_of(on)).next_wave(opened, opened)) == names


def test_a_pod_that_would_spread_its_owner_less_evenly_goes_within_its_zone():
    """Three pods of `web` are in zone a and four in b, where most receivers are: only n2 of zone a receives."""
    labels = {f"n{number}": {ZONE: "a" if number < 3 else "b"} for number in range(10)}
    more = [(stays(f"w{number}", f"n{number}", owners="web"), 0) for number in range(2, 7)]
    pods = [(pod("a", "n0", owners="web"), 20), (stays("b", "n0"), 45), (pod("c", "n1", owners="web"), 15)]

    draft = drafted(hot(*pods, (stays("d", "n1"), 47), *more, labels=labels))

    assert (moved(draft), draft.destinations) == (["a"], ("n2",))


def test_where_there_are_zones_a_wave_has_one_pod_of_each_owner():
    """Though all twelve of `web` are in zone a: nobody knows where both land."""
    labels = {f"n{number}": {ZONE: "a" if number < 4 else "b"} for number in range(10)}
    more = [(pod(f"w{number}", f"n{2 + number % 2}", owners="web"), 0) for number in range(10)]
    pods = [(pod("a", "n0", owners="web"), 20), (stays("b", "n0"), 45), (pod("c", "n1", owners="web"), 15)]

    assert moved(drafted(hot(*pods, (stays("d", "n1"), 47), *more, labels=labels))) == ["a"]


def test_what_fits_later_alone_is_judged_by_the_scores_of_that_time():
    """`z` has gone from n1 and filled it till then: `a` fits on nine nodes soon, and on ten later."""
    pods = [(pod("a", "n0"), 20), (stays("b", "n0"), 60), (pod("z", "n1", cpu="9900m"), 20), (stays("c", "n1"), 30)]
    on = hot(*pods)
    parts = parts_of(on)

    with on.scope():
        on.remove(next(each for each in on.snapshot.pods if each.name == "z"))

        assert moved(BroadWaves(parts).next_wave(on.nodes, on.nodes)) == ["a"]


def many_hot(hot, empty):
    """Each hot node gives a pod of an owner of its own; hot nodes and empty ones alternate."""
    full = [f"n{number:03}-hot" for number in range(hot)]
    pods = [*(pod(f"a-{name}", name) for name in full), *(stays(f"b-{name}", name) for name in full)]
    usage = {f"a-{name}": 10 for name in full} | {f"b-{name}": 47 for name in full}
    return cluster([node(name) for name in (*full, *(f"n{number:03}" for number in range(empty)))], pods, usage)


@pytest.mark.parametrize(("receivers", "most"), [(198, 99), (200, 100), (206, 100)])
def test_a_wave_has_100_moves_at_most(receivers, most):
    """One for two receivers would be 103 with 206 of them."""
    assert len(moved(drafted(many_hot(103, receivers)))) == most
