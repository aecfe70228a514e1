"""Whole cycles: `plugin` and `policy_run` cases as policies on a snapshot file.

Where a webhook takes some evictions over (`background_eviction_pods`), they are live runs, one after the other.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.conformance.answers import Answer, equal, evictions
from tests.conformance.corpus import Case
from tests.conformance.snapshots import document, filler_nodes
from tests.fake_api_server import FakeApiServer
from tests.fake_http import Reply, Request
from tests.fake_servers import FakePrometheus
from tests.functional.program import Program

USAGE_ERROR = 2
_IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
#: Why a run may fail: metrics-server knows no extended resources, which fails the descheduler too.
_UNMEASURED = "which this source does not measure"


@contextmanager
def program() -> Iterator[Program]:
    """Yield the program as a person calls it, with a folder of its own for each case."""
    with TemporaryDirectory() as folder:
        yield Program(Path(folder))


def run(case: Case) -> Answer:
    if case.get("background_eviction_pods"):
        return _in_background(case)
    with _policy(case) as policy, program() as rebalancer:
        file = rebalancer.folder / "cluster.json"
        file.write_text(document(case, filler_nodes(case)))
        result = rebalancer.offline(policy, file, "--now", case["now"])
    if case["assert"].get("policy_rejected"):  # the counts of such a case are out of reach of any policy
        return equal(result.exit_code, USAGE_ERROR)
    report = result.report
    errors = [each["error"] for each in report["strategies"] if each["error"]]
    assert all(_UNMEASURED in each for each in errors), errors
    assert result.exit_code == (1 if errors else 0), result.stderr
    assert report["skipped"] is None
    assert report["failures"] == []
    return evictions(result.evicted(), case["assert"])


@contextmanager
def _policy(case: Case) -> Iterator[Mapping[str, Any]]:
    """Yield the policy of a case; its Prometheus answers every query with the samples of the case."""
    if not case.get("prometheus_samples"):
        yield case["policy"]
        return
    with FakePrometheus(case["prometheus_samples"]) as server:
        providers = [{"source": "Prometheus", "prometheus": {"url": server.url}}]
        yield {**case["policy"], "metricsProviders": providers}


def _in_background(case: Case) -> Answer:
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
