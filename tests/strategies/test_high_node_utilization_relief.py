"""HighNodeUtilization with `selection: relief`: a node is emptied whole or not at all."""

from datetime import timedelta

import pytest

from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from tests.make import decide, evicted, pdb, refused, says_no, why
from tests.measured import PACKS, RELIEF, cluster, high, node, pod, points
from tests.unit.engine.stand_ins import AnsweringSink

NODES = (node("idle"), node("busy"), node("full"))


def scene(usage, fields=None, nodes=NODES, on="idle", busy=50, full=69, **more):
    """Pods by name on the idle node, the first the oldest; the others have as many points of cpu as said."""
    pods = [
        pod(name, **{"on": on, "age": 10_000 - number, **(fields or {}).get(name, {})})
        for number, name in enumerate(usage)
    ]
    return cluster(nodes, pods, usage, rest={"busy": busy, "full": full}, **more)


def test_an_idle_node_is_emptied():
    """All its pods go, the cheapest first; each reason tells where to."""
    ledger = decide(scene({"costly": 8, "cheap": 4}, {"costly": {"priority": 1}}), high())

    assert {entry.pod.name: text(entry.because) for entry in ledger.evictions} == {
        "cheap": "idle at cpu 12 % <= 20 %, memory 0 % <= 20 %; likely lands on busy (cpu 58 % -> 62 %)",
        "costly": "idle at cpu 12 % <= 20 %, memory 0 % <= 20 %; likely lands on busy (cpu 50 % -> 58 %)",
    }


@pytest.mark.parametrize(
    ("replicas", "allowed", "limits", "evictor", "by"),
    [
        pytest.param(
            {"owners": "web"}, 9, {}, {"minReplicas": 3}, "MinReplicas", id="after two of four too few are left"
        ),
        pytest.param({"labels": {"app": "web"}}, 2, {}, {}, "PDB", id="the PDB allows two of three"),
        pytest.param({"owners": "web"}, None, {}, {}, "OwnerShare", id="a quarter of four is one"),
        pytest.param({}, None, {"per_node": 2}, {}, "NodeLimit", id="two may leave a node"),
        pytest.param({}, None, {"per_namespace": 2}, {}, "NamespaceLimit", id="two may leave a namespace"),
        pytest.param({}, None, {"total": 2}, {}, "TotalLimit", id="two may go in all"),
    ],
)
def test_together_the_pods_must_be_within_all_limits(replicas, allowed, limits, evictor, by):
    """Each alone could go; the three together cannot, so none does."""
    fields = dict.fromkeys("abc", replicas) | {"d": {**replicas, "on": "busy"}}
    budgets = () if allowed is None else (pdb("web", allowed),)
    if by == "MinReplicas":
        fields = {name: {**each, "labels": {"app": "web"}} for name, each in fields.items()}
    on = scene({"a": 2, "b": 2, "c": 2, "d": 1}, fields, snapshot={"budgets": budgets})
    ledger = decide(on, high(), limits=Limits(**limits), evictor=evictor)

    assert evicted(ledger) == []
    assert list(refused(ledger).values()) == [by]


def test_a_trial_leaves_no_trace():
    """The pods of the first node cannot go together; its trial has used up nothing of what the second needs."""
    nodes = (*NODES, node("idle2"))
    fields = {name: {"labels": {"app": "web"}} for name in "abc"} | {"d": {"on": "idle2", "labels": {"app": "web"}}}
    fields |= {"e": {"on": "idle2"}, "f": {"on": "idle2"}, "g": {"on": "idle2"}}
    on = scene(dict.fromkeys("abcdefg", 1), fields, nodes=nodes, snapshot={"budgets": (pdb("web", 2),)})

    assert evicted(decide(on, high(), limits=Limits(total=4))) == ["d", "e", "f", "g"]


def test_destinations_have_a_ceiling_of_their_own():
    """70 at the peak unless the policy says so: beside 50 there is room for 20, beside 69 for one."""
    usage = {"a": 11, "b": 8}

    assert evicted(decide(scene(usage), high())) == ["a", "b"]
    assert refused(decide(scene(usage, busy=52), high())) == {"b": "NoDestination"}
    assert evicted(decide(scene(usage, busy=52), high(destinationThresholds={"cpu": 72}))) == ["a", "b"]
    assert refused(decide(scene(usage), high(destinationThresholds={"cpu": 60}))) == {"a": "NoDestination"}
    peaks = {"idle": points(90), "busy": points(60), "full": points(69)}
    figures = {"nodes": {"idle": points(19), "busy": points(50), "full": points(69)}, "peaks": peaks}
    assert refused(decide(scene(usage, measured=figures), high())) == {"a": "NoDestination"}


@pytest.mark.parametrize(("number", "expected"), [(0, ["a"]), (1, [])])
def test_number_of_nodes_must_be_exceeded(number, expected):
    assert evicted(decide(scene({"a": 2}), high(numberOfNodes=number))) == expected


