"""`doctor`: what runs depend on, each finding with its cure."""

import json
from pathlib import Path

import pytest

from rebalancer.policy.moving import HOLD_KEY
from tests.fake_servers import Reply
from tests.functional.objects import OLD, old_pods, pdb, pod, policy, two_nodes_with
from tests.functional.objects import node as a_node

CLUSTER = Path(__file__).parents[2] / "examples" / "cluster.json"
AVOID = {"key": "kube-rebalancer/avoid", "value": "r", "effect": "PreferNoSchedule"}
OTHER = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "old", "namespace": "kube-system"},
    "spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"image": "k8s/descheduler:v0.36.0"}]}}}}},
}


@pytest.fixture
def cluster(server):
    """A server of 1.36 with two nodes and three pods of one owner, of which a PDB lets two go."""
    server.on("GET", "/version", lambda _: Reply(200, {"gitVersion": "v1.36.3", "minor": "36"}))
    server.add(*two_nodes_with(*old_pods("a", "b", "c")))
    server.add(pdb("web", allowed=2))
    server.add({**OTHER, "metadata": {"name": "nightly", "namespace": "default"}, "spec": {}})
    return server


@pytest.fixture
def doctor(cluster, rebalancer):
    def call(*options, **top):
        asked = rebalancer.policy(policy(OLD, **top))
        return rebalancer.at(cluster, "doctor", "--policy", asked, "-o", "json", *options)

    return call


def checks(done):
    return {each["check"]: each for each in json.loads(done.stdout)["checks"]}


def test_all_is_well(doctor, cluster):
    """Exit code 0; nothing is sent but reads and questions about permissions."""
    done = doctor()

    assert (done.exit_code, {each["state"] for each in checks(done).values()}) == (0, {"fine"}), done.stdout
    assert "v1.36.3" in checks(done)["version"]["says"]
    assert {each.path for each in cluster.requests if each.method != "GET"} == {
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    }


@pytest.mark.parametrize(
    ("change", "check", "says", "cure"),
    [
        (pdb("web", allowed=0), "PDBs", "default/web", "drains"),
        (pdb("web", allowed=2, app="other"), "owners without a PDB", "web", "only relief spares most"),
        (pod("alone", owner="lonely"), "single replicas", "default/ReplicaSet/lonely", "minReplicas: 2"),
        (a_node("n3", cpu="50m"), "room", "each of 3 ready nodes", ""),
        (OTHER, "other deschedulers", "CronJob kube-system/old", "suspend it"),
        (a_node("n1", taints=[AVOID]), "marks on nodes", "n1", "rebalancer unmark"),
    ],
)
def test_what_is_wrong_is_named_with_its_cure(doctor, cluster, change, check, says, cure):
    """What allows nothing, a single replica, another descheduler and taints of ours end it with exit code 1."""
    cluster.add(change)

    done = doctor()

    found = checks(done)[check]
    assert (says in found["says"], cure in found["cure"]) == (True, True), found
    assert done.exit_code == int(found["state"] == "wrong")


def test_taints_under_the_policys_own_key_are_ours_too(doctor, cluster):
    cluster.add(a_node("n1", taints=[{**AVOID, "key": "example.com/avoid"}]))

    assert checks(doctor())["marks on nodes"]["state"] == "fine"
    assert "n1 (example.com/avoid=r)" in checks(doctor(steering={"key": "example.com/avoid"}))["marks on nodes"]["says"]


@pytest.mark.parametrize(("year", "state"), [(2099, "fine"), (2020, "wrong")])
def test_a_hold_that_has_not_expired_is_not_left_over(doctor, cluster, year, state):
    note = json.dumps({"run": "r", "expires": f"{year}-01-01T00:00:00Z"})
    held = a_node("n1", taints=[{**AVOID, "key": HOLD_KEY}])
    held["metadata"]["annotations"] = {HOLD_KEY: note}
    cluster.add(held)

    assert checks(doctor())["marks on nodes"]["state"] == state


@pytest.mark.parametrize("rests", [{"kind": "CronJob", "suspend": True}, {"kind": "Deployment", "replicas": 0}])
def test_a_descheduler_that_does_not_run_is_no_other(doctor, cluster, rests):
    """As docs/migrating.md leaves it; a Job that is still at work counts."""
    kind, spec = rests["kind"], {**OTHER["spec"], **rests}
    version = {"CronJob": "batch/v1", "Deployment": "apps/v1"}[kind]
    cluster.add({**OTHER, "apiVersion": version, "kind": kind, "spec": spec})
    assert checks(doctor())["other deschedulers"]["state"] == "fine"

    cluster.add({**OTHER, "spec": {**OTHER["spec"], "suspend": True}, "status": {"active": [{"name": "old-1"}]}})
    assert checks(doctor())["other deschedulers"]["says"] == "CronJob kube-system/old"


def test_the_deprecated_switch_sets_up_a_source_too(doctor, cluster):
    """Its permissions are asked for, and the policy is not said to ask for no usage."""
    cluster.forbid("list", "pods.metrics.k8s.io")

    found = checks(doctor(metricsCollector={"enabled": True}))

    assert found["usage"]["says"] == "KubernetesMetrics is asked by the strategies: see there"
    assert found["usage"]["state"] == "unknown"  # nobody has asked it, so it is not called silent
    assert found["permissions"]["says"] == "a live run may not list pods.metrics.k8s.io"


