"""`rebalancer recommend --what-if`: all pods placed anew by today's requests and by the recommended ones."""

import json
from datetime import date, timedelta

import pytest
from click.testing import CliRunner

from rebalancer.cli.main import main
from tests.functional import objects
from tests.functional.objects import node

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
