"""The kinds that the scheduler and patience go by, as a real API server lists them."""

from rebalancer.cluster.snapshot import Snapshot
from rebalancer.kube.halt import Halt
from rebalancer.kube.wire.pages import PATHS
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS, TRUST_KINDS
from rebalancer.run.cluster_lists import read_cluster
from rebalancer.run.live import open_cluster
from tests.e2e.api import Object
from tests.e2e.builders import deployment, job, node, statefulset
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.waiting import wait_for
from tests.fake_kinds import RESOURCES

SELECTOR = {"app": "web"}


def read(controlplane: ControlPlane) -> Snapshot:
    """Read the cluster as a patient policy does that asks where the scheduler would put pods."""
    live = open_cluster(str(controlplane.kubeconfig), None)
    return read_cluster(live, (), Halt(60.0, live.retry_policy.clock), SCHEDULER_KINDS | TRUST_KINDS)


def owner(namespace: Namespace, pod: str) -> tuple[str, str]:
    """Kind and uid of what looks after a pod."""
    (found,) = (each for each in namespace.pods() if each["metadata"]["name"].startswith(pod))
    (reference,) = found["metadata"]["ownerReferences"]
    return reference["kind"], reference["uid"]


def all_at_rest(controlplane: ControlPlane, *owners: tuple[str, str]) -> bool:
    """Whether the templates of these owners are known, and do not change."""
    found = read(controlplane).scheduler_inputs.templates or {}
    return all(each in found and not found[each].changing for each in owners)


def test_every_kind_is_listed_where_the_program_looks() -> None:
    """By the paths of the API."""
    assert {kind: "/".join(RESOURCES[kind][:2]) for kind in PATHS} == dict(PATHS)


def test_each_kind_is_read(controlplane: ControlPlane, namespace: Namespace) -> None:
    """None of them is missing, and nothing is warned of; each pod's owner has its template."""
    service: Object = {"kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    service["spec"]["selector"] = SELECTOR
    unfinished = job("once", cpu="300m", node_selector={"nowhere": "yes"})
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


def test_a_rollout_that_does_not_end_leaves_its_pods_in_doubt(controlplane: ControlPlane, namespace: Namespace) -> None:
    """Old and new pods stand side by side, as the new ones find no node; the pods of another Deployment are known."""
    namespace.create(node("a"), deployment("web", cpu="100m"), deployment("still", cpu="100m"))
    namespace.wait_ready(2)
    old, still = owner(namespace, "web"), owner(namespace, "still")
    wait_for(lambda: all_at_rest(controlplane, old, still), "templates that do not change")

    change = {"spec": {"template": {"spec": {"nodeSelector": {"nowhere": "yes"}}}}}
    controlplane.api.patch("Deployment", "web", namespace.name, change)
    wait_for(lambda: len(namespace.pods()) == 3, "a new pod")

    wait_for(lambda: (read(controlplane).scheduler_inputs.templates or {})[old].changing, "the rollout seen")
    assert not (read(controlplane).scheduler_inputs.templates or {})[still].changing


def test_an_empty_replica_set_needs_no_template(controlplane: ControlPlane, namespace: Namespace) -> None:
    """The one that has pods has its template, the old one that has none is known and no more."""
    namespace.create(node("a"), deployment("web", cpu="100m"), deployment("empty", replicas=0))
    namespace.wait_ready(1)
    kind, uid = owner(namespace, "web")

    wait_for(lambda: len(controlplane.api.list("ReplicaSet", namespace.name)) == 2, "both ReplicaSets")
    wait_for(lambda: all_at_rest(controlplane, (kind, uid)), "the template of the ReplicaSet with pods")
    scheduler_inputs = read(controlplane).scheduler_inputs
    sets = {each["metadata"]["uid"] for each in controlplane.api.list("ReplicaSet", namespace.name)}
    assert {uid for _, uid in scheduler_inputs.templates or {}} & sets == {uid}
    assert len([name for space, name in scheduler_inputs.replica_sets or {} if space == namespace.name]) == 2
