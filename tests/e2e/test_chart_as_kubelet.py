"""The chart on a real control plane: installed by helm, its pods made by the controllers and run as a kubelet would."""

import json
import secrets
import time
from collections.abc import Mapping

import pytest
import yaml

from tests.chart.helm import CHART, needed
from tests.e2e.access import HOME, NAME, Release
from tests.e2e.acts import cordon, figures, set_old, set_restarts, uids
from tests.e2e.builders import daemonset, deployment, node
from tests.e2e.container import IMAGE_USER, Container, Privileges, at_work, ended, needs_kubelet, pod_of, privileges_of
from tests.e2e.waiting import wait_for
from tests.fake_http import HttpServer, Reply
from tests.ports import free_port
from tests.real_prometheus import RealPrometheus

pytestmark = [needed, needs_kubelet]

INSTANCE = "app.kubernetes.io/instance=rebalancer"
SAFE = CHART / "presets/safe.yaml"
#: Evictions that the preset `safe` allows in a namespace in one run.
LIMIT = 5
#: What the chart promises of every pod.
RESTRICTED = Privileges(user=str(IMAGE_USER), capabilities="", new_privileges=False, root_read_only=True)

DESCHEDULER: Mapping[str, object] = yaml.safe_load("""
command: [/bin/descheduler]
cmdOptions: {v: 3}
schedule: "*/2 * * * *"
deschedulerPolicy:
  profiles:
    - name: default
      pluginConfig:
        - name: DefaultEvictor
          args: {podProtections: {defaultDisabled: [PodsWithLocalStorage], extraEnabled: [PodsWithPVC]}}
        - name: RemoveDuplicates
        - name: RemovePodsHavingTooManyRestarts
          args: {podRestartThreshold: 100, includingInitContainers: true}
      plugins:
        deschedule: {enabled: [RemovePodsHavingTooManyRestarts]}
""")
REPLICAS = {
    "kind": "Deployment",
    "replicas": 2,
    # Renewed within 20 s also where the machine is busy.
    "leaderElection": {"enabled": True, "leaseDuration": "30s", "renewDeadline": "20s", "retryPeriod": "1s"},
}


def quietly(**values):
    """Values with a port of the test's own."""
    options: object = values.get("cmdOptions", {})
    assert isinstance(options, dict)
    return json.dumps({**values, "cmdOptions": {**options, "secure-port": free_port()}})


def dashboard_queries():
    panels = json.loads((CHART / "dashboards/rebalancer.json").read_text())["panels"]
    return {
        f"{panel['title']} {target['refId']}": target["expr"].replace("$job", ".*").replace("$__rate_interval", "1m")
        for panel in panels
        for target in panel["targets"]
    }


def alert_queries():
    rules = yaml.safe_load((CHART / "rules/alerts.yaml").read_text())["groups"][0]["rules"]
    return {rule["alert"]: rule["expr"] for rule in rules}


def answers(exposition, folder):
    """Return what each query and each alert comes to where this was scraped, at least twice."""
    with (
        HttpServer(lambda _: Reply(200, _stamped(exposition))) as served,
        RealPrometheus(folder, targets=(served.url.removeprefix("http://"),)) as prometheus,
    ):
        scraped = "count_over_time(rebalancer_build_info[1m]) > 2"
        wait_for(lambda: prometheus.query(scraped), "three scrapes")
        asked = {**dashboard_queries(), **alert_queries()}
        return {name: prometheus.query(query) for name, query in asked.items()}


def _stamped(exposition):
    """Return it with the time of each sample: then a scrape that comes too late ends no series."""
    now = time.time_ns() // 1_000_000
    lines = exposition.splitlines()
    return "".join(f"{line} {now}\n" if line and not line.startswith("#") else f"{line}\n" for line in lines)


@pytest.fixture
def crashing(metrics, namespace):
    """Three nodes, with metrics; four pods on each that crash on and on, and have somewhere else to go."""
    namespace.create(*(node(name, cpu="10") for name in ("a", "b", "c")), daemonset("agent", usage="10m"))
    for on in ("a", "b", "c"):
        others = {"a", "b", "c"} - {on}
        cordon(metrics.api, *others)
        namespace.create(deployment(f"looping-{on}", replicas=4))
        namespace.wait_ready(4, f"looping-{on}")
        cordon(metrics.api, *others, on=False)
    set_restarts(namespace, [pod for pod in namespace.wait_ready(15) if is_looping(pod)], restarts=150)
    set_old(namespace)
    wait_for(lambda: {"a", "b", "c"} <= figures(metrics.api, "NodeMetrics").keys(), "figures of all nodes")
    return namespace


def is_looping(pod):
    return str(pod["metadata"]["name"]).startswith("looping")


