"""The policy that the chart installs, and the permissions that follow from it."""

import itertools
import json

import pytest
import yaml

from rebalancer.kube.wire.pages import PATHS
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS
from rebalancer.policy.load import load_policy
from rebalancer.run.policies import known_plugins, read_policy
from tests.chart.helm import (
    CHART,
    CI,
    KUBERNETES,
    ROOT,
    container,
    helm,
    kinds,
    needed,
    objects,
    one,
    pod_spec,
    policy_text,
    template,
)
from tests.fake_api_server import FakeApiServer
from tests.fake_http import Reply

PRESETS = sorted((CHART / "presets").glob("*.yaml"))

ALWAYS = {"list nodes", "list pods", "list poddisruptionbudgets"}
LIVE = {"create pods/eviction", "get pods", "create events"}
SCHEDULER = {f"list {PATHS[kind].rpartition('/')[2]}" for kind in SCHEDULER_KINDS}
RESTARTS = {"get deployments", "patch deployments"}
TRUST = {
    *("list namespaces", "list replicationcontrollers", "list deployments", "list replicasets", "list statefulsets"),
    *("list jobs", "list horizontalpodautoscalers"),
}
MARKS = {"get nodes", "patch nodes"}
METRICS = {"list nodes.metrics.k8s.io", "list pods.metrics.k8s.io"}
LEASE = {"create leases", "get leases", "update leases"}


def granted(found, kind="ClusterRole", ending=""):
    """What a role allows: "list pods"; resources of metrics.k8s.io with their group."""
    return {
        f"{verb} {resource}" + (f".{group}" if group == "metrics.k8s.io" else "")
        for rule in one(found, kind, ending)["rules"]
        for verb, group, resource in itertools.product(rule["verbs"], rule["apiGroups"], rule["resources"])
    }


def profile(evictor="{}", strategy="PodLifeTime", args="{}", top=""):
    return f"""
deschedulerPolicy:
  {top}
  profiles:
    - name: p
      pluginConfig:
        - name: DefaultEvictor
          args: {evictor}
        - name: {strategy}
          args: {args}
      plugins:
        deschedule: {{enabled: [{strategy}]}}
"""


def low(usage, top="", evictor="{}"):
    """Values with a strategy that goes by real usage."""
    args = f"{{metricsUtilization: {{{usage}}}}}"
    return profile(evictor, strategy="LowNodeUtilization", args=args, top=top)


def relief(more="", evictor="{}"):
    """Values with a strategy that asks where the scheduler would put pods, unless `more` says otherwise."""
    return low(f"source: LoadWatcher, selection: relief, {more}", evictor=evictor)


def test_presets_are_those_of_the_program():
    """Word for word; the example cluster's is of no use in a cluster."""
    for preset in PRESETS:
        assert preset.read_text() == (ROOT / "policies/presets" / preset.name).read_text(), preset.name
    assert {each.stem for each in PRESETS} == {each.stem for each in (ROOT / "policies/presets").iterdir()} - {"demo"}


@needed
@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.stem)
def test_preset_is_installed_as_it_is(preset):
    assert policy_text(template(f"policy: {{preset: {preset.stem}}}")) == preset.read_text()


@needed
@pytest.mark.parametrize("file", CI, ids=lambda file: file.name)
def test_every_policy_is_valid(file):
    """The program takes what the chart renders without a warning."""
    text = policy_text([each for each in template(file.read_text()) if "policy.yaml" in each.get("data", {})])

    assert load_policy(text, known_plugins(), source=file.name, strict=True).policy.profiles


def test_safe_is_safe():
    """Limits of three kinds, somewhere to go, nothing young, no claims, and rest for what was moved."""
    safe = read_policy("safe", strict=True).policy
    evictor = safe.profiles[0].args["DefaultEvictor"]
    usage = safe.profiles[0].args["LowNodeUtilization"].metrics_utilization

    assert 0 < safe.max_per_node <= safe.max_per_namespace <= safe.max_total
    assert evictor.node_fit
    assert evictor.min_pod_age
    assert "PodsWithPVC" in evictor.protections()
    assert usage.rest.total_seconds() == 35 * 60


@needed
def test_a_policy_of_ones_own_is_not_mixed_with_the_preset():
    """Nothing of ours leaks in: no limit, no source, no profile."""
    text = policy_text(template(profile()))

    assert set(yaml.safe_load(text)) == {"apiVersion", "kind", "profiles"}
    assert "safe" not in text


@needed
def test_a_policy_as_text_is_taken_as_it_is():
    """Braces and all: only deschedulerPolicy is a template."""
    text = 'apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: [] # {{ "x" }}\n'

    assert policy_text(template({"policy": {"text": text}})) == text


