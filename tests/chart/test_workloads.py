"""What runs: pods, Jobs and Deployments as the values ask for them."""

from pathlib import Path

import pytest
import yaml

from tests.chart.helm import CHART, CI, container, every, kinds, needed, one, pod_spec, pod_template, refusal, template

pytestmark = needed

#: Parts of what values of the descheduler's chart have to come to.
RENDERED = Path(__file__).with_name("rendered")


def args(values):
    found: list[str] = container(template(values))["args"]
    return found


def test_no_job_runs_twice():
    """Not at once, not again after a failure, and not beyond its schedule: it would have fresh limits."""
    cron_job, job = template(), template("kind: Job")

    assert one(cron_job, "CronJob")["spec"]["concurrencyPolicy"] == "Forbid"
    for spec in (one(cron_job, "CronJob")["spec"]["jobTemplate"]["spec"], one(job, "Job")["spec"]):
        assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (0, "Never")
        assert spec["activeDeadlineSeconds"] > 300


@pytest.mark.parametrize(
    ("schedule", "ended_after", "no_eviction_after"),
    [
        ("*/10 * * * *", 540, "300s"),
        ("*/2 * * * *", 108, "72s"),
        ("*/1 * * * *", 54, "36s"),
        ("* * * * *", 54, "36s"),
        ("0 3 * * *", 540, "300s"),
        ("*/5 8-18 * * 1-5", 270, "180s"),
        ("7 8-18 * * 1-5", 540, "300s"),
        ("@hourly", 540, "300s"),
        ("@every 10m", 540, "300s"),
    ],
)
def test_a_run_ends_before_the_next_one(schedule, ended_after, no_eviction_after):
    """And stops evicting in time to end by itself."""
    found = template({"schedule": schedule})

    assert one(found, "CronJob")["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] == ended_after
    assert f"--deadline={no_eviction_after}" in container(found)["args"]


def test_a_deadline_of_ones_own_counts():
    assert "--deadline=40s" in args("activeDeadlineSeconds: 60")
    assert [each for each in args("cmdOptions: {deadline: 2m}") if "deadline" in each] == ["--deadline=2m"]


def differing(expected, found, path=""):
    """The paths of what is expected and not so; maps may hold more."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            yield from differing(value, found.get(key), f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for place, pair in enumerate(zip(expected, found, strict=True)):
            yield from differing(*pair, f"{path}.{place}")
    elif expected != found:
        yield f"{path} is {found!r}"


@pytest.mark.parametrize("file", sorted(RENDERED.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_values_of_the_deschedulers_chart_keep_their_meaning(file):
    found = template((CHART / "ci" / file.name).read_text())

    for expected in yaml.safe_load_all(file.read_text()):
        assert list(differing(expected, one(found, expected["kind"]))) == []


def test_the_objects_of_the_deschedulers_chart_fit_each_other():
    """Those of a CronJob are no more than it needs; what watches a Deployment finds it."""
    found, loop = (
        template((CHART / "ci" / f"descheduler{name}values.yaml").read_text()) for name in ("-", "-deployment-")
    )
    service, monitor = one(loop, "Service"), one(loop, "ServiceMonitor")

    assert kinds(found) == [
        "ClusterRole", "ClusterRoleBinding", "ConfigMap", "CronJob", "Role", "Role", "RoleBinding", "RoleBinding",
        "ServiceAccount",
    ]  # fmt: skip
    assert "nodeSelector: team=rebalancer" in one(found, "ConfigMap")["data"]["policy.yaml"]
    assert service["spec"]["selector"].items() <= pod_template(loop)["metadata"]["labels"].items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


def test_the_older_spelling_of_the_lease_namespace_wins():
    """As in the descheduler's chart; the permission follows."""
    values = """
    kind: Deployment
    leaderElection: {enabled: true, resourceNamespace: right, resourceNamescape: misspelt}
    """
    found = template(values)

    assert "--leader-elect-resource-namespace=misspelt" in container(found)["args"]
    assert one(found, "Role", "-lease")["metadata"]["namespace"] == "misspelt"


@pytest.mark.parametrize("values", ["{dryRun: true, cmdOptions: {dry-run: false}}", "extraArgs: [--dry-run]"])
def test_a_dry_run_by_one_value_is_one(values):
    """Whatever another says; and what marks beside it is one too."""
    rules = "marking: {enabled: true, rules: {cpu: {query: up, above: 2, below: 1}}}"
    found = template(f"{rules}\n{yaml.safe_dump(yaml.safe_load(values))}")

    (mark,) = one(found, "Deployment", "-mark")["spec"]["template"]["spec"]["containers"]
    for each in (container(found), mark):
        assert {x for x in each["args"] if x.startswith("--dry-run")} == {"--dry-run"}
    assert "pods/eviction" not in str(one(found, "ClusterRole"))


def test_options_are_passed_as_they_are():
    """A value, a switch, a number, and arguments after them."""
    numbers = "max-evictions: 2000000, otel-sample-rate: 0.5"
    found = args(f"{{cmdOptions: {{strict: null, v: 2, color: never, {numbers}}}, extraArgs: [--yes], dryRun: true}}")

    assert {"--strict", "--v=2", "--color=never", "--dry-run"} <= set(found)
    assert {"--max-evictions=2000000", "--otel-sample-rate=0.5"} <= set(found)
    assert found[-1] == "--yes"


@pytest.mark.parametrize("file", CI, ids=lambda file: file.name)
def test_a_pod_is_restricted(file):
    """What Pod Security's level `restricted` asks for, even where a values file replaces parts of it."""
    found = template(file.read_text())
    merged = {**pod_spec(found).get("securityContext", {}), **container(found)["securityContext"]}

    assert merged["runAsNonRoot"] is True
    assert merged["allowPrivilegeEscalation"] is False
    assert merged["readOnlyRootFilesystem"] is True
    assert merged["capabilities"] == {"drop": ["ALL"]}
    assert merged["seccompProfile"] == {"type": "RuntimeDefault"}


def test_system_priority_is_for_kube_system():
    """Elsewhere a quota may forbid it, and the pod would never start; a class of one's own is kept."""
    assert pod_spec(template())["priorityClassName"] == "system-cluster-critical"
    assert "priorityClassName" not in pod_spec(template(namespace="tools"))
    assert pod_spec(template("priorityClassName: own", namespace="tools"))["priorityClassName"] == "own"


def test_one_replica_is_never_two():
    """An update ends the old one first; with a leader the new one may wait beside it."""
    alone = one(template("kind: Deployment"), "Deployment")["spec"]
    several = one(template("{kind: Deployment, replicas: 2, leaderElection: {enabled: true}}"), "Deployment")["spec"]

    assert (alone["replicas"], alone["strategy"]) == (1, {"type": "Recreate"})
    assert (several["replicas"], "strategy" in several) == (2, False)


@pytest.mark.parametrize("kind", ["CronJob", "Job", "Deployment"])
def test_leader_election_may_be_null(kind):
    """Helm drops a section that is null; what remains is one replica without election."""
    assert "--leader-elect" not in str(container(template(f"{{kind: {kind}, leaderElection: null}}")))


def test_replicas_keep_apart():
    """Over nodes and zones, unless the values say otherwise; one replica has nobody to avoid."""
    several = "kind: Deployment\nreplicas: 2\nleaderElection: {enabled: true}\n"
    own = several + "affinity: {nodeAffinity: {}}\ntopologySpreadConstraints: [{maxSkew: 2}]\n"

    assert "affinity" not in pod_spec(template("kind: Deployment"))
    assert "topologySpreadConstraints" not in pod_spec(template("kind: Deployment"))
    spec = pod_spec(template(several))
    assert "podAntiAffinity" in spec["affinity"]
    assert spec["topologySpreadConstraints"][0]["topologyKey"] == "topology.kubernetes.io/zone"
    assert pod_spec(template(own))["affinity"] == {"nodeAffinity": {}}
    assert pod_spec(template(own))["topologySpreadConstraints"] == [{"maxSkew": 2}]


def test_what_needs_a_newer_kubernetes_is_left_out_on_an_older_one():
    """Or refused, where leaving it out would change the meaning."""
    values = "{kind: Deployment, replicas: 2, leaderElection: {enabled: true}, podDisruptionBudget: {enabled: true}}"
    old, new = (template(values, kubernetes=version) for version in ("1.26.0", "1.27.0"))

    assert "unhealthyPodEvictionPolicy" not in one(old, "PodDisruptionBudget")["spec"]
    assert one(new, "PodDisruptionBudget")["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert "matchLabelKeys" not in pod_spec(old)["topologySpreadConstraints"][0]
    assert "matchLabelKeys" in pod_spec(new)["topologySpreadConstraints"][0]
    assert "timeZone needs Kubernetes 1.25" in refusal("timeZone: Etc/UTC", kubernetes="1.24.0")


def test_probes_follow_the_port():
    """A port of one's own moves them, the Service and the NetworkPolicy; without a port there are none."""
    switched = "kind: Deployment\nservice: {enabled: true}\nnetworkPolicy: {enabled: true}\n"
    moved = template(switched + "cmdOptions: {secure-port: 10443}")
    silent = template(switched + "cmdOptions: {secure-port: 0}")

    program = container(moved)
    assert [program[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")] == [10443, 10443]
    assert program["ports"][0]["containerPort"] == 10443
    assert one(moved, "Service")["spec"]["ports"][0]["targetPort"] == 10443
    assert one(moved, "NetworkPolicy")["spec"]["ingress"][0]["ports"][0]["port"] == 10443
    assert not {"ports", "livenessProbe", "readinessProbe"} & set(container(silent))
    assert "ingress" not in one(silent, "NetworkPolicy")["spec"]
    assert "Service" not in kinds(silent)


def test_a_network_policy_closes_what_is_not_listed():
    """Without egress rules everything can be reached; with them, only what they name."""
    egress = [{"ports": [{"port": 443}]}]
    without, listed = (
        one(template({"networkPolicy": {"enabled": True, **more}}), "NetworkPolicy")["spec"]
        for more in ({}, {"egress": egress})
    )

    assert (without["policyTypes"], without.get("egress")) == (["Ingress"], None)
    assert (listed["policyTypes"], listed["egress"]) == (["Ingress", "Egress"], egress)


def test_a_changed_policy_rolls_the_deployment():
    """The pod has a checksum of it, whichever way the policy is given; and of the scheduler's configuration."""
    policies = ("", "policy: {preset: usage-pack}", "policy: {text: 'profiles: []'}")
    configurations = ("schedulerConfig: {text: 'kind: A'}", "schedulerConfig: {text: 'kind: B'}")
    annotations = [pod_template(template(values))["metadata"]["annotations"] for values in (*policies, *configurations)]

    assert len({each["checksum/config"] for each in annotations}) == 5


def test_probes_and_monitors_follow_plain_http():
    """Served on request, and asked for in the same way; also by what marks beside it."""
    rules = {"enabled": True, "rules": {"cpu": {"query": "up", "above": 2, "below": 1}}}
    values = {"kind": "Deployment", "cmdOptions": {"insecure-http": True}, "marking": rules}
    monitors = {"service": {"enabled": True}, "serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}
    found = template({**values, **monitors})

    (mark,) = one(found, "Deployment", "-mark")["spec"]["template"]["spec"]["containers"]
    for each in (container(found), mark):
        assert {each[probe]["httpGet"]["scheme"] for probe in ("livenessProbe", "readinessProbe")} == {"HTTP"}
        assert any(argument.startswith("--insecure-http") for argument in each["args"])
    endpoints = [end for each in every(found, "ServiceMonitor") for end in each["spec"]["endpoints"]]
    endpoints += [end for each in every(found, "PodMonitor") for end in each["spec"]["podMetricsEndpoints"]]
    assert [each["scheme"] for each in endpoints] == ["http"] * 4


@pytest.mark.parametrize("kind", ["CronJob", "Job"])
def test_a_monitor_of_runs_that_end_is_refused(kind):
    """With what to do instead; that of a marking Deployment beside them is not."""
    values = f"kind: {kind}\nservice: {{enabled: true}}\nserviceMonitor: {{enabled: true}}\n"
    said = refusal(values)

    assert f"serviceMonitor.enabled: a {kind} has ended before it could be scraped" in said
    assert "pushgateway.url" in said
    assert "prometheusRule.enabled=true" in said
    rules = "marking: {enabled: true, rules: {cpu: {query: up, above: 2, below: 1}}}"
    assert one(template(values + rules), "ServiceMonitor")["metadata"]["name"].endswith("-mark")


def test_metrics_of_short_runs_go_to_a_pushgateway():
    assert "--pushgateway=http://push:9091" in args("pushgateway: {url: 'http://push:9091'}")
    assert not [each for each in args("") if each.startswith("--pushgateway")]