def started_by_hand(api):
    """The pod of what `kubectl create job --from=cronjob/rebalancer` makes."""
    found = api.read("CronJob", NAME, HOME)
    made, name = found["spec"]["jobTemplate"], f"{NAME}-{secrets.token_hex(3)}"
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": NAME, "uid": found["metadata"]["uid"]}
    metadata = {**made.get("metadata", {}), "name": name, "ownerReferences": [{**owner, "controller": True}]}
    api.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": made["spec"]}, HOME)
    return pod_of(api, f"job-name={name}")


def test_cron_job_with_defaults(metrics, crashing):
    """Its run answers the probe, may do no more than it needs, evicts within its limits, writes Events and a log."""
    before = uids(crashing.pods())

    with (
        Release(metrics, quietly()) as release,
        at_work(metrics, started_by_hand(metrics.api)) as run,
    ):
        healthy, privileges = run.container.probe("livenessProbe"), privileges_of(run.process)
        end = run.finish()

    events = [each for each in metrics.api.list("Event", crashing.name) if "Restarts" in each["reason"]]
    assert end.exit_code == 0, end.log
    assert healthy
    assert privileges == RESTRICTED
    assert f"{LIMIT} pods evicted" in end.log
    assert "NamespaceLimit" in end.log
    assert len(before - uids(crashing.pods())) == len(events) == LIMIT
    assert "What will happen" in release.notes
    assert "does not serve metrics.k8s.io" not in release.notes


def test_job_that_is_upgraded(metrics, crashing):
    """It runs once; an upgrade to a dry run, of a policy in one's own ConfigMap, is another run, which only reads."""
    before = uids(crashing.pods())
    own = {"metadata": {"name": "ours", "namespace": "kube-system"}, "data": {"p.yaml": SAFE.read_text()}}
    ours = {"configMapName": "ours", "key": "p.yaml"}

    with Release(metrics, quietly(kind="Job")) as release:
        live = Container(metrics, pod_of(metrics.api, "job-name=rebalancer")).run()
        left = uids(crashing.pods())
        metrics.api.create({"apiVersion": "v1", "kind": "ConfigMap", **own}, "kube-system")
        release.upgrade(quietly(kind="Job", dryRun=True, policy=ours))
        dry = Container(metrics, pod_of(metrics.api, "job-name=rebalancer-2")).run()

    metrics.api.delete("ConfigMap", "ours", "kube-system")
    assert (live.exit_code, dry.exit_code) == (0, 0), live.log + dry.log
    assert len(before - left) == LIMIT
    assert "would be evicted" in dry.log
    assert uids(crashing.pods()) == left


@pytest.mark.parametrize("kind", ["CronJob", "Deployment"])
def test_values_of_the_deschedulers_chart(metrics, crashing, kind):
    """Its command, its options and its policy, in place of its image: the same pods go, without limits of ours."""
    before = uids(crashing.pods())

    with Release(metrics, quietly(**DESCHEDULER, kind=kind)):
        pod = pod_of(metrics.api, INSTANCE) if kind == "Deployment" else started_by_hand(metrics.api)
        with at_work(metrics, pod) as run:
            healthy = run.container.probe("livenessProbe")
            run.go_on()
            wait_for(lambda: len(before - uids(crashing.pods())) == 12, "the evictions of all that crash")
            end = run.stop() if kind == "Deployment" else run.finish()

    assert end.exit_code == 0, end.log
    assert healthy
    assert "12 pods evicted" in end.log
    assert len(before - uids(crashing.pods())) == 12


def test_deployment(metrics, crashing, tmp_path):
    """Its probes answer, it evicts within its limits, and what it serves answers each query and each alert."""
    before = uids(crashing.pods())

    with Release(metrics, quietly(**REPLICAS)):
        container = Container(metrics, pod_of(metrics.api, INSTANCE))
        with container.started() as process:
            wait_for(lambda: container.probe("livenessProbe"), "the liveness probe's 200")
            privileges = privileges_of(process)
            wait_for(lambda: container.probe("readinessProbe"), "the readiness probe's 200")
            wait_for(lambda: len(before - uids(crashing.pods())) == LIMIT, "the first cycle's evictions")
            wait_for(lambda: "rebalancer_cycles_total{" in container.metrics(), "the first cycle's end")
            exposition = container.metrics()
            process.terminate()
            end = ended(process)

    assert end.exit_code == 0, end.log
    assert "evicted" in end.log
    assert privileges == RESTRICTED
    found = answers(exposition, tmp_path)
    silent = {name for name in dashboard_queries() if not found[name]}
    assert silent == {"Sources of usage: errors and nodes without a fresh figure A"}  # no source has failed
    assert [name for name in alert_queries() if found[name]] == []