@needed
@pytest.mark.parametrize("others", [{}, {"a.yaml": "kind: A"}, {"z.yaml": "kind: Z"}])
def test_a_policy_as_text_may_be_a_config_map(others):
    """As the program reads one, like that of examples/kubernetes: the permissions are those of the policy in it."""
    safe = (CHART / "presets/safe.yaml").read_text()
    config_map = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {"p.yaml": safe, **others}})

    for text in (config_map, (ROOT / "examples/kubernetes/policy.yaml").read_text()):
        found = template({"policy": {"text": text}, "steering": {"enabled": True}})
        assert policy_text(found).startswith(safe)
        assert granted(found) == granted(template("steering: {enabled: true}")) >= SCHEDULER | TRUST | METRICS


@needed
@pytest.mark.parametrize("more", ["", "schedulerConfig: {text: 'kind: KubeSchedulerConfiguration'}"])
def test_a_policy_may_be_in_a_config_map_of_ones_own(more):
    """Mounted where the program reads it, beside the scheduler's configuration; no other policy is installed."""
    found = template("policy: {configMapName: ours, key: p.yaml}\n" + more)

    (volume,) = (each for each in pod_spec(found)["volumes"] if each["name"] == "policy-volume")
    first, *others = volume["projected"]["sources"]
    assert first == {"configMap": {"name": "ours", "items": [{"key": "p.yaml", "path": "policy.yaml"}]}}
    assert others == ([{"configMap": {"name": "rebalancer"}}] if more else [])
    assert "--policy-config-file=/policy-dir/policy.yaml" in container(found)["args"]
    assert not [each for each in found if "policy.yaml" in each.get("data", {})]


@needed
@pytest.mark.parametrize(("more", "marks"), [("", set()), ("steering: {enabled: true}", MARKS)])
def test_a_policy_that_the_chart_does_not_see_may_read_all_that_policies_read(more, marks):
    """And no Secrets; nodes are changed where the values say so."""
    found = template("policy: {configMapName: ours}\n" + more)

    assert granted(found) == ALWAYS | LIVE | SCHEDULER | TRUST | METRICS | {"list priorityclasses"} | marks


#: By what is wanted, values and what they may do more.
NEEDS = {
    "nothing more": (profile(), set()),
    "namespaces": (profile("{namespaceLabelSelector: {matchLabels: {a: b}}}"), {"list namespaces"}),
    "anti-affinity": (profile(strategy="RemovePodsViolatingInterPodAntiAffinity"), {"list namespaces"}),
    "priority by name": (profile("{priorityThreshold: {name: high}}"), {"list priorityclasses"}),
    "priority by value": (profile("{priorityThreshold: {value: 9}}"), set()),
    "all claims": (profile("{podProtections: {extraEnabled: [PodsWithPVC]}}"), set()),
    "claims of a class": (
        profile(
            "{podProtections: {extraEnabled: [PodsWithPVC], "
            "config: {PodsWithPVC: {protectedStorageClasses: [{name: gold}]}}}}"
        ),
        {"list persistentvolumeclaims"},
    ),
    "claims of a class, older spelling": (
        profile(
            "{ignorePvcPods: true, podProtections: {config: {PodsWithPVC: {protectedStorageClasses: [{name: gold}]}}}}"
        ),
        {"list persistentvolumeclaims"},
    ),
    "metrics-server": (low("source: KubernetesMetrics", "metricsProviders: [{source: KubernetesMetrics}]"), METRICS),
    "metrics-server, older spelling": (low("metricsServer: true", "metricsCollector: {enabled: true}"), METRICS),
    "pods' usage beside load-watcher": (
        low("source: LoadWatcher", "metricsProviders: [{source: LoadWatcher}, {source: KubernetesMetrics}]"),
        METRICS,
    ),
    "metrics-server, unused": (profile(top="metricsProviders: [{source: KubernetesMetrics}]"), set()),
    "steering": (profile(top="steering: {}"), SCHEDULER | MARKS),
    "steering by an option": (profile() + "\ncmdOptions: {steer: null}", SCHEDULER | MARKS),
    "steering that is switched off": (profile() + "\ncmdOptions: {steer: false}", set()),
    "nodeFit asks the scheduler": (profile("{nodeFit: scheduler}"), SCHEDULER),
    "nodeFit by the descheduler's rule": (profile("{nodeFit: true}"), set()),
    "relief asks the scheduler": (relief(), SCHEDULER | TRUST),
    "relief that says so": (relief("scheduler: default"), SCHEDULER | TRUST),
    "compaction asks, too": (
        profile(strategy="HighNodeUtilization", args="{selection: compaction}"),
        SCHEDULER | TRUST,
    ),
    "relief with an unknown scheduler": (relief("scheduler: unknown"), TRUST),
    "relief and namespaces": (relief(evictor="{namespaceLabelSelector: {matchLabels: {a: b}}}"), SCHEDULER | TRUST),
    "trust that is asked for": (profile(top="trust: {}"), TRUST),
    "trust by appetite": (profile(top="appetite: 2"), TRUST),
    "trust that is switched off, with an appetite": (profile(top="trust: {enabled: false}\n  appetite: 2"), set()),
    "trust that is switched off": (profile(top="trust: {enabled: false}"), set()),
    "no restarts": (profile(top="trust: {restart: false}"), TRUST),
    "restarts of rollouts": (profile(top="trust: {restart: true}"), TRUST | RESTARTS),
    "restarts of some rollouts": (profile(top="trust: {restart: annotated}"), TRUST | RESTARTS),
    "restarts that are switched off": (profile(top="trust: {enabled: false, restart: true}"), set()),
}


