"""One test's namespace: what the test creates, what runs in it, and clearing it all away."""

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from tests.e2e.api import Api, ApiError, Object, path_of
from tests.e2e.waiting import TIMEOUT, ClusterDeadlineError, wait_for

T = TypeVar("T")

#: The controllers of ReplicaSets and StatefulSets in 1.36 do nothing until their cache has their own last write
#: (`read version ... is not as new as written version`), and try again later and later, as each of the pods' changes
#: counts as one more try in vain: after the restart of an API server it may take a quarter of an hour, although the
#: cache caught up long ago.  A change of the object itself is looked at at once.  So they are reminded after so many
#: seconds, longer than any wait takes while all goes well, and much shorter than the deadlines.
INTERVAL = 15.0  # seconds
ANNOTATION = "e2e/reminded"


class Namespace:
    """A namespace of one test's own; objects outside namespaces that the test makes belong to it too."""

    def __init__(self, api: Api, name: str) -> None:
        self.api = api
        self.name = name
        self._outside: list[Object] = []
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def create(self, *manifests: Object) -> list[Object]:
        """Create objects, in this namespace if their kind has namespaces, and return them as the server made them.

        Nodes come first: what follows finds all of them Ready, and known to the scheduler.
        """
        nodes = [self._made(each) for each in manifests if each["kind"] == "Node"]
        self._wait_schedulable(nodes)
        return nodes + [self._made(each) for each in manifests if each["kind"] != "Node"]

    def pods(self, app: str = "", phase: str = "") -> list[Object]:
        """The pods that are not on their way out; all, or those labelled ``app``, or of a phase."""
        query = {"labelSelector": f"app={app}"} if app else {}
        pods = self.api.list("Pod", self.name, **query)
        return [
            pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and phase in ("", pod["status"]["phase"])
        ]

    def ready(self, app: str = "") -> list[Object]:
        return [pod for pod in self.pods(app) if is_ready(pod)]

    def wait_ready(self, count: int, app: str = "", deadline: float = TIMEOUT) -> list[Object]:
        """Wait until exactly so many pods are there and all are Ready, and return them."""

        def settled() -> list[Object] | None:
            pods = self.pods(app)
            return pods if len(pods) == count and all(map(is_ready, pods)) else None

        return self._wait_for(settled, f"{count} pods {app} Ready", deadline) if count else []

    def wait_budget(self, pdb: str, allowed: int) -> None:
        def settled() -> bool:
            seen = self.api.read("PodDisruptionBudget", pdb, self.name)
            status = seen["status"]
            current = status.get("observedGeneration") == seen["metadata"]["generation"]
            return bool(current and status["disruptionsAllowed"] == allowed)

        self._wait_for(settled, f"PDB {pdb} allowing {allowed}")

    def set_pod_status(self, pod: str, status: Object) -> None:
        """Merge a change into a pod's status; kwok, which made the pod run, leaves it at that."""
        self.api.patch("Pod", pod, self.name, {"status": status}, subresource="status")

    def describe(self) -> str:
        lines = [
            f"{pod['metadata']['name']} {pod['status']['phase']} {'Ready' if is_ready(pod) else 'not Ready'} "
            f"{pod['spec'].get('nodeName', '(no node)')} {'terminating' * ('deletionTimestamp' in pod['metadata'])}"
            for pod in self.api.list("Pod", self.name)
        ]
        return "\n".join([f"{len(lines)} pods in {self.name}", *lines[:60]])

    def delete(self) -> None:
        """Delete all; pods are awaited gone, as nobody would see to them once their nodes are gone."""
        self.api.delete("Namespace", self.name)
        wait_for(self._cleared, f"{self.name} without pods")
        for item in reversed(self._outside):
            self.api.delete(item["kind"], item["metadata"]["name"])

    def wait_counted(self, count: int, deployment: str, deadline: float = TIMEOUT) -> None:
        """Wait until the controllers have told a Deployment that so many of its pods are Ready."""

        def counted() -> bool:
            status = self.api.read("Deployment", deployment, self.name)["status"]
            return status.get("readyReplicas") == count

        self._wait_for(counted, f"{count} pods of {deployment} counted", deadline)

    def _wait_for(self, condition: Callable[[], T | None], what: str, deadline: float = TIMEOUT) -> T:
        return wait_for_controllers(self.api, self.name, condition, f"{what} in {self.name}", deadline)

    def _cleared(self) -> bool:
        """Whether no pod is left.

        The namespace controller begins only after 5 s, and some pods have no kubelet (a made-up node), so pods
        are deleted here, by force.
        """
        if not self.api.list("Pod", self.name, limit=1):
            return True
        self.api.request("DELETE", path_of("Pod", self.name), {"gracePeriodSeconds": 0})
        return False

    def _made(self, manifest: Object) -> Object:
        made = self.api.create(manifest, self.name)
        if "namespace" not in made["metadata"]:
            self._outside.append(made)
        return made

    def _wait_schedulable(self, nodes: Sequence[Object]) -> None:
        names = {each["metadata"]["name"] for each in nodes}
        if names:
            self._wait_for(lambda: names <= self._schedulable(), f"nodes {', '.join(sorted(names))} Ready")
            wait_taken(self.api, [each for each in nodes if not each["spec"].get("unschedulable")])

    def _schedulable(self) -> set[str]:
        return {node["metadata"]["name"] for node in self.api.list("Node") if is_schedulable(node)}


