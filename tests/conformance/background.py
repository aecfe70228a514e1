"""Cycles in which a webhook takes some evictions over (`background_eviction_pods`): live runs, one after the other."""

from collections.abc import Iterator
from typing import Any

from tests.conformance.answers import Answer, equal
from tests.conformance.corpus import Case
from tests.conformance.program import program
from tests.fake_api_server import FakeApiServer
from tests.fake_http import Reply, Request

_IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"


def run(case: Case) -> Answer:
    """Return whether all cycles keep to the most evictions and requests, and ask for no pod in progress again.

    As in the case's own test, pods that were evicted stand there again in the next cycle.
    """
    most, wanted = case["expected_evicted_plus_requests_max"], case["assert"]
    observed = []
    for done, requested in _cycles(case):
        within = len(done) <= wanted["evicted_count_max"] and len(done) + len(requested) <= most
        observed.append(within and set(done) <= set(wanted["subset_of"]) and len(set(requested)) == len(requested))
    return equal(observed, [True] * case["cycles"])


def _cycles(case: Case) -> Iterator[tuple[list[str], list[str]]]:
    """Yield which pods each cycle evicts, and which are in progress after it."""
    taken: list[str] = []
    with program() as rebalancer, FakeApiServer([*case["nodes"], *case["pods"]]) as server:
        server.on("POST", "*/eviction", lambda request: _take_over(server, case, request, taken))
        for _ in range(case["cycles"]):
            report = rebalancer.run(server, case["policy"]).report
            yield [_name(each) for each in report["evictions"] if not each["background"]], list(taken)
            for pod in case["pods"]:
                if _name(pod["metadata"]) not in taken:
                    server.add(pod)


def _take_over(server: FakeApiServer, case: Case, request: Request, taken: list[str]) -> Reply | None:
    name = request.path.split("/")[-2]
    if name not in case["background_eviction_pods"]:
        return None
    pod = next(each for each in case["pods"] if each["metadata"]["name"] == name)
    annotations = {**pod["metadata"]["annotations"], _IN_PROGRESS: ""}
    server.add({**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
    taken.append(_name(pod["metadata"]))
    return Reply(429, {"kind": "Status", "code": 429, "message": "Eviction triggered evacuation"})


def _name(pod: dict[str, Any]) -> str:
    return f"{pod['namespace']}/{pod['name']}"
