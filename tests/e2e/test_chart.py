"""The chart on a real control plane: accepted strictly, installed by helm, and run as a kubelet would."""

import json
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.chart.helm import CI, needed, template
from tests.chart.operator_kinds import PATHS as OPERATOR
from tests.chart.operator_kinds import definitions as definitions_of_operator
from tests.chart.queries import alert_queries, answers, dashboard_queries
from tests.e2e.acts import cordon, names, set_restarts, uids
from tests.e2e.api import RESOURCES, Api, ApiError, Object, path_of
from tests.e2e.builders import daemonset, deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.release import Container, Release, can_play_kubelet, strictly
from tests.e2e.waiting import wait_for

pytestmark = needed
as_kubelet = pytest.mark.skipif(not can_play_kubelet(), reason="playing the kubelet takes root, unshare and overlayfs")
LONG_AGO = "2020-01-01T00:00:00Z"
DESCHEDULER = """
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
"""


def quietly(values: str = "") -> str:
    """Values with which what is served can be reached from this machine alone, at a port of its own."""
    found: Object = yaml.safe_load(values) or {}
    own = {"bind-address": "127.0.0.1", "secure-port": free_port()}
    found["cmdOptions"] = {**found.get("cmdOptions", {}), **own}
    return json.dumps(found)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def crashing(metrics: ControlPlane, namespace: Namespace) -> Namespace:
    """Three nodes, with metrics; four pods on each that crash on and on, and have somewhere else to go."""
    namespace.create(*(node(name, cpu="10") for name in ("a", "b", "c")), daemonset("agent", usage="10m"))
    for on in ("a", "b", "c"):
        others = {"a", "b", "c"} - {on}
        cordon(metrics.api, *others)
        namespace.create(deployment(f"looping-{on}", replicas=4))
        namespace.wait_ready(4, f"looping-{on}")
        cordon(metrics.api, *others, on=False)
    set_restarts(namespace, [pod for pod in namespace.wait_ready(15) if is_looping(pod)], restarts=150)
    for pod in namespace.pods():
        namespace.set_pod_status(pod["metadata"]["name"], {"startTime": LONG_AGO})
    wait_for(lambda: {"a", "b", "c"} <= names(metrics.api.list("NodeMetrics")), "figures of all nodes", 90)
    return namespace


def is_looping(pod: Object) -> bool:
    return str(pod["metadata"]["name"]).startswith("looping")


@pytest.fixture(scope="module")
def operator(controlplane: ControlPlane) -> Iterator[None]:
    """The kinds of the Prometheus operator are known."""
    definitions = definitions_of_operator()
    where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for each in definitions:
        controlplane.api.request("POST", where, each)
    for path in OPERATOR.values():
        wait_for(lambda path=path: controlplane.api.ready(path.format(namespace="default")), path)  # type: ignore[misc]  # bound early
    yield
    for each in definitions:
        controlplane.api.request("DELETE", f"{where}/{each['metadata']['name']}")


@pytest.mark.parametrize("file", CI, ids=lambda file: file.name)
@pytest.mark.usefixtures("operator")
def test_every_object_is_accepted_strictly(controlplane: ControlPlane, namespace: Namespace, file: Path) -> None:
    """No unknown field, no wrong type, in whatever namespace it is."""
    for manifest in template(file.read_text()):
        kind = manifest["kind"]
        inside = namespace.name if kind in OPERATOR or RESOURCES[kind][2] else ""
        moved = {**manifest["metadata"], "namespace": inside} if inside else manifest["metadata"]
        path = OPERATOR[kind].format(namespace=inside) if kind in OPERATOR else path_of(kind, inside)
        strictly(controlplane.api, {**manifest, "metadata": moved}, path)


def test_an_object_with_an_unknown_field_is_not_accepted(controlplane: ControlPlane, namespace: Namespace) -> None:
    """The check would see it."""
    broken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "date": {}}

    with pytest.raises(ApiError, match="unknown field"):
        strictly(controlplane.api, broken, path_of("ConfigMap", namespace.name))