def is_ready(item: Object) -> bool:
    conditions = item.get("status", {}).get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def is_schedulable(node: Object) -> bool:
    """Whether a node is Ready and has no taint that the controllers are about to take off."""
    taints = node["spec"].get("taints", ())
    return is_ready(node) and not any(taint["key"] == "node.kubernetes.io/not-ready" for taint in taints)


def wait_for_controllers(
    api: Api, namespace: str, condition: Callable[[], T | None], what: str, deadline: float = TIMEOUT
) -> T:
    """Wait for what controllers of a namespace have to do, and remind them now and then."""
    reminded = time.monotonic()

    def settled() -> T | None:
        nonlocal reminded
        seen = condition()
        if not seen and time.monotonic() > reminded + INTERVAL:
            remind(api, namespace)
            reminded = time.monotonic()
        return seen

    return wait_for(settled, what, deadline, error=ClusterDeadlineError)


def remind(api: Api, namespace: str) -> None:
    for kind in ("ReplicaSet", "StatefulSet"):
        for each in api.list(kind, namespace):
            try:
                mark = {"metadata": {"annotations": {ANNOTATION: str(time.monotonic())}}}
                api.patch(kind, each["metadata"]["name"], namespace, mark)
            except ApiError as error:
                if error.status != 404:
                    raise


#: What the scheduler knows of nodes may be behind what the API server says: pods of our own show that it has caught up.
HOME = "default"
CORDONED = "were unschedulable"
_OWN_TAINTS = "node.kubernetes.io/"
_wait_for = partial(wait_for, error=ClusterDeadlineError)


def wait_taken(api: Api, nodes: Sequence[Object]) -> None:
    """Wait until the scheduler takes nodes, fresh ones, for pods that tolerate their taints."""
    if nodes:
        _wait_for(lambda: not any(verdicts(api, nodes)), f"the scheduler to take {_names(nodes)}")


def wait_cordoned(api: Api, nodes: Sequence[Object], *, on: bool = True) -> None:
    """Wait until the scheduler knows that nodes are cordoned, or with ``on=False`` that they are not."""

    def known() -> bool:
        return all((CORDONED in said) is on for said in verdicts(api, nodes))

    _wait_for(known, f"the scheduler to know of {_names(nodes)} cordoned: {on}")


def verdicts(api: Api, nodes: Iterable[Object]) -> list[str]:
    """What the scheduler says of pods that may go to one of the nodes each; empty for a pod that it places."""
    flock = secrets.token_hex(4)
    made = [api.create(_canary(node, flock), HOME)["metadata"]["name"] for node in nodes]

    def told() -> list[str] | None:
        found = [_verdict(pod) for pod in api.list("Pod", HOME, labelSelector=f"canary={flock}")]
        said = [each for each in found if each is not None]
        return said if len(said) == len(made) else None

    try:
        return _wait_for(told, "the scheduler's verdicts")
    finally:
        for name in made:
            api.delete("Pod", name, HOME, grace=0)


def _verdict(pod: Object) -> str | None:
    if "nodeName" in pod["spec"]:
        return ""
    refused = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return str(refused[0].get("message", "refused")) if refused else None


def _canary(node: Object, flock: str) -> Object:
    """A pod for one node, by its name and not by a label; it tolerates taints but those of the controllers' own."""
    name = node["metadata"]["name"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    taints = [each for each in node["spec"].get("taints", ()) if not each["key"].startswith(_OWN_TAINTS)]
    spec = {
        "containers": [{"name": "main", "image": "none"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}},
        "tolerations": [{"key": each["key"], "operator": "Exists"} for each in taints],
    }
    metadata = {"name": f"canary-{flock}-{name}", "labels": {"canary": flock}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _names(nodes: Iterable[Object]) -> str:
    return ", ".join(sorted(each["metadata"]["name"] for each in nodes))
