"""What a dry run promises: it changes nothing, and a live run does just what it said."""

import gzip
import json

import pytest

from tests.functional.objects import OLD, old_pods, pdb, pod, policy, two_nodes_with

ALWAYS = {"/api/v1/nodes", "/api/v1/pods", "/apis/policy/v1/poddisruptionbudgets"}
CLASSES = {"protectedStorageClasses": [{"name": "fast"}]}
OF_A_CLASS = {"extraEnabled": ["PodsWithPVC"], "config": {"PodsWithPVC": CLASSES}}


def test_a_dry_run_only_reads(two, rebalancer):
    """And only what the policy needs, once: nobody has to grant a permission that is not used."""
    outcome = rebalancer.run(two, policy(OLD), "--dry-run")

    assert (outcome.exit_code, outcome.stderr, outcome.report["dryRun"]) == (0, "", True)
    assert outcome.evicted() == ["default/a", "default/b"]
    assert sorted(request.path for request in two.requests) == sorted(ALWAYS)
    assert {request.method for request in two.requests} == {"GET"}


@pytest.mark.parametrize(
    ("evictor", "path"),
    [
        ({"namespaceLabelSelector": {"matchLabels": {"team": "a"}}}, "/api/v1/namespaces"),
        ({"priorityThreshold": {"name": "high"}}, "/apis/scheduling.k8s.io/v1/priorityclasses"),
        ({"podProtections": OF_A_CLASS}, "/api/v1/persistentvolumeclaims"),
    ],
    ids=["namespaces", "priority classes", "claims"],
)
def test_other_kinds_are_read_on_demand(server, rebalancer, evictor, path):
    """An evictor argument that looks at a kind has it read, and no other one."""
    server.add(
        {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 9}
    )
    server.add(*two_nodes_with())

    outcome = rebalancer.run(server, policy(OLD, evictor=evictor), "--dry-run")

    assert outcome.exit_code == 0
    assert {request.path for request in server.requests} == ALWAYS | {path}


def test_a_recorded_cluster_gives_the_plan_of_the_live_one(server, rebalancer):
    """`snapshot` writes all that a policy may look at, `-` to a pipe; `run --snapshot` takes the time from it."""
    rules = policy(OLD, evictor={"namespaceLabelSelector": {"matchLabels": {"team": "a"}}}, maxNoOfPodsToEvictTotal=3)
    for name, team in (("default", "a"), ("other", "b")):
        server.add({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": {"team": team}}})
    pods = [*old_pods("a", "b", "c", "d", "e"), *old_pods("x", namespace="other")]
    server.add(*two_nodes_with(*pods), pdb("web", allowed=2))
    file = rebalancer.folder / "cluster.json.gz"

    written, piped = (rebalancer.at(server, "snapshot", "--output", each) for each in (file, "-"))
    live = rebalancer.run(server, rules, "--dry-run").report
    offline = rebalancer.offline(rules, file).report

    assert (written.exit_code, written.stderr, f"{len(pods)} Pod" in written.stdout) == (0, "", True)
    assert json.loads(piped.stdout)["items"] == json.loads(gzip.decompress(file.read_bytes()))["items"]
    assert piped.stderr.startswith("-: 2 Node, 6 Pod, ")
    assert [each["name"] for each in live["evictions"]] == ["a", "b"]
    for part in ("evictions", "refusals"):  # reasons and causes tell ages, and a second may pass between two runs
        first, second = ([each | {"reason": "", "cause": {}} for each in found[part]] for found in (offline, live))
        assert first == second
    assert (offline["clock"], offline["warnings"], offline["cluster"]) == ("snapshot", [], {"file": str(file)})


@pytest.mark.parametrize(
    ("recorded", "options", "now", "clock"),
    [
        (None, (), "2026-01-15T10:00:00Z", "newest"),
        ("2026-01-15T11:00:00Z", (), "2026-01-15T11:00:00Z", "snapshot"),
        ("2026-01-15T11:00:00Z", ("--now", "2026-01-15T12:00:00Z"), "2026-01-15T12:00:00Z", "option"),
    ],
    ids=["the newest time in the file", "as recorded", "as given"],
)
def test_the_clock_of_an_offline_run(rebalancer, recorded, options, now, clock):
    """The report says which time it was taken for, and where that came from."""
    pods = [pod("a"), pod("b")]
    for each, born in zip(pods, ("2026-01-15T09:00:00Z", "2026-01-15T10:00:00Z"), strict=True):
        each["metadata"]["creationTimestamp"] = each["status"]["startTime"] = born
    header = {"rebalancer": {"now": recorded}} if recorded else {}

    report = rebalancer.offline(policy(OLD), rebalancer.cluster(*two_nodes_with(*pods), **header), *options).report

    assert (report["now"], report["clock"]) == (now, clock)