@as_kubelet
def test_cron_job_with_defaults(metrics: ControlPlane, crashing: Namespace) -> None:
    """Its run evicts within its limits, writes Events, and tells all in its log."""
    before = uids(crashing.pods())

    with Release(metrics, quietly()) as release:
        ended = Container(metrics, pod_of(metrics.api, run_now(metrics.api))).run()

    events = [each for each in metrics.api.list("Event", crashing.name) if "Restarts" in each["reason"]]
    assert ended.exit_code == 0, ended.log
    assert "5 pods evicted" in ended.log
    assert "NamespaceLimit" in ended.log
    assert len(before - uids(crashing.pods())) == len(events) == 5  # the limit of a namespace
    assert "What will happen" in release.notes
    assert "does not serve metrics.k8s.io" not in release.notes


@as_kubelet
def test_job_that_is_upgraded(metrics: ControlPlane, crashing: Namespace) -> None:
    """It runs once; an upgrade to a dry run is a run of its own, which may read and no more."""
    before = uids(crashing.pods())

    with Release(metrics, quietly("kind: Job")) as release:
        live = Container(metrics, pod_of(metrics.api, "rebalancer")).run()
        left = uids(crashing.pods())
        release.upgrade(quietly("kind: Job\ndryRun: true"))
        dry = Container(metrics, pod_of(metrics.api, "rebalancer-2")).run()

    assert (live.exit_code, dry.exit_code) == (0, 0), live.log + dry.log
    assert len(before - left) == 5
    assert "would be evicted" in dry.log
    assert uids(crashing.pods()) == left


@as_kubelet
def test_values_of_the_deschedulers_chart(metrics: ControlPlane, crashing: Namespace) -> None:
    """Its command, its options and its policy, in place of its image: the same pods go, without limits of ours."""
    before = uids(crashing.pods())

    with Release(metrics, quietly(DESCHEDULER)):
        ended = Container(metrics, pod_of(metrics.api, run_now(metrics.api))).run()

    assert ended.exit_code == 0, ended.log
    assert len(before - uids(crashing.pods())) == 12


@as_kubelet
def test_deployment(metrics: ControlPlane, crashing: Namespace, tmp_path: Path) -> None:
    """Its probes answer, it evicts within its limits, and what it serves answers each query and each alert."""
    before = uids(crashing.pods())
    values = quietly("kind: Deployment\nreplicas: 2\nleaderElection: {enabled: true}")

    with Release(metrics, values):
        pod = pod_of(metrics.api, selector="app.kubernetes.io/instance=rebalancer")
        container = Container(metrics, pod)
        with container.started() as process:
            wait_for(lambda: container.probe("livenessProbe"), "the liveness probe's 200", 60)
            wait_for(lambda: container.probe("readinessProbe"), "the readiness probe's 200", 60)
            wait_for(lambda: len(before - uids(crashing.pods())) == 5, "the first cycle's evictions", 60)
            wait_for(lambda: "rebalancer_cycles_total" in container.metrics(), "the first cycle's end", 60)
            exposition = container.metrics()
            process.terminate()
            log, _ = process.communicate(timeout=60)

    assert process.returncode == 0, log
    assert "evicted" in log
    found = answers(exposition, tmp_path)
    silent = {name for name in dashboard_queries() if not found[name]}
    assert silent == {"Sources of usage: errors and nodes without a fresh figure A"}  # no source has failed
    assert [name for name in alert_queries() if found[name]] == []


def run_now(api: Api) -> str:
    """What `kubectl create job --from=cronjob/rebalancer` does; returns the Job's name."""
    cron_job = api.read("CronJob", "rebalancer", "kube-system")
    name = f"rebalancer-{secrets.token_hex(3)}"
    made = cron_job["spec"]["jobTemplate"]
    owner = {
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "rebalancer", "uid": cron_job["metadata"]["uid"],
        "controller": True,
    }  # fmt: skip
    metadata = {**made["metadata"], "name": name, "ownerReferences": [owner]}
    api.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": made["spec"]}, "kube-system")
    return name


def pod_of(api: Api, job: str = "", selector: str = "") -> Object:
    """A pod that a controller made, such as that of a Job."""
    found: list[Object] = []
    selector = selector or f"job-name={job}"

    def made() -> bool:
        found[:] = api.list("Pod", "kube-system", labelSelector=selector)
        return bool(found)

    wait_for(made, f"a pod of {selector}")
    return found[0]
