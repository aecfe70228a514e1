"""What is read so that the scheduler's choice can be foreseen, and in `--scheduler-config`; what happens without it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rebalancer.kube.wire.pages import PATHS
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS
from tests.fake_servers import FakeLoadWatcher
from tests.functional.objects import OLD, node, node_usage, old_pods, pod, pod_usage, policy, two_nodes_with

#: Beside nodes, pods, PDBs and PriorityClasses.
KINDS = {PATHS[kind] for kind in SCHEDULER_KINDS}
RELIEF = {"source": "KubernetesMetrics", "selection": "relief"}


@pytest.fixture
def busy(server):
    """A node that is too full, one that is empty, and what they use."""
    server.add(node("n1"), node("n2"), pod("a"), pod("b"))
    server.add(node_usage("n1", "3"), node_usage("n2", "100m"), pod_usage("a", "1"), pod_usage("b", "1"))
    return server


def by_usage(**usage):
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}, "metricsUtilization": {**RELIEF, **usage}}
    providers = [{"source": "KubernetesMetrics"}]
    return policy(("LowNodeUtilization", args), metricsProviders=providers, maxNoOfPodsToEvictTotal=5)


def listed(server):
    return {each.path for each in server.sent("GET", "*")} & KINDS


def told(outcome):
    return [each for each in outcome.report["warnings"] if each.startswith("where the scheduler puts pods")]


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        pytest.param(by_usage(), KINDS, id="relief asks the scheduler"),
        pytest.param(by_usage(scheduler="unknown") | {"trust": {"enabled": False}}, set(), id="it is unknown"),
        pytest.param(by_usage(selection=None), set(), id="the descheduler's rules"),
        pytest.param(policy(OLD), set(), id="nothing is balanced"),
    ],
)
def test_only_a_policy_that_asks_the_scheduler_reads_all_that_it_goes_by(busy, rebalancer, asked, kinds):
    """Each kind once: reading costs time and permissions."""
    outcome = rebalancer.run(busy, asked, "--dry-run")

    assert outcome.exit_code == 0, outcome.stderr
    assert sorted(each.path for each in busy.sent("GET", "*") if each.path in KINDS) == sorted(kinds)
    assert told(outcome) == []


def test_node_fit_by_the_scheduler_reads_it_as_well(busy, rebalancer):
    """Both pods stay: the API server has no ReplicaSet, so nobody knows what comes in their place."""
    outcome = rebalancer.run(busy, policy(OLD, evictor={"nodeFit": "scheduler"}), "--dry-run")

    assert outcome.exit_code == 0, outcome.stderr
    assert listed(busy) == KINDS
    assert [each["by"] for each in outcome.report["refusals"]] == ["NodeFit", "NodeFit"]
    assert {each["reason"] for each in outcome.report["refusals"]} == {
        "it is not known whether its replacement fits: ReplicaSet web was not read"
    }


def test_all_that_is_missing_is_one_warning(busy, rebalancer):
    """The run goes on; rules come by API group, and the words of the API server where it is not about a permission."""
    for resource in ("services", "jobs.batch", "replicasets.apps", "deployments.apps"):
        busy.forbid("list", resource)
    busy.fail("GET", PATHS["CSIStorageCapacity"], status=404, message="the server could not find it")

    outcome = rebalancer.run(busy, by_usage(), "--dry-run")

    assert outcome.exit_code == 0, outcome.stderr
    (warning,) = told(outcome)
    assert warning == (
        "where the scheduler puts pods is unknown in part: "
        "no permission to list deployments.apps, jobs.batch, replicasets.apps, services: add to the ClusterRole "
        "{apiGroups: [apps], resources: [deployments, replicasets], verbs: [list]}, "
        "{apiGroups: [batch], resources: [jobs], verbs: [list]}, "
        '{apiGroups: [""], resources: [services], verbs: [list]}; '
        "the API server answers 404 to GET /apis/storage.k8s.io/v1/csistoragecapacities: the server could not find it"
    )


def test_what_the_policy_needs_by_itself_must_be_read(busy, rebalancer):
    """Labels of namespaces may protect pods: without them nothing is decided."""
    busy.forbid("list", "namespaces")
    evictor = {"namespaceLabelSelector": {"matchLabels": {"tier": "gold"}}}

    outcome = rebalancer.run(busy, policy(OLD, evictor=evictor), "--dry-run")

    assert (outcome.exit_code, outcome.stdout) == (3, "")
    assert "no permission to list namespaces" in outcome.stderr


def test_a_snapshot_holds_them(busy, rebalancer):
    """Whatever a policy will ask; what may not be read is named in one warning, with the rules; pods are a must.

    They are read first: a claim that is made later than the list of claims would look as if it were missing.
    """
    busy.forbid("list", "jobs.batch")
    busy.forbid("list", "services")
    busy.fail("GET", PATHS["CSIStorageCapacity"], status=404, message="the server could not find it")
    path = rebalancer.folder / "cluster.json"

    outcome = rebalancer.at(busy, "snapshot", "--output", path)

    assert outcome.exit_code == 0
    assert listed(busy) == KINDS
    assert "0 ReplicaSet" in outcome.stdout
    (warning,) = outcome.stderr.splitlines()
    assert "left out: no permission to list services, jobs.batch: add to the ClusterRole {" in warning
    assert warning.endswith("csistoragecapacities: the server could not find it")
    paths = [each.path for each in busy.sent("GET", "*")]
    assert paths.index("/api/v1/pods") < min(map(paths.index, KINDS))

    busy.forbid("list", "pods")
    without_pods = rebalancer.at(busy, "snapshot", "--output", path)
    assert (without_pods.exit_code, "list pods" in without_pods.stderr) == (3, True)


HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PACKING = {**HEAD, "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "packing"}]}


@pytest.fixture
def plan(rebalancer):
    """A dry run on a file with pods of several schedulers."""

    def run(asked, configuration=None):
        pods = [pod("a"), pod("b", schedulerName="packing"), pod("c", schedulerName="packing"), pod("d")]
        metrics = [node_usage(name, "1") for name in ("n1", "n2")]
        file = rebalancer.cluster(node("n1"), node("n2"), *pods, *metrics)
        path = rebalancer.folder / "scheduler.yaml"
        path.write_text(json.dumps(configuration))
        return rebalancer.offline(asked, file, *(("--scheduler-config", path) if configuration else ()))

    return run


def unknown_scheduler(outcome):
    return [each for each in outcome.report["warnings"] if "scheduler" in each and "holds no" not in each]


def test_a_file_without_what_the_scheduler_goes_by_is_one_warning(plan):
    """It names the kinds, and says where a file with all of them comes from."""
    (warning,) = (each for each in plan(by_usage(), PACKING).report["warnings"] if "holds no CSI" in each)

    assert warning.startswith("where the scheduler puts pods is unknown in part: the snapshot holds no CSIDriver, CSI")
    assert warning.endswith("StorageClass, VolumeAttachment; `rebalancer snapshot` writes all kinds")


def test_a_file_without_what_others_scale_and_pause_is_a_warning_too(rebalancer):
    """As a live run says it that may not read these kinds."""
    asked = policy(OLD, trust={})

    warnings = rebalancer.offline(asked, rebalancer.cluster(*two_nodes_with(*old_pods("a")))).report["warnings"]

    held = "what others scale is unknown in part: the snapshot holds no HorizontalPodAutoscaler"
    assert [each for each in warnings if each.startswith(held)]


NOBODY = "where the scheduler puts pods is unknown for packing (pods: 2): --scheduler-config describes other schedulers"


@pytest.mark.parametrize(
    ("asked", "configuration", "said"),
    [
        (by_usage(), None, [NOBODY]),
        (by_usage(), PACKING, []),
        (by_usage(scheduler="unknown"), None, []),
        (policy(OLD), None, []),
    ],
)
def test_pods_of_a_scheduler_that_nobody_described_are_one_warning(plan, asked, configuration, said):
    """Unless a configuration describes it, by its schedulerName, or the policy does not ask the scheduler."""
    assert unknown_scheduler(plan(asked, configuration)) == said


def test_a_configuration_that_cannot_be_used_ends_the_run(plan):
    """Exit code 2, and all that is wrong with file, line and path; also where the policy does not ask."""
    outcome = plan(policy(OLD), {**HEAD, "percentageOfNodesToScore": 101, "profiles": {}})

    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "scheduler.yaml cannot be used:\n" in outcome.stderr
    assert "line 1, percentageOfNodesToScore: 101 is out of range: at most 100" in outcome.stderr
    assert "line 1, profiles: a list is expected, not a map" in outcome.stderr


EXAMPLE = Path(__file__).parents[2] / "examples/trimaran-scheduler.yaml"
#: n1 is busy with `a` and `b`; on n3, which idles, much is requested, and on n2 nothing.
BUSY = (
    *(node("n1"), node("n2"), node("n3")),
    *(pod("rest", "n1", owner="rest", cpu="1m"), pod("big", "n3", owner="big", cpu="2500m")),
    *(pod(name, "n1", owner=name, cpu="400m", schedulerName="trimaran") for name in ("a", "b")),
    *(node_usage(f"n{number}", cpu) for number, cpu in enumerate(("3.8", "1.4", "400m"), 1)),
    *(pod_usage(name, cpu) for name, cpu in (("a", "800m"), ("b", "800m"), ("rest", "2"), ("big", "1m"))),
)


@pytest.fixture
def foreseen(rebalancer):
    """A dry run that brings n1 below 60 %, with nodes below 45 %, beside a scheduler that knows load."""

    def run(source, *providers):
        usage = {"source": source, "selection": "relief", "minFreshNodes": 0}
        args = {"thresholds": {"cpu": 45}, "targetThresholds": {"cpu": 60}, "metricsUtilization": usage}
        wanted = policy(("LowNodeUtilization", args), metricsProviders=[*providers])
        now, file = datetime.now(UTC).isoformat(), rebalancer.cluster(*BUSY)
        report = rebalancer.offline(wanted, file, "--now", now, "--scheduler-config", EXAMPLE).report
        landed = [each["destination"]["nodes"] for each in report["evictions"]]
        return landed, [each for each in report["warnings"] if "goes by the real usage" in each]

    return run


def test_replacements_go_where_the_target_is_not_reached(foreseen):
    """Both to n3: with what they are expected to use it has 25 %, then 40 %; n2 would have 50 %."""
    watched = {name: {"CPU": cpu, "Memory": 5} for name, cpu in (("n1", 95), ("n2", 35), ("n3", 10))}
    with FakeLoadWatcher(watched, datetime.now(UTC) - timedelta(seconds=15)) as server:
        watcher = {"source": "LoadWatcher", "loadWatcher": {"url": server.url}}

        assert foreseen("LoadWatcher", watcher, {"source": "KubernetesMetrics"}) == ([["n3"], ["n3"]], [])


def test_a_scheduler_that_asks_load_watcher_is_unknown_without_it(foreseen):
    """One warning for all pods, with what is missing; they stay."""
    landed, (warning,) = foreseen("KubernetesMetrics", {"source": "KubernetesMetrics"})

    assert landed == []
    assert "pods stay since it is not known where they would land: TargetLoadPacking goes by the real" in warning
    assert "the scheduler asks LoadWatcher: add `- source: LoadWatcher` to the policy's" in warning
