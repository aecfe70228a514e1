"""What metrics-server says of nodes and pods; it measures every ten seconds, and all at once."""

from tests.e2e.api import Api, ApiError, Object
from tests.e2e.waiting import wait_for


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
