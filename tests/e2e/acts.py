"""What scenarios do to pods and nodes, and what they read off them; metrics-server measures every ten seconds."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from tests.e2e.api import Api, ApiError, Object
from tests.e2e.namespace import Namespace, wait_cordoned
from tests.e2e.waiting import wait_for


def names(pods: Iterable[Object]) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods}


def uids(pods: Iterable[Object]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def by_node(pods: Iterable[Object]) -> Counter[str]:
    return Counter(pod["spec"]["nodeName"] for pod in pods)


def cordon(api: Api, *nodes: str, on: bool = True) -> None:
    """Have the scheduler leave nodes out, or with ``on=False`` take them again."""
    for name in nodes:
        api.patch("Node", name, "", {"spec": {"unschedulable": on}})
        # A taint follows from that; a test that counts taints would see it come.
        wait_for(lambda name=name: cordoned(api, name) is on, f"{name} cordoned: {on}")  # bound early
    wait_cordoned(api, [api.read("Node", name) for name in nodes], on=on)


def cordoned(api: Api, node: str) -> bool:
    taints = api.read("Node", node)["spec"].get("taints", ())
    return any(taint["key"] == "node.kubernetes.io/unschedulable" for taint in taints)


def set_taints(api: Api, node: str, *taints: Object) -> None:
    api.patch("Node", node, "", {"spec": {"taints": list(taints)}})


def set_restarts(namespace: Namespace, pods: Iterable[Object], restarts: int) -> None:
    """Have the first container of each pod look as if it had been restarted so often."""
    for pod in pods:
        first, *others = pod["status"]["containerStatuses"]
        statuses = [{**first, "restartCount": restarts}, *others]
        namespace.set_pod_status(pod["metadata"]["name"], {"containerStatuses": statuses})


def set_old(namespace: Namespace) -> None:
    """Have all pods look as if they had started long ago."""
    for pod in namespace.pods():
        namespace.set_pod_status(pod["metadata"]["name"], {"startTime": "2020-01-01T00:00:00Z"})


def set_failed(namespace: Namespace, pods: Iterable[Object], reason: str = "") -> None:
    conditions = [{"type": "Ready", "status": "False", "reason": "PodFailed"}]
    for pod in pods:
        status = {"phase": "Failed", "reason": reason, "conditions": conditions}
        namespace.set_pod_status(pod["metadata"]["name"], status)


def wait_older(pods: Iterable[Object], seconds: float) -> None:
    youngest = max(pod["metadata"]["creationTimestamp"] for pod in pods)
    born = datetime.fromisoformat(youngest)
    wait_for(lambda: (datetime.now(UTC) - born).total_seconds() > seconds, f"pods {seconds:g} s old")


def figures(api: Api, kind: str, namespace: str = "") -> dict[str, Object]:
    """The figures by name; none while the metrics API is away, as it is for seconds after the API server was."""
    try:
        return {each["metadata"]["name"]: each for each in api.list(kind, namespace)}
    except ApiError as error:
        if error.status < 500:
            raise
        return {}


def wait_round(api: Api, *nodes: str) -> None:
    """Wait until metrics-server has just measured these nodes.

    What is asked for in the next seconds has the same figures: what it says of a busy machine swings from one round to
    the next.
    """
    seen: list[dict[str, str]] = []

    def new() -> bool:
        found = figures(api, "NodeMetrics")
        if not set(nodes) <= found.keys():
            return False
        seen.append({name: found[name]["timestamp"] for name in nodes})
        return len(seen) > 1 and all(seen[-1][name] != seen[-2][name] for name in nodes)

    wait_for(new, f"new figures of {', '.join(nodes)}")
