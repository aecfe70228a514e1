"""Each strategy says what it looked at, in a sentence and in figures, whether or not something goes."""

import pytest

from tests.functional.objects import DAY, node, pod, policy

NODES = [node("n1"), node("n2")]
WEB = [pod("a", "n1", age=DAY), pod("b", "n1", age=2 * DAY), pod("c", "n2", age=3 * DAY)]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
def look(rebalancer):
    """Return how a strategy went on some objects; the newest pod sets the clock."""

    def run(name, args, objects=(*NODES, *WEB)):
        one = policy((name, args), maxNoOfPodsToEvictTotal=100)
        (found,) = rebalancer.offline(one, rebalancer.cluster(*objects)).report["strategies"]
        return found

    return run


SUMMARIES = {
    "3 pods considered, 0 older than 30d": ("PodLifeTime", {"maxPodLifeTimeSeconds": 30 * DAY}),
    "3 pods considered, 2 older than 12h": ("PodLifeTime", {"maxPodLifeTimeSeconds": 12 * 3600}),
    "3 pods considered, 0 that match the arguments": ("PodLifeTime", {"states": ["Pending"]}),
    "0 failed pods, 0 that match the arguments": ("RemoveFailedPods", {}),
    "3 pods considered, 0 with 9 restarts or more": ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 9}),
    "3 pods considered, 0 on nodes with a taint that they do not tolerate": ("RemovePodsViolatingNodeTaints", {}),
    "3 pods considered, 0 whose node affinity wants another node": (
        "RemovePodsViolatingNodeAffinity",
        {"nodeAffinityType": [REQUIRED]},
    ),
    "3 pods considered, 0 next to pods that they must not be next to": ("RemovePodsViolatingInterPodAntiAffinity", {}),
    "3 pods considered, 1 owner with several replicas on a node": ("RemoveDuplicates", {}),
    "3 pods considered, 0 spread constraints, 0 pods too many in their domains": (
        "RemovePodsViolatingTopologySpreadConstraint",
        {},
    ),
    "none of 2 nodes over target, 2 under thresholds: nothing has to move": (
        "LowNodeUtilization",
        {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
    ),
    "2 of 2 nodes under thresholds, none that can receive: nothing can be received": (
        "HighNodeUtilization",
        {"thresholds": {"cpu": 20}},
    ),
}


@pytest.mark.parametrize("summary", SUMMARIES)
def test_every_strategy_says_what_it_looked_at(look, summary):
    """Also, and above all, where it found nothing."""
    assert look(*SUMMARIES[summary])["summary"] == summary


SHOP = [pod("s", "n1", namespace="shop")]
NAMESPACES = [{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}} for name in ("shop", "empty")]


@pytest.mark.parametrize(
    ("named", "namespaces", "summary"),
    [
        ("shpo", NAMESPACES, "0 pods in namespace shpo: there is no such namespace (did you mean shop?)"),
        ("accounting", NAMESPACES, "0 pods in namespace accounting: there is no such namespace"),
        ("empty", NAMESPACES, "0 pods in namespace empty"),
        ("shpo", [], "0 pods in namespace shpo: no pod has that namespace (did you mean shop?)"),
    ],
)
def test_a_namespace_without_pods_is_named(look, named, namespaces, summary):
    """With what it may have been meant to be; that it does not exist is said only where that is known."""
    args = {"maxPodLifeTimeSeconds": 60, "namespaces": {"include": [named]}}

    assert look("PodLifeTime", args, [*NODES, *SHOP, *namespaces])["summary"] == summary