def test_only_pods_that_request_what_thresholds_name():
    """With the mode, a pod that requests no memory keeps a node that is idle by memory."""
    on = scene({"a": points(2, 2)}, {"a": {"memory": None}}, busy=points(50, 50), full=points(60, 60))
    ledger = decide(on, high({"memory": 20}, evictionModes=["OnlyThresholdingResources"]))

    assert refused(ledger) == {"a": "NotSelected"}


@pytest.mark.parametrize(
    ("usage", "measured", "by"),
    [
        ({"a": None, "b": 2}, {}, "NoUsage"),
        ({"a": 0, "b": 2}, {}, "NoUsage"),
        ({"a": 1, "b": 2}, {"pods": None}, "NoUsage"),
        ({"a": 1, "b": 2}, {"window": timedelta(hours=9)}, "YoungerThanWindow"),
    ],
)
def test_unknown_usage_keeps_a_node(usage, measured, by):
    """Unknown or nothing, of a source that knows no pods, or younger than the window."""
    assert list(refused(decide(scene(usage, measured=measured), high())).values()) == [by]


def test_when_the_server_says_no_the_rest_stays():
    """`a` is gone by then; `c` would leave a node that is not emptied, and gives its place to the next node's pod."""
    nodes = (*NODES, node("idle2"))
    fields = {name: {"on": "idle2"} for name in ("w", "x", "y", "z")}
    usage = {"a": 6, "b": 5, "c": 5, "w": 4, "x": 4, "y": 3, "z": 3}
    sink = AnsweringSink({"b": says_no("PDB", "the server says no")})
    ledger = decide(scene(usage, fields, nodes=nodes, full=70), high(), sink=sink)

    assert evicted(ledger) == ["a", "w", "x", "y", "z"]
    assert refused(ledger) == {"b": "PDB"}


@pytest.mark.parametrize(
    ("configuration", "requested", "verdict"),
    [
        pytest.param(None, "3", "would likely choose idle, where it is", id="the default one spreads"),
        pytest.param(
            PACKS, "3", "idle at cpu 8 % <= 20 %, memory 0 % <= 20 %; likely lands on busy", id="a packing one fills"
        ),
        pytest.param(PACKS, "100m", "would likely choose idle, where it is", id="to be asked less of is no use"),
    ],
)
def test_a_node_is_emptied_only_if_the_scheduler_packs(configuration, requested, verdict):
    """Of `busy` as much is requested as told, of `idle` 10 points and of `full` too much for the pod."""
    usage = {"a": 8, "b": None, "c": None}
    fields = {"a": {"cpu": "1"}, "b": {"on": "busy", "cpu": requested}, "c": {"on": "full", "cpu": "9500m"}}
    on = scene(usage, fields, snapshot={"scheduler_configuration": configuration})
    ledger = decide(on, high(metricsUtilization=RELIEF))

    told = [text(each.because) for each in ledger.evictions] + list(why(ledger).values())
    assert verdict in told[0]


def test_pods_do_not_go_to_a_node_that_is_to_be_emptied_too():
    """Of idle2 more is requested than of `busy`, so that a scheduler that packs would fill it."""
    fields = {"a": {"cpu": "1"}, "b": {"on": "idle2", "cpu": "5"}, "c": {"on": "full", "cpu": "9500m"}}
    nodes = (*NODES, node("idle2"))
    on = scene({"a": 8, "b": 5, "c": None}, fields, nodes=nodes, snapshot={"scheduler_configuration": PACKS})
    ledger = decide(on, high(metricsUtilization=RELIEF))

    assert why(ledger)["a"].startswith(
        "no destination: the scheduler would likely choose idle2, which is to be emptied, too; it keeps idle"
    )


@pytest.mark.parametrize(("memory", "goes"), [(69, []), (60, ["a", "b"])])
def test_a_node_is_emptied_only_if_its_pods_do_no_harm_after_a_tie(memory, goes):
    """`a` lands on one of two equal nodes, and `b`, where pods are packed, beside it: the plan counts on `busy`."""
    usage = {"a": points(5, 1), "b": points(1, 3), "c": None, "d": None}
    fields = {"a": {"cpu": "1"}, "b": {"cpu": "1"}, "c": {"on": "busy", "cpu": "3"}, "d": {"on": "full", "cpu": "3"}}
    on = scene(usage, fields, busy=points(50, 30), full=points(50, memory), snapshot={"scheduler_configuration": PACKS})
    ledger = decide(on, high(metricsUtilization=RELIEF))

    assert evicted(ledger) == goes
    if not goes:
        told = "no destination: the scheduler may choose full, memory above 70 %"
        assert why(ledger) == {"b": f"{told}; it keeps idle, which is emptied whole or not at all"}


def test_a_configuration_that_cannot_be_read_fails_the_strategy():
    ledger = decide(
        scene({"a": 8}, snapshot={"scheduler_configuration": {"kind": "Pod"}}), high(metricsUtilization=RELIEF)
    )

    assert "expected kind KubeSchedulerConfiguration" in str(ledger.runs[0].error)
    assert evicted(ledger) == []
