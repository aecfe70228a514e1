"""The cluster that a trial is played on: set up, opened, varied, and waited for until it is at rest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from kubernetes.utils.quantity import parse_quantity

from rebalancer.policy.arguments import parse_duration
from tests.e2e.api import Api, Object
from tests.e2e.builders import daemonset, node, pdb, pod, replicaset, storage_class
from tests.e2e.namespace import Namespace, is_ready
from tests.e2e.waiting import wait_for
from tests.outcome.load import NODE_CPU, NODE_MEMORY, Workload
from tests.outcome.state import Shares, State
from tests.outcome.zones import NO_WISH, Wish, volume_in, wished, zone_of

# The nodes of each pod of each owner.
Placement = Mapping[str, Sequence[str]]

# A node without any use of CPU is left out of the metrics API.
AGENT = daemonset("agent", usage="160m", memory_usage="640Mi")
ALLOWED = "25%"  # of an owner's pods may be away at once
INTERVAL = 0.5  # seconds; lists of all pods are much work
PODS_DEADLINE = 180.0
# Two readings, 10 s apart, after the last change; more when the machine is busy.
FIGURES_DEADLINE = 180.0


class Stage:
    """A cluster in a control plane of its own.

    wishes: By owner, what its pods wish of zones; empty where there are no zones.
    changed_at: When what pods use, or where they are, has changed last.
    """

    def __init__(self, api: Api, nodes: int, wishes: Mapping[str, Wish] | None = None) -> None:
        self.api = api
        self.wishes = wishes or {}
        self.names = [f"node-{number:02}" for number in range(nodes)]
        self._load: Sequence[Workload] = ()
        self._namespace = Namespace(api, "load")
        self._agents = Namespace(api, "agents")
        self.changed_at = datetime.now(UTC)

    def set_up(self, load: Sequence[Workload], placement: Placement | None, *, half: bool) -> Placement:
        """Create nodes and pods, and open all nodes when all pods run.

        With a placement pods go there; else the scheduler decides, with half of the nodes closed until all pods run.
        Return where the pods are.
        """
        self._load = load
        closed = set(self.names[::2]) if half else set()
        cpu, memory = f"{NODE_CPU}m", f"{NODE_MEMORY}Mi"
        zone = zone_of if self.wishes else lambda _: ""
        nodes = [node(n, cpu=cpu, memory=memory, zone=zone(n), unschedulable=n in closed) for n in self.names]
        self._namespace.create(*nodes, *self._volumes())
        self._agents.create(AGENT)
        self._namespace.create(*(pdb(w.name, max_unavailable=ALLOWED) for w in load if w.guarded))
        if placement:
            self._adopted(load, placement)
        self._namespace.create(*(self._owner(workload) for workload in load))
        placed = self._places_by_owner(self.wait_for_pods())
        if placement and {owner: Counter(nodes) for owner, nodes in placement.items()} != {
            owner: Counter(nodes) for owner, nodes in placed.items()
        }:
            raise AssertionError("the pods are not where they were in the run to compare with")
        for name in closed:
            self.api.patch("Node", name, "", {"spec": {"unschedulable": False}})
        return placed

    def vary(self, workloads: Mapping[str, Workload]) -> None:
        """Let all pods, and those to come, use what these workloads say."""
        for name, workload in workloads.items():
            metadata = {
                "metadata": {"annotations": self._owner(workload)["spec"]["template"]["metadata"]["annotations"]}
            }
            self.api.patch("ReplicaSet", name, self._namespace.name, {"spec": {"template": metadata}})
            for item in self._namespace.pods(name):
                self.api.patch("Pod", item["metadata"]["name"], self._namespace.name, metadata)
        self.changed()

    def changed(self) -> None:
        """Take note that what pods use, or where they are, has changed up to now."""
        self.changed_at = datetime.now(UTC)

    def wait_for_pods(self) -> list[Object]:
        """Wait until all pods are there, each Ready or without a node to run on, and PDBs know; return the pods."""
        pods = wait_for(self._pods_at_rest, "all pods at rest", PODS_DEADLINE, INTERVAL)
        wait_for(lambda: self._budgets_know(pods), "PDBs up to date", PODS_DEADLINE, INTERVAL)
        return pods

    def pods(self) -> list[Object]:
        return self.api.list("Pod", self._namespace.name)

    def state(self) -> State:
        """Wait until the metrics API tells of all nodes and pods after the last change, and return the state."""
        pods = self._pods_at_rest()
        if pods is None:
            raise AssertionError("pods came or went while nobody moved any")
        places = {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in pods}
        running = [name for name, where in places.items() if where]

        def settled() -> list[Object] | None:
            nodes, of_pods = self.api.list("NodeMetrics"), self.api.list("PodMetrics", self._namespace.name)
            fresh = {each["metadata"]["name"] for each in (*nodes, *of_pods) if _began(each) >= self.changed_at}
            return nodes if fresh.issuperset((*self.names, *running)) else None

        metrics = wait_for(settled, "figures of all nodes and pods after the last change", FIGURES_DEADLINE, INTERVAL)
        return State(_shares(metrics), places)

    def _adopted(self, load: Iterable[Workload], placement: Placement) -> None:
        """Create the pods where they are to be; the ReplicaSets that come then take them for their own."""
        for workload in load:
            template = self._owner(workload)["spec"]["template"]
            for number, where in enumerate(placement[workload.name]):
                made = pod(f"{workload.name}-{number:02}", node=where)
                made["metadata"] |= template["metadata"]
                made["spec"] |= template["spec"]
                self._namespace.create(made)
        self._namespace.wait_ready(sum(workload.replicas for workload in load), deadline=PODS_DEADLINE)

    def _owner(self, workload: Workload) -> Object:
        return replicaset(
            workload.name,
            workload.replicas,
            cpu=f"{workload.cpu}m",
            memory=f"{workload.memory}Mi",
            usage=f"{workload.uses_cpu}m",
            memory_usage=f"{workload.uses_memory}Mi",
            **wished(workload.name, self.wishes.get(workload.name, NO_WISH)),
        )

    def _volumes(self) -> list[Object]:
        tied = [(wish.volume, name) for name, wish in self.wishes.items() if wish.volume]
        made = [each for zone, name in tied for each in volume_in(zone, name)]
        return [storage_class("by-hand"), *made] if made else []

    def _pods_at_rest(self) -> list[Object] | None:
        pods = self.pods()
        if len(pods) != sum(workload.replicas for workload in self._load):
            return None
        at_rest = (is_ready(pod) or _unschedulable(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"])
        return pods if sum(at_rest) == len(pods) else None

    def _budgets_know(self, pods: Iterable[Object]) -> bool:
        ready = Counter(_app(pod) for pod in pods if is_ready(pod))
        return all(
            budget["status"].get("observedGeneration") == budget["metadata"]["generation"]
            and budget["status"]["currentHealthy"] == ready[budget["metadata"]["name"]]
            and not budget["status"].get("disruptedPods")
            for budget in self.api.list("PodDisruptionBudget", self._namespace.name)
        )

    def _places_by_owner(self, pods: Iterable[Object]) -> Placement:
        places: dict[str, list[str]] = {}
        for item in pods:
            places.setdefault(_app(item), []).append(item["spec"]["nodeName"])
        return places


def _app(pod: Object) -> str:
    return str(pod["metadata"]["labels"]["app"])


def _unschedulable(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def _began(metrics: Object) -> datetime:
    """When the window began that a NodeMetrics or PodMetrics is about: CPU is a rate between two readings."""
    return datetime.fromisoformat(metrics["timestamp"]) - parse_duration(metrics["window"])


def _shares(metrics: Iterable[Object]) -> Shares:
    """What each node uses of each resource, in percent."""
    offered = {"cpu": NODE_CPU / 1000, "memory": NODE_MEMORY * 2**20}
    used = {each["metadata"]["name"]: each["usage"] for each in metrics}
    return {
        node: {name: 100 * float(parse_quantity(usage[name])) / most for name, most in offered.items()}
        for node, usage in used.items()
    }