def test_nodes_are_told_before_and_after(look):
    """Percentages by resource and states; what goes is expected on the underutilized node."""
    pods = [pod(f"a{number}", "n1", cpu="1") for number in range(3)]
    found = look("LowNodeUtilization", {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}}, [*NODES, *pods])

    n1, n2 = found["nodes"]
    assert (n1["name"], n1["before"]["cpu"], n1["after"]["cpu"]) == ("n1", 75.0, 50.0)
    assert (n1["state"], n1["stateAfter"]) == ("overutilized", "appropriately utilized")
    assert (n2["before"]["cpu"], n2["after"]["cpu"], n2["state"]) == (0.0, 25.0, "underutilized")
    assert found["targetThresholds"] == {"cpu": 60.0}
    assert found["summary"] == "1 of 2 nodes over target, 1 under thresholds; none over target afterwards"
    assert found["obstacle"] is None
    assert (found["counts"]["over"], found["counts"]["under"]) == (1, 1)


def test_nodes_are_logged_with_their_pods_by_class(rebalancer):
    """With `-v 1`, in the descheduler's words: of n1 one pod is protected, one is BestEffort, two are Burstable."""
    best_effort = pod("calm", "n1")
    del best_effort["spec"]["containers"][0]["resources"]
    critical = pod("critical", "n1", priority=2_000_000_000)
    file = rebalancer.cluster(*NODES, best_effort, critical, *(pod(f"a{n}", "n1", cpu="1") for n in range(2)))
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}}

    logged = rebalancer.offline(policy(("LowNodeUtilization", args), balance=True), file, "-v", "1").stderr

    assert "node n1 is appropriately utilized: cpu 52.5 %, memory" in logged
    assert "allPods:4, nonRemovablePods:1, bePods:1, bPods:2, gPods:0" in logged
    assert "node n2 is underutilized: cpu 0.0 %, memory 0.0 %, pods 0.0 %; allPods:0, nonRemovablePods:0" in logged


@pytest.mark.parametrize(
    ("number", "others", "obstacle", "words"),
    [
        (0, "2", "NoneReceives", "1 of 2 nodes over target, none under thresholds: nothing can be received"),
        (1, "100m", "TooFewUnder", "1 of 2 nodes over target, 1 under thresholds: numberOfNodes asks for more than 1"),
    ],
)
def test_what_stands_in_the_way_is_told(look, number, others, obstacle, words):
    pods = [pod("a", "n1", cpu="3"), pod("b", "n2", cpu=others)]
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}, "numberOfNodes": number}
    found = look("LowNodeUtilization", args, [*NODES, *pods])

    assert (found["obstacle"], found["summary"]) == (obstacle, words)
    assert all(each["before"] == each["after"] for each in found["nodes"])


def test_idle_nodes_are_told_empty_afterwards(look):
    """HighNodeUtilization has no targets, so no node is over any."""
    pods = [pod("a", "n1", cpu="2"), pod("b", "n2", cpu="200m")]
    found = look("HighNodeUtilization", {"thresholds": {"cpu": 20}}, [*NODES, *pods])

    n1, n2 = found["nodes"]
    assert (n1["before"]["cpu"], n1["after"]["cpu"], n1["state"]) == (50.0, 55.0, "appropriately utilized")
    assert (n2["before"]["cpu"], n2["after"]["cpu"], n2["state"]) == (5.0, 0.0, "underutilized")
    assert found["summary"] == "1 of 2 nodes under thresholds, 1 that can receive"


@pytest.mark.parametrize("preset", ["demo", "usage-metrics-server"])
def test_what_relief_expects_agrees_with_its_reasons(rebalancer, preset):
    """By measured usage: what one node loses others receive, of which no pod is lost."""
    outcome = rebalancer("run", "--policy", preset, "--snapshot", "examples/cluster.json", "--output", "json")

    run = outcome.report["strategies"][-1]
    lost, won = 0.0, 0.0
    for each in run["nodes"]:
        change = each["after"]["cpu"] - each["before"]["cpu"]
        lost, won = lost - min(change, 0), won + max(change, 0)
    assert lost > 1
    assert lost == pytest.approx(won, abs=0.2)  # the nodes are alike, and figures rounded