@needed
@pytest.mark.parametrize(("values", "more"), NEEDS.values(), ids=NEEDS)
def test_permissions_are_those_that_the_policy_needs(values, more):
    """And no more, in the cluster and in the namespace of the Lease."""
    found = template(values)

    assert granted(found) == ALWAYS | LIVE | more
    assert granted(found, "Role", "-lease") == LEASE
    remembers = [each for each in found if each["metadata"]["name"].endswith("-memory")]
    assert bool(remembers) == ("list horizontalpodautoscalers" in more)


@needed
def test_a_token_is_readable_by_name():
    """One Secret, in its own namespace, and only where a strategy asks Prometheus."""
    secret = "{namespace: monitoring, name: token}"
    source = f"metricsProviders: [{{source: Prometheus, prometheus: {{authToken: {{secretReference: {secret}}}}}}}]"
    asking, silent = template(low("source: Prometheus", source)), template(profile(top=source))

    role = one(asking, "Role", "-token")
    assert role["metadata"]["namespace"] == "monitoring"
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["token"], "verbs": ["get"]}
    ]
    assert one(asking, "RoleBinding", "-token")["subjects"][0]["namespace"] == "kube-system"
    assert not [each for each in silent if each["metadata"]["name"].endswith("-token")]


SOURCES = """metricsProviders:
    - {source: KubernetesMetrics}
    - {source: Prometheus, prometheus: {authToken: {secretReference: {namespace: monitoring, name: token}}}}"""


@needed
@pytest.mark.parametrize(
    ("more", "reads", "has_token"),
    [
        ("", set(), False),
        ("marking: {enabled: true, rules: {cpu: {query: load, above: 80, below: 70}}}", METRICS | MARKS, True),
        ("schedulerConfig: {text: '{}'}", METRICS, False),
    ],
)
def test_sources_may_be_asked_by_others_than_strategies(more, reads, has_token):
    """By rules of marking, and by a scheduler that goes by load."""
    found = template(f"{profile(top=SOURCES)}\n{more}")

    assert granted(found) == ALWAYS | LIVE | reads
    assert any(each["metadata"]["name"].endswith("-token") for each in found) == has_token


@needed
@pytest.mark.parametrize("values", ["dryRun: true", "cmdOptions: {dry-run: true}", 'cmdOptions: {dry-run: "true"}'])
def test_a_dry_run_may_not_evict(values):
    """It reads what stands in the way of live runs, which is in the Lease too, where there is something to read."""
    found = template(values + "\npolicy: {preset: usage-prometheus}")

    assert granted(found) == ALWAYS | SCHEDULER | TRUST
    assert (granted(found, "Role", "-memory"), granted(found, "Role", "-lease")) == ({"get configmaps"}, {"get leases"})
    assert "Role" not in kinds(template(values + "\npolicy: {preset: safe-without-metrics}"))
    assert granted(template("cmdOptions: {dry-run: false}")) >= LIVE


@needed
@pytest.mark.parametrize(("release", "name"), [("rebalancer", "kube-rebalancer-memory"), ("b", "b-memory")])
def test_each_release_has_a_memory_of_its_own(release, name):
    """A ConfigMap without data, so that an upgrade keeps what is in it; the account may write this one alone."""
    found = template("", "--set", f"fullnameOverride={release}")
    made = one(found, "ConfigMap", "-memory")
    rules = one(found, "Role", "-memory")["rules"]

    assert made["metadata"]["name"] == name
    assert "data" not in made
    assert rules == [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get", "update"]}
    ]
    assert (f"--memory={name}" in container(found)["args"]) == (release != "rebalancer")


@needed
@pytest.mark.parametrize(("owner", "made"), [("", 0), ("rebalancer", 1), ("other", 0)])
def test_a_memory_that_is_there_is_left_to_whose_it_is(tmp_path, owner, made):
    """Of a run from a laptop, say: helm would refuse to take it over, and not install at all."""
    resources = [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["get"]}]
    listed = {"kind": "APIResourceList", "groupVersion": "v1", "resources": resources}
    with FakeApiServer(tls=True) as server:
        server.on("GET", "/api/v1", lambda _: Reply(200, listed))
        memory = server.leases.maps["kube-system", "kube-rebalancer-memory"]
        memory["metadata"]["annotations"] = {"meta.helm.sh/release-name": owner} if owner else {}
        where = ("--kube-version", KUBERNETES, "--namespace", "kube-system", "--dry-run=server")
        cluster = str(server.kubeconfig(tmp_path, **{"insecure-skip-tls-verify": True}))
        found = objects(helm("template", "rebalancer", CHART, *where, KUBECONFIG=cluster).stdout)

    names = [each["metadata"]["name"] for each in found if each["kind"] == "ConfigMap"]
    assert (names.count("kube-rebalancer-memory"), names.count("rebalancer")) == (made, 1)
