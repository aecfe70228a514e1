"""`rebalancer recommend` beside a cluster: all pods placed anew, and what samples do not show.

That raises what is recommended, or leaves it alone, and the reason is said.
"""

import json

import pytest

from tests.functional.objects import node
from tests.functional.recommending import JSON, RESOURCES, Recommender, pod, resources_of

#: What workloads of one pod each use: the eight of 1500m request as little as the sixteen of 20m.
USED = {f"w{number:02}": 20 if number % 3 else 1500 for number in range(24)}


@pytest.fixture
def measured(rebalancer):
    """Write four days of samples at 10:30; millicores by workload."""

    def write(**used):
        recommend = Recommender(rebalancer)
        for day in range(4):
            lines = (f"shop {name}-0 app {cpu}m 100Mi" for name, cpu in used.items())
            recommend.write(f"top-202305{11 + day}103000.txt", *lines, "")
        return recommend

    return write


def uneven():
    """All busy pods on the first of four nodes, the idle ones on the others; a fifth is cordoned."""
    pods = [pod(name, "n1" if cpu > 20 else f"n{2 + number % 3}") for number, (name, cpu) in enumerate(USED.items())]
    cordoned = {**node("n5", cpu="8"), "spec": {"unschedulable": True}}
    return [*(node(f"n{n}", cpu="8") for n in range(1, 5)), cordoned, *pods]


def test_requests_that_tell_the_truth_spread_the_load(measured):
    """Of 12.3 cores on four nodes of 8 each should have 38.5 %; n1 has 150 % now, since nothing says who is busy."""
    found = measured(**USED)("--what-if", *JSON, beside=uneven()).report["whatIf"]

    now, today, better = (found[key] for key in ("asItIs", "todaysRequests", "recommended"))
    assert (found["nodes"], found["pods"], found["unmeasuredPods"], found["noLongerFit"]) == (4, 24, 0, [])
    assert (now["cpu"]["highestPercent"], now["cpu"]["highestNode"]) == (150, "n1")
    assert better["cpu"]["standardDeviation"] < 1
    assert better["cpu"]["highestPercent"] == pytest.approx(38.5, abs=1)
    assert today["cpu"]["standardDeviation"] > 10 * better["cpu"]["standardDeviation"]
    # Eight pods of 1125m and sixteen of 15m: seven of them on the first node, the last one on the second.
    assert (today["nodesNeeded"], better["nodesNeeded"]) == (1, 2)


def test_a_pod_that_tolerates_everything_needs_no_cordoned_node(measured):
    cordoned = {**node("n2", cpu="16"), "spec": {"unschedulable": True}}
    tolerant = pod("a", resources=RESOURCES)
    tolerant["spec"]["tolerations"] = [{"operator": "Exists"}]

    found = measured(a=400, b=400)("--what-if", *JSON, beside=[node("n1"), cordoned, tolerant, pod("b")]).report

    assert (found["whatIf"]["nodes"], found["whatIf"]["recommended"]["nodesNeeded"]) == (1, 1)


def test_pods_of_which_nobody_knows_stay_and_are_told(measured, tmp_path):
    """A scheduler with a plugin that nobody knows."""
    config, profile = tmp_path / "scheduler.yaml", {"plugins": {"filter": {"enabled": [{"name": "Ours"}]}}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**head, "profiles": [profile]}))

    table = measured(**USED)("--what-if", "--scheduler-config", config, beside=uneven()).stdout

    words = " ".join(table.split())
    assert (
        "24 pods left in place, since it is unknown where they would go: nothing is known of the scheduler's" in words
    )
    assert "cpu: highest node 150 % (n1) 150 % (n1) 150 % (n1)" in words


def test_pods_that_would_no_longer_fit_are_named(measured):
    """No node has room for three quarters of 8 cores, and so no number of nodes is enough.

    A pod without samples counts as using nothing, and is counted: the reader knows how much is missing.
    """
    objects = [node("n1"), *map(pod, ("busya", "idlea", "newcomer"))]

    table = measured(busya=8000, idlea=20)("--what-if", beside=objects).stdout

    words = " ".join(table.split())
    assert "1 pod would no longer fit: shop/busya-0 (0/1 nodes are available: 1 Insufficient cpu.)" in words
    assert "more than 1" in table
    assert "BestEffort becomes Burstable" in words
    assert "1 pod without a measurement" in words


def test_patches_and_the_picture_agree_on_what_is_fine(measured):
    """What differs by less than a tenth is neither patched nor placed otherwise."""
    good = {"requests": {"cpu": "1120m", "memory": "75Mi"}, "limits": {"cpu": "1500m", "memory": "115Mi"}}

    found = measured(busya=1500)("--what-if", *JSON, beside=[node("n1"), pod("busya", resources=good)]).report

    assert found["containers"][0]["fine"]
    assert found["totals"][-1] == {"namespace": None, "cpuMilli": 0, "memoryBytes": 0}
    assert {**found["whatIf"]["todaysRequests"]} == found["whatIf"]["recommended"]


