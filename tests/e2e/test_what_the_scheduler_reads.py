"""The kinds that the scheduler and patience go by, as a real API server lists them."""

from rebalancer.kube.tries import Halt
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS, TRUST_KINDS
from rebalancer.run.cluster_view import read_cluster
from rebalancer.run.live import open_cluster
from rebalancer.run.options import ClientOptions
from tests.e2e.api import Object
from tests.e2e.builders import deployment, job, node, statefulset
from tests.e2e.waiting import wait_for

SELECTOR = {"app": "web"}


def read(controlplane):
    """Read the cluster as a patient policy does that asks where the scheduler would put pods."""
    live = open_cluster(ClientOptions(str(controlplane.kubeconfig)))
    return read_cluster(live, (), Halt(60.0, live.retry_policy.clock), SCHEDULER_KINDS | TRUST_KINDS)


def owner(namespace, pod):
    (found,) = (each for each in namespace.pods() if each["metadata"]["name"].startswith(pod))
    (reference,) = found["metadata"]["ownerReferences"]
    return reference["kind"], reference["uid"]


def all_at_rest(controlplane, *owners):
    """Whether the templates of these owners are known, and do not change."""
    found = read(controlplane).scheduler_inputs.templates or {}
    return all(each in found and not found[each].changing for each in owners)


def test_each_kind_is_read(controlplane, namespace):
    """None of them is missing, and nothing is warned of; each pod's owner has its template."""
    service: Object = {"kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    service["spec"]["selector"] = SELECTOR
    unfinished = job("once", cpu="300m", nodeSelector={"nowhere": "yes"})
    unfinished["spec"]["backoffLimit"] = 6
    binding = {"provisioner": "test", "volumeBindingMode": "WaitForFirstConsumer"}
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": namespace.name}}
    namespace.create(
        node("a"),
        {"apiVersion": "v1", **service},
        {**storage, **binding},
        deployment("web", cpu="100m"),
        statefulset("db", cpu="200m"),
        unfinished,
    )
    wait_for(lambda: len(namespace.pods()) == 3, "all pods")

    owners = [owner(namespace, name) for name in ("web", "db", "once")]
    wait_for(lambda: all_at_rest(controlplane, *owners), "templates that do not change")
    snapshot = read(controlplane)
    scheduler_inputs = snapshot.scheduler_inputs
    templates = scheduler_inputs.templates or {}
    assert snapshot.warnings == ()
    assert None not in [getattr(scheduler_inputs, field) for field in scheduler_inputs.__struct_fields__]
    assert (scheduler_inputs.services or {})[namespace.name, "web"] is not None
    assert (scheduler_inputs.storage_classes or {})[namespace.name].waits
    requests = [templates[owner(namespace, name)].spec.requests["cpu"] for name in ("web", "db", "once")]
    assert requests == [100, 200, 300]
    assert not templates[owner(namespace, "once")].only_failed  # nothing said: while the old pod terminates
