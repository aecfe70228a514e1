"""What a dry run promises: it changes nothing, and a live run does just what it said."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attack.seeds import examples
from tests.fake_api_server import FakeApiServer
from tests.functional.objects import DAY, OLD, node, old_pods, pdb, pod, policy, two_nodes_with
from tests.functional.program import Program

ALWAYS = {"/api/v1/nodes", "/api/v1/pods", "/apis/policy/v1/poddisruptionbudgets"}


def test_a_dry_run_only_reads(server, rebalancer):
    """Whatever it finds to evict, nothing but GET reaches the server, and it says that it was one."""
    for each in two_nodes_with(*old_pods("a", "b")):
        server.add(each)

    outcome = rebalancer.run(server, policy(OLD), "--dry-run")

    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.report["dryRun"] is True
    assert outcome.evicted() == ["default/a", "default/b"]
    assert {request.method for request in server.requests} == {"GET"}
    assert server.events == []


def test_only_what_the_policy_needs_is_read(server, rebalancer):
    """Nodes, pods and PDBs, each once; nobody has to grant a permission that is not used."""
    for each in two_nodes_with():
        server.add(each)

    rebalancer.run(server, policy(OLD), "--dry-run")

    assert sorted(request.path for request in server.requests) == sorted(ALWAYS)


@pytest.mark.parametrize(
    ("evictor", "path"),
    [
        ({"namespaceLabelSelector": {"matchLabels": {"team": "a"}}}, "/api/v1/namespaces"),
        ({"priorityThreshold": {"name": "high"}}, "/apis/scheduling.k8s.io/v1/priorityclasses"),
        (
            {
                "podProtections": {
                    "extraEnabled": ["PodsWithPVC"],
                    "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}},
                }
            },
            "/api/v1/persistentvolumeclaims",
        ),
    ],
    ids=["namespaces", "priority classes", "claims"],
)
def test_other_kinds_are_read_on_demand(server, rebalancer, evictor, path):
    """An evictor argument that looks at a kind has it read, and no other one."""
    server.add(
        {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 9}
    )
    for each in two_nodes_with():
        server.add(each)

    outcome = rebalancer.run(server, policy(OLD, evictor=evictor), "--dry-run")

    assert outcome.exit_code == 0
    assert {request.path for request in server.requests} == ALWAYS | {path}


def test_a_recorded_cluster_gives_the_plan_of_the_live_one(server, rebalancer):
    """`snapshot` writes all that a policy may look at, and `run --snapshot` takes the time from it."""
    rules = policy(OLD, evictor={"namespaceLabelSelector": {"matchLabels": {"team": "a"}}}, maxNoOfPodsToEvictTotal=3)
    for name, team in (("default", "a"), ("other", "b")):
        server.add({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": {"team": team}}})
    pods = [*old_pods("a", "b", "c", "d", "e"), *old_pods("x", namespace="other")]
    for each in (*two_nodes_with(*pods), pdb("web", allowed=2)):
        server.add(each)
    file = rebalancer.folder / "cluster.json.gz"

    written = rebalancer("snapshot", "--kubeconfig", server.kubeconfig(rebalancer.folder), "--output", file)
    live = rebalancer.run(server, rules, "--dry-run").report
    offline = rebalancer(
        "run", "--policy", rebalancer.policy(rules), "--snapshot", file, "--output", "json"
    ).report  # fmt: skip

    assert (written.exit_code, written.stderr) == (0, "")
    assert f"{len(pods)} Pod" in written.stdout
    assert [each["name"] for each in live["evictions"]] == ["a", "b"]
    for part in ("evictions", "refusals"):
        assert _without_reasons(offline[part]) == _without_reasons(live[part])
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
    file = rebalancer.folder / "cluster.json"
    header = {"rebalancer": {"now": recorded}} if recorded else {}
    file.write_text(json.dumps({"kind": "List", "items": two_nodes_with(*pods), **header}))

    arguments = ("run", "--policy", rebalancer.policy(policy(OLD)), "--snapshot", file, "--output", "json", *options)
    report = rebalancer(*arguments).report

    assert (report["now"], report["clock"]) == (now, clock)


def test_an_odd_heartbeat_does_not_set_the_clock_of_an_offline_run(rebalancer):
    """Else every pod would be old enough to go."""
    nodes = [node(f"n{number}") for number in range(1, 4)]
    for each, beat in zip(nodes, ("2026-01-15T12:00:00Z", "2026-01-15T12:01:00Z", "2026-03-01T00:00:00Z"), strict=True):
        each["status"]["conditions"][0]["lastHeartbeatTime"] = beat
    young = pod("a")
    young["metadata"]["creationTimestamp"] = young["status"]["startTime"] = "2026-01-15T12:00:30Z"
    file = rebalancer.folder / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": [*nodes, young]}))

    report = rebalancer(
        "run", "--policy", rebalancer.policy(policy(OLD)), "--snapshot", file, "--output", "json"
    ).report  # fmt: skip

    assert (report["now"], report["clock"]) == ("2026-01-15T12:01:00Z", "newest")
    assert report["evictions"] == []


def test_a_snapshot_leaves_secrets_in_the_cluster(server, rebalancer):
    """Environment variables, commands and arguments are nobody's business."""
    private = pod("a")
    private["spec"]["containers"][0] |= {"env": [{"name": "PASSWORD", "value": "hush"}], "args": ["hush"]}
    private["metadata"]["managedFields"] = [{"manager": "hush"}]
    for each in two_nodes_with(private):
        server.add(each)
    file = rebalancer.folder / "cluster.json"

    rebalancer("snapshot", "--kubeconfig", server.kubeconfig(rebalancer.folder), "--output", file)

    assert "uid-default-a" in file.read_text()
    assert "hush" not in file.read_text()