def test_heavy_workloads_that_share_nodes_are_listed_with_what_parts_them(measured):
    """Of four cores 1500m are heavy and 20m are not; two light ones beside them are nobody's trouble."""
    used = {"busya": 1500, "busyb": 1000, "idle": 20}

    (pair,) = measured(**used)(*JSON, beside=[node("n1"), *map(pod, used)]).report["heavyNeighbours"]

    assert pair["workloads"] == ["shop/StatefulSet/busya", "shop/StatefulSet/busyb"]
    assert pair["nodes"] == ["n1"]
    (preferred,) = pair["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["podAffinityTerm"] == {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "busyb"}},
    }


NEED = {"cpuRequest": "750m", "cpuLimit": "1000m", "memoryRequest": "75Mi", "memoryLimit": "115Mi"}


def scaler(*metrics, kind="StatefulSet"):
    spec = {"scaleTargetRef": {"kind": kind, "name": "web"}, "metrics": list(metrics)}
    metadata = {"name": "by-load", "namespace": "shop"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("metrics", "left"),
    [
        ([{"type": "Resource", "resource": {"name": "cpu"}}], {"cpu"}),
        ([{"type": "Resource", "resource": {"name": "memory"}}], {"memory"}),
        ([{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app"}}], {"cpu"}),
        ([{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "other"}}], set()),
        ([{"type": "External", "external": {"metric": {"name": "queue"}}}], set()),
        ([], {"cpu"}),
    ],
)
def test_what_an_autoscaler_scales_by_is_left_alone_and_said(measured, metrics, left):
    """One without metrics scales by cpu, as the API server has it; the patch says nothing of that resource."""
    recommend, objects = measured(web=1000), [pod("web", resources=RESOURCES), scaler(*metrics)]

    found = recommend.container(beside=objects)

    expected = {name: None if any(name.startswith(each) for each in left) else text for name, text in NEED.items()}
    assert found["recommended"] == expected
    told = [f"{each} is left alone: HorizontalPodAutoscaler by-load scales by it" for each in left]
    assert found["remarks"] == told
    patched = resources_of(recommend.written("--patches", beside=objects))
    assert {"cpu", "memory"} - left == {*patched["requests"]} == {*patched["limits"]}


def test_an_argo_rollout_may_be_scaled_too(measured):
    """Its ReplicaSets are named after it and the hash of the template, as those of a Deployment."""
    made = pod("web", resources=RESOURCES)
    made["metadata"]["ownerReferences"][0] |= {"kind": "ReplicaSet", "name": "web-5d4f"}
    made["metadata"]["labels"] = {"rollouts-pod-template-hash": "5d4f"}

    found = measured(web=1000).container(beside=[made, scaler(kind="Rollout")])

    assert (found["kind"], found["name"], found["recommended"]["cpuRequest"]) == ("Rollout", "web", None)


def test_what_cannot_be_read_or_has_ended_does_not_count(measured):
    """A malformed request, a nameless owner, no containers or metadata: left out.  A failed pod requests nothing."""
    bad, done = pod("bad", resources={"requests": {"cpu": "much"}}), pod("web", resources=RESOURCES)
    nameless, empty = pod("nameless", resources=RESOURCES), {**pod("web"), "spec": {"nodeName": "n1"}}
    del nameless["metadata"]["ownerReferences"][0]["name"]
    empty["metadata"]["name"] = "web-2"
    done["metadata"]["name"] = "web-1"
    done["status"]["phase"] = "Failed"
    odd = {**pod("odd"), "metadata": "none"}

    outcome = measured(web=1000)(*JSON, beside=[bad, nameless, empty, odd, done, pod("web", resources=RESOURCES)])

    assert [each["replicas"] for each in outcome.report["containers"]] == [1]
    assert "--snapshot: Pod shop/bad-0 is left out: 'much' is not a valid quantity" in outcome.stderr
    assert "--snapshot: Pod shop/nameless-0 is left out: Object missing required field `name`" in outcome.stderr
    assert "--snapshot: Pod shop/web-2 is left out: Object missing required field `containers`" in outcome.stderr
    assert "--snapshot: Pod without a name is left out: Expected `object`, got `str`" in outcome.stderr


@pytest.mark.parametrize("part", ["state", "lastState"])
@pytest.mark.parametrize(("rule", "request_"), [("peak-mean", "402Mi"), ("quantile", "615Mi"), ("target", "615Mi")])
def test_a_kill_for_memory_raises_it_above_the_limit(measured, part, rule, request_):
    """Nobody saw more than 100Mi, and yet 512Mi were not enough: a fifth more, as the VerticalPodAutoscaler does."""
    killed = pod("web", resources=RESOURCES)
    killed["status"]["containerStatuses"] = [{"name": "app", part: {"terminated": {"reason": "OOMKilled"}}}]

    found = measured(web=1000).container("--rule", rule, beside=[killed])

    assert found["recommended"]["memoryRequest"] == request_
    assert found["recommended"]["memoryLimit"] == (None if rule == "target" else "615Mi")
    assert found["remarks"] == ["OOM killed in 1 pod: memory raised to 615Mi"]
