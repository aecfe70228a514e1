"""`rebalancer recommend` beside a cluster: all pods placed anew, and what samples do not show.

That raises what is recommended, or leaves it alone, and the reason is said.
"""

import json
from datetime import date, timedelta

import pytest
import yaml
from click.testing import CliRunner

from rebalancer.cli.main import main
from tests.functional import objects
from tests.functional.objects import node
from tests.make import NOW
from tests.real_prometheus import RealPrometheus, Series, needed

#: What workloads of one pod each use: the eight of 1500m request as little as the sixteen of 20m.
USED = {f"w{number:02}": 20 if number % 3 else 1500 for number in range(24)}


def pod(name, on, resources=None):
    """The pod of a StatefulSet of this name."""
    made = objects.pod(f"{name}-0", on, namespace="shop", owner=name)
    made["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    made["spec"]["containers"][0] |= {"name": "app", "resources": resources or {}}
    return made


def asked(tmp_path, used, items, *arguments):
    """Write four days of samples at 10:30, and the cluster."""
    samples, cluster = tmp_path / "samples", tmp_path / "cluster.json"
    samples.mkdir()
    for day in range(4):
        lines = [f"shop {name}-0 app {cpu}m 100Mi\n" for name, cpu in used.items()]
        (samples / f"top-{date(2023, 5, 11) + timedelta(days=day):%Y%m%d}103000.txt").write_text("".join(lines))
    cluster.write_text(json.dumps({"kind": "List", "items": items}))
    where = ["--samples", str(samples), "--snapshot", str(cluster), "--min-days", "3", "--min-samples", "3"]
    return CliRunner().invoke(main, ["recommend", *where, *arguments])


def scheduler(tmp_path, plugins, *config):
    path = tmp_path / "scheduler.yaml"
    profile = {"plugins": plugins, "pluginConfig": list(config)}
    version = "kubescheduler.config.k8s.io/v1"
    path.write_text(json.dumps({"apiVersion": version, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}))
    return path


def uneven():
    """All busy pods on the first of four nodes, the idle ones on the others; a fifth is cordoned."""
    pods = [pod(name, "n1" if cpu > 20 else f"n{2 + number % 3}") for number, (name, cpu) in enumerate(USED.items())]
    cordoned = {**node("n5", cpu="8"), "spec": {"unschedulable": True}}
    return [*(node(f"n{n}", cpu="8") for n in range(1, 5)), cordoned, *pods]


def test_requests_that_tell_the_truth_spread_the_load(tmp_path):
    """Of 12.3 cores on four nodes of 8 each should have 38.5 %; n1 has 150 % now, since nothing says who is busy."""
    outcome = asked(tmp_path, USED, uneven(), "--what-if", "-o", "json")

    assert outcome.exit_code == 0, outcome.output
    found = json.loads(outcome.stdout)["whatIf"]
    now, today, better = (found[key] for key in ("asItIs", "todaysRequests", "recommended"))
    assert (found["nodes"], found["pods"], found["unmeasuredPods"], found["noLongerFit"]) == (4, 24, 0, [])
    assert (now["cpu"]["highestPercent"], now["cpu"]["highestNode"]) == (150, "n1")
    assert better["cpu"]["standardDeviation"] < 1
    assert better["cpu"]["highestPercent"] == pytest.approx(38.5, abs=1)
    assert today["cpu"]["standardDeviation"] > 10 * better["cpu"]["standardDeviation"]
    # Eight pods of 1125m and sixteen of 15m: seven of them on the first node, the last one on the second.
    assert (today["nodesNeeded"], better["nodesNeeded"]) == (1, 2)


def test_pods_of_which_nobody_knows_stay_and_are_told(tmp_path):
    """A scheduler with a plugin that nobody knows."""
    config = scheduler(tmp_path, {"filter": {"enabled": [{"name": "Ours"}]}})

    table = asked(tmp_path, USED, uneven(), "--what-if", "--scheduler-config", str(config)).stdout

    words = " ".join(table.split())
    assert (
        "24 pods left in place, since it is unknown where they would go: nothing is known of the scheduler's" in words
    )
    assert "cpu: highest node 150 % (n1) 150 % (n1) 150 % (n1)" in words


def test_pods_that_would_no_longer_fit_are_named(tmp_path):
    """No node has room for three quarters of 8 cores, and so no number of nodes is enough."""
    huge = {"busya": 8000, "idlea": 20}
    items = [node("n1"), pod("busya", "n1"), pod("idlea", "n1")]

    table = asked(tmp_path, huge, items, "--what-if").stdout

    words = " ".join(table.split())
    assert "1 pod would no longer fit: shop/busya-0 (0/1 nodes are available: 1 Insufficient cpu.)" in words
    assert "more than 1" in table
    assert "BestEffort becomes Burstable" in words


def test_pods_without_samples_count_as_using_nothing_and_are_counted(tmp_path):
    """The reader knows how much of the picture is missing."""
    items = [node("n1"), pod("busya", "n1"), pod("newcomer", "n1")]

    assert "1 pod without a measurement" in asked(tmp_path, {"busya": 100}, items, "--what-if").stdout


def test_a_file_without_nodes_is_bad_usage(tmp_path):
    outcome = asked(tmp_path, {"busya": 100}, [pod("busya", "n1")], "--what-if")

    assert outcome.exit_code == 2
    assert "--what-if needs nodes in --snapshot: `rebalancer snapshot` writes all" in outcome.stderr


def test_patches_and_the_picture_agree_on_what_is_fine(tmp_path):
    """What differs by less than a tenth is neither patched nor placed otherwise."""
    good = {"requests": {"cpu": "1120m", "memory": "75Mi"}, "limits": {"cpu": "1500m", "memory": "115Mi"}}
    items = [node("n1"), pod("busya", "n1", good)]

    found = json.loads(asked(tmp_path, {"busya": 1500}, items, "--what-if", "-o", "json").stdout)

    assert found["containers"][0]["fine"]
    assert found["totals"][-1] == {"namespace": None, "cpuMilli": 0, "memoryBytes": 0}
    assert {**found["whatIf"]["todaysRequests"]} == found["whatIf"]["recommended"]


def test_heavy_workloads_that_share_nodes_are_listed_with_what_parts_them(tmp_path):
    """Of four cores 1500m are heavy and 20m are not; two light ones beside them are nobody's trouble."""
    used = {"busya": 1500, "busyb": 1000, "idle": 20}
    items = [node("n1"), *(pod(name, "n1") for name in used)]

    outcome = asked(tmp_path, used, items, "-o", "json")

    (pair,) = json.loads(outcome.stdout)["heavyNeighbours"]
    assert pair["workloads"] == ["shop/StatefulSet/busya", "shop/StatefulSet/busyb"]
    assert pair["nodes"] == ["n1"]
    (preferred,) = pair["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["podAffinityTerm"] == {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "busyb"}},
    }


NEED = {"cpuRequest": "750m", "cpuLimit": "1000m", "memoryRequest": "75Mi", "memoryLimit": "115Mi"}
RESOURCES = {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m", "memory": "512Mi"}}
HOUR, DAY = 3600, 86_400


def scaler(*metrics):
    spec = {"scaleTargetRef": {"kind": "StatefulSet", "name": "web"}, "metrics": list(metrics)}
    metadata = {"name": "by-load", "namespace": "shop"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def container_of(outcome):
    assert outcome.exit_code == 0, outcome.output
    (found,) = json.loads(outcome.stdout)["containers"]
    return found


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
def test_what_an_autoscaler_scales_by_is_left_alone_and_said(tmp_path, metrics, left):
    """One without metrics scales by cpu, as the API server has it; the patch says nothing of that resource."""
    patches = tmp_path / "patches"
    objects = [pod("web", "n1", RESOURCES), scaler(*metrics)]

    found = container_of(asked(tmp_path, {"web": 1000}, objects, "-o", "json", "--patches", str(patches)))

    expected = {name: None if any(name.startswith(each) for each in left) else text for name, text in NEED.items()}
    assert found["recommended"] == expected
    told = [f"{each} is left alone: HorizontalPodAutoscaler by-load scales by it" for each in left]
    assert found["remarks"] == told
    (patched,) = yaml.safe_load(next(patches.iterdir()).read_text())["spec"]["template"]["spec"]["containers"]
    assert {"cpu", "memory"} - left == {*patched["resources"]["requests"]} == {*patched["resources"]["limits"]}


def test_what_cannot_be_read_or_has_ended_does_not_count(tmp_path):
    """A malformed request, a nameless owner, no containers: left out.  A pod that has failed requests nothing."""
    bad, done = pod("bad", "n1", {"requests": {"cpu": "much"}}), pod("web", "n1", RESOURCES)
    nameless = pod("nameless", "n1", RESOURCES)
    del nameless["metadata"]["ownerReferences"][0]["name"]
    empty = {**pod("web", "n1"), "spec": {"nodeName": "n1"}}
    empty["metadata"]["name"] = "web-2"
    done["metadata"]["name"] = "web-1"
    done["status"]["phase"] = "Failed"

    outcome = asked(tmp_path, {"web": 1000}, [bad, nameless, empty, done, pod("web", "n1", RESOURCES)], "-o", "json")

    assert container_of(outcome)["replicas"] == 1
    assert "--snapshot: Pod shop/bad-0 is left out: 'much' is not a valid quantity" in outcome.stderr
    assert "--snapshot: Pod shop/nameless-0 is left out: Object missing required field `name`" in outcome.stderr
    assert "--snapshot: Pod shop/web-2 is left out: Object missing required field `containers`" in outcome.stderr


@pytest.mark.parametrize("part", ["state", "lastState"])
@pytest.mark.parametrize(("rule", "request_"), [("peak-mean", "402Mi"), ("quantile", "615Mi"), ("target", "615Mi")])
def test_a_kill_for_memory_raises_it_above_the_limit(tmp_path, part, rule, request_):
    """Nobody saw more than 100Mi, and yet 512Mi were not enough: a fifth more, as the VerticalPodAutoscaler does."""
    killed = pod("web", "n1", RESOURCES)
    killed["status"]["containerStatuses"] = [{"name": "app", part: {"terminated": {"reason": "OOMKilled"}}}]

    found = container_of(asked(tmp_path, {"web": 1000}, [killed], "-o", "json", "--rule", rule))

    assert found["recommended"]["memoryRequest"] == request_
    assert found["recommended"]["memoryLimit"] == (None if rule == "target" else "615Mi")
    assert found["remarks"] == ["OOM killed in 1 pod: memory raised to 615Mi"]


@needed
def test_prometheus_tells_of_kills_and_throttling(tmp_path):
    """On four days, for two hours each, 40 % of the periods are throttled; a pod that is gone was killed."""
    labels, gone = ({"namespace": "shop", "pod": f"web-{n}", "container": "app"} for n in (0, 1))
    days = 4

    def throttled(age):
        """Of two periods a second 40 % from hour 10 to hour 12 of each day; a counter, so it only grows."""
        day, second = divmod(days * DAY - age, DAY)
        return 0.8 * (day * 2 * HOUR + min(max(second - 10 * HOUR, 0), 2 * HOUR))

    past = [
        Series("used_cores", labels, lambda _: 0.2, days * DAY, 1800),
        Series("used_bytes", labels, lambda _: 100 << 20, days * DAY, 1800),
        Series("container_cpu_cfs_periods_total", labels, lambda age: (days * DAY - age) * 2.0, days * DAY, 60),
        Series("container_cpu_cfs_throttled_periods_total", labels, throttled, days * DAY, 60),
        Series(
            "kube_pod_container_status_last_terminated_reason",
            {**gone, "reason": "OOMKilled"},
            lambda age: 1.0 if 2 * DAY < age < 2 * DAY + HOUR else None,
            days * DAY,
            60,
        ),
    ]
    cluster = tmp_path / "pods.json"
    cluster.write_text(json.dumps({"kind": "List", "items": [pod("web", "n1", RESOURCES)]}))
    with RealPrometheus(tmp_path, past) as server:
        where = ["--prometheus", server.url, "--history", f"{days * 24}h", "--step", "30m"]
        asks = ["--cpu-query", "used_cores", "--memory-query", "used_bytes", "--now", NOW.isoformat()]
        few = ["--min-days", "2", "--min-samples", "20", "--snapshot", str(cluster), "-o", "json"]
        found = container_of(CliRunner().invoke(main, ["recommend", *where, *asks, *few]))

    killed, squeezed = found["remarks"]
    assert killed == "OOM killed in 1 pod: memory raised to 615Mi"
    assert squeezed == "throttled in 40 % of its cpu periods on 4 days: its limit of cpu raised to 700m"
    assert (found["recommended"]["cpuRequest"], found["recommended"]["cpuLimit"]) == ("525m", "700m")
