"""The chart on a real control plane: accepted strictly, installed by helm, and run as a kubelet would."""

import secrets
from pathlib import Path

import pytest

from tests.chart.helm import CI, needed, template
from tests.e2e.acts import cordon, names, set_restarts, uids
from tests.e2e.api import RESOURCES, Api, Object, path_of
from tests.e2e.builders import daemonset, deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.release import Container, Release, can_play_kubelet, strictly
from tests.e2e.waiting import wait_for

pytestmark = needed
as_kubelet = pytest.mark.skipif(not can_play_kubelet(), reason="playing the kubelet takes root, unshare and overlayfs")
LONG_AGO = "2020-01-01T00:00:00Z"


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


@pytest.mark.parametrize("file", CI, ids=lambda file: file.name)
def test_every_object_is_accepted_strictly(controlplane: ControlPlane, namespace: Namespace, file: Path) -> None:
    """No unknown field, no wrong type; objects of the Prometheus operator by what it is to be given here."""
    for manifest in template(file.read_text()):
        if manifest["kind"] in RESOURCES:
            inside = namespace.name if RESOURCES[manifest["kind"]][2] else ""
            moved = {**manifest, "metadata": {**manifest["metadata"], "namespace": inside}} if inside else manifest
            strictly(controlplane.api, moved, path_of(manifest["kind"], inside))


@as_kubelet
def test_cron_job_with_defaults(metrics: ControlPlane, crashing: Namespace) -> None:
    """Its run evicts within its limits, writes Events, and tells all in its log."""
    before = uids(crashing.pods())

    with Release(metrics, "{}"):
        pod = pod_of(metrics.api, run_now(metrics.api))
        ended = Container(metrics, pod).run()

    gone = before - uids(crashing.pods())
    events = [each for each in metrics.api.list("Event", crashing.name) if "Restarts" in each["reason"]]
    assert ended.exit_code == 0, ended.log
    assert "5 pods evicted" in ended.log
    assert len(gone) == 5  # the limit of a namespace
    assert len(events) == 5
    assert ended.log.count("NamespaceLimit") >= 1


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


def pod_of(api: Api, job: str) -> Object:
    """The pod that the Job's controller made."""
    found: list[Object] = []

    def made() -> bool:
        found[:] = api.list("Pod", "kube-system", labelSelector=f"job-name={job}")
        return bool(found)

    wait_for(made, f"the pod of {job}")
    return found[0]