def test_permissions_are_those_of_the_policy(doctor, cluster):
    """All that are missing at once, with their rules: for steering and memory too."""
    for verb, resource in (("patch", "nodes"), ("update", "configmaps"), ("list", "poddisruptionbudgets.policy")):
        cluster.forbid(verb, resource)

    found = checks(doctor(steering={}, trust={}))["permissions"]

    assert found["says"] == "a live run may not list poddisruptionbudgets.policy, patch nodes, update configmaps"
    assert '{apiGroups: ["policy"], resources: [poddisruptionbudgets], verbs: [list]}' in found["cure"]


def test_roles_may_be_for_one_lease_and_one_config_map(doctor, cluster):
    """As the chart makes them, in the namespace of the Lease alone."""
    doctor(trust={})

    reviews = [each.body["spec"]["resourceAttributes"] for each in cluster.requests if each.method == "POST"]
    asked = {(each["verb"], each["resource"]): (each["namespace"], each["name"]) for each in reviews}
    lease, memory = ("kube-system", "rebalancer"), ("kube-system", "kube-rebalancer-memory")
    assert asked["get", "leases"] == asked["update", "leases"] == lease
    assert asked["create", "leases"] == ("kube-system", "")
    assert asked["get", "configmaps"] == asked["update", "configmaps"] == memory
    assert asked["list", "pods"] == ("", "")


def test_a_pdb_without_pods_holds_nothing_up(doctor, cluster):
    cluster.add(pdb("empty", allowed=0, app="nobody"))

    assert checks(doctor())["PDBs"]["state"] == "fine"


def test_the_cluster_is_looked_at_outside_the_windows_too(doctor):
    """The strategies were not tried, so they are not called fine."""
    found = checks(doctor(freeze=[{"from": "2020-01-01", "to": "2099-12-31"}]))

    assert (found["strategies"]["state"], found["PDBs"]["state"]) == ("unknown", "fine")
    assert "a freeze lasts" in found["strategies"]["says"]
    assert found["room"]["says"] == "each of 2 ready nodes has some"


def test_without_pdbs_nobody_is_said_to_have_none(rebalancer):
    file = rebalancer.cluster(*two_nodes_with(*old_pods("a", "b")))

    done = rebalancer("doctor", "--snapshot", file, "--policy", rebalancer.policy(policy(OLD)), "-o", "json")

    assert checks(done)["owners without a PDB"]["state"] == "unknown"


def test_a_file_is_checked_without_what_only_a_server_can_say(rebalancer):
    """Owners without a PDB are told by name."""
    done = rebalancer("doctor", "--snapshot", CLUSTER, "--policy", "demo")

    assert done.exit_code == 1
    assert "wrong    owners without a PDB: 5: shop/ReplicaSet/api-7c9d" in done.stdout
    assert "version" not in done.stdout


@pytest.mark.parametrize(
    ("name", "age", "check", "state", "says"),
    [
        ("rebalancer", 0, "Lease", "fine", "rebalancer is held by host_1: a run is at work"),
        ("rebalancer", 3600, "Lease", "fine", "rebalancer is left over from host_1"),
        ("descheduler", 0, "other deschedulers", "wrong", "Lease kube-system/descheduler of host_1"),
        ("descheduler", 3600, "other deschedulers", "fine", "none"),
    ],
)
def test_leases_are_told_with_their_holders(doctor, cluster, name, age, check, state, says):
    """One that is renewed is somebody's turn; another one is left over from a run that was killed."""
    cluster.leases.hold("host_1", name, age=age, duration=15)

    found = checks(doctor())[check]

    assert (found["state"], says in found["says"]) == (state, True), found


def test_a_lease_of_ones_own_is_no_other_descheduler(doctor, cluster):
    """A values file of the descheduler's chart may carry its name over."""
    cluster.leases.hold("host_1", "descheduler", age=0, duration=15)

    found = checks(doctor("--leader-elect-resource-name", "descheduler"))

    assert (found["other deschedulers"]["state"], "by host_1" in found["Lease"]["says"]) == ("fine", True)
    elsewhere = doctor("--leader-elect-resource-name", "descheduler", "--leader-elect-resource-namespace", "ops")
    assert "of host_1" in checks(elsewhere)["other deschedulers"]["says"]


@pytest.mark.parametrize("body", ["<html>Please log in</html>", []])
def test_pages_of_a_proxy_are_findings(doctor, cluster, body):
    """As is all that could not be read."""
    cluster.heal()
    for path in ("/version", "/apis/apps/v1/deployments"):
        cluster.fail("GET", path, status=200, body=body, headers={"Date": "today"})
    cluster.fail("POST", "*/selfsubjectaccessreviews", status=200, body=body)

    found = checks(doctor())

    assert "of an unknown version" in found["version"]["says"]
    assert "Deployments" in found["other deschedulers"]["says"]
    assert (found["permissions"]["state"], found["Lease"]["state"]) == ("unknown", "fine")