def test_a_snapshot_leaves_out_what_may_not_be_read(server, rebalancer):
    """Nodes and pods are a must; anything else that is forbidden is left out with a warning."""
    for each in two_nodes_with():
        server.add(each)
    server.forbid("list", "persistentvolumeclaims")
    file = rebalancer.folder / "cluster.json"
    arguments = ("snapshot", "--kubeconfig", server.kubeconfig(rebalancer.folder), "--output", file)

    without_claims = rebalancer(*arguments)
    server.forbid("list", "pods")
    without_pods = rebalancer(*arguments)

    assert without_claims.exit_code == 0
    assert "list persistentvolumeclaims" in without_claims.stderr
    assert without_pods.exit_code == 3
    assert "list pods" in without_pods.stderr


def _without_reasons(entries):
    """A second may pass between two runs, and reasons and causes tell ages."""
    return [{key: value for key, value in each.items() if key not in ("reason", "cause")} for each in entries]


# Dry run and live run, universally

_STRATEGIES = st.lists(
    st.sampled_from(
        [
            ("PodLifeTime", {"maxPodLifeTimeSeconds": 3600}),  # no pod comes of age between the two runs
            ("PodLifeTime", {"states": ["Pending"]}),
            ("RemoveFailedPods", {"minPodLifetimeSeconds": 3600}),
            ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 3}),
            ("RemovePodsViolatingNodeTaints", {}),
        ]
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each[0],
)
_EVICTORS = st.fixed_dictionaries(
    {},
    optional={"nodeFit": st.booleans(), "minReplicas": st.integers(0, 3), "priorityThreshold": st.just({"value": 5})},
)
_LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "maxNoOfPodsToEvictTotal": st.integers(0, 5),
        "maxNoOfPodsToEvictPerNode": st.integers(0, 3),
        "maxNoOfPodsToEvictPerNamespace": st.integers(0, 3),
    },
)
_NODES = st.lists(st.sampled_from(["", "NoSchedule", "NoExecute"]), min_size=2, max_size=3).map(
    lambda effects: [
        node(f"n{number}", taints=[{"key": "out", "effect": effect}] if effect else [])
        for number, effect in enumerate(effects)
    ]
)
_PODS = st.lists(
    st.fixed_dictionaries(
        {
            "node": st.sampled_from(["n0", "n1"]),
            "namespace": st.sampled_from(["default", "other"]),
            "age": st.sampled_from([1, DAY, 2 * DAY]),
            "owner": st.sampled_from(["", "web", "db"]),
            "phase": st.sampled_from(["Running", "Running", "Failed", "Pending"]),
            "ready": st.booleans(),
            "restarts": st.sampled_from([0, 5]),
            "priority": st.sampled_from([0, 10]),
        }
    ),
    max_size=8,
).map(lambda all_fields: [pod(f"p{number}", **fields) for number, fields in enumerate(all_fields)])
_PDBS = st.lists(
    st.tuples(st.sampled_from(["web", "db"]), st.integers(0, 2)), max_size=2, unique_by=lambda each: each[0]
).map(lambda each: [pdb(f"pdb-{app}", app=app, allowed=allowed) for app, allowed in each])
_POLICIES = st.builds(
    lambda strategies, evictor, limits: policy(*strategies, evictor=evictor, **limits), _STRATEGIES, _EVICTORS, _LIMITS
)


@examples(15)
@given(nodes=_NODES, pods=_PODS, pdbs=_PDBS, rules=_POLICIES)
def test_a_live_run_does_what_the_dry_run_said(nodes, pods, pdbs, rules):
    """For any cluster and policy: the same pods in the same order, and the server has nothing to refuse."""
    with FakeApiServer(objects=[*nodes, *pods, *pdbs]) as server, tempfile.TemporaryDirectory() as folder:
        program = Program(Path(folder))

        dry = program.run(server, rules, "--dry-run")
        assert server.evicted == []
        live = program.run(server, rules)

        assert live.exit_code == dry.exit_code == 0
        assert server.evicted == live.evicted() == dry.evicted()
        assert live.refused() == dry.refused()
        assert len(server.sent("POST", "*/eviction")) == len(server.evicted)
