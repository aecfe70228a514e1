"""What the scheduler knows of nodes: its caches may be behind what the API server says."""

import secrets
from collections.abc import Iterable, Sequence
from functools import partial

from tests.e2e.api import Api, Object
from tests.e2e.waiting import ClusterDeadlineError, wait_for

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
