"""A dry run changes nothing, and says what a live run does."""

from collections import deque

import pytest

from tests.e2e.acts import cordon, names, set_restarts, set_taints
from tests.e2e.api import Api, Object
from tests.e2e.builders import deployment, node, pdb, taint
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy
from tests.e2e.waiting import wait_for
from tests.fake_kinds import RESOURCES

#: Events about nodes are written at any time (that the program wrote none is in the audit log); the metrics API makes
#: its objects up when asked, and in its APIService the API server tells whether it answers.
KINDS = sorted(set(RESOURCES) - {"Event", "NodeMetrics", "PodMetrics", "APIService"})
#: Looks a second apart: controllers may be late with a status where the machine is busy.
LOOKS = 4
#: The label of the Leases that API servers keep for themselves.
SERVER_IDENTITY = "apiserver.kubernetes.io/identity"


@pytest.fixture
def troubled(controlplane: ControlPlane, namespace: Namespace) -> Object:
    """A policy of three strategies with limits, and pods that all of them, a PDB and the limits are about."""
    namespace.create(node("a"), node("b"), node("c"))
    cordon(controlplane.api, "a", "b")
    namespace.create(deployment("exposed", replicas=4), pdb("exposed", max_unavailable=2))
    namespace.wait_ready(4, "exposed")
    cordon(controlplane.api, "a", "b", on=False)
    set_taints(controlplane.api, "c", taint("dedicated", "batch"))
    namespace.create(deployment("unstable", replicas=4), deployment("web", replicas=6), pdb("web", min_available=5))
    namespace.wait_ready(6, "web")
    set_restarts(namespace, namespace.wait_ready(4, "unstable")[:3], restarts=9)
    namespace.wait_budget("exposed", allowed=2)
    namespace.wait_budget("web", allowed=1)
    within: Object = {"namespaces": {"include": [namespace.name]}}
    strategies: dict[str, Object] = {
        "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5, **within},
        "RemovePodsViolatingNodeTaints": within,
        "PodLifeTime": {"states": ["Running"], **within},
    }
    return policy(strategies, {"nodeFit": True}, maxNoOfPodsToEvictTotal=7, maxNoOfPodsToEvictPerNode=4)


def test_dry_run_changes_nothing(controlplane: ControlPlane, program: Program, troubled: Object) -> None:
    """Every object has the same resourceVersion before and after, and the program has only read."""
    looks: deque[dict[tuple[str, ...], object]] = deque(maxlen=LOOKS)
    before = wait_for(lambda: settled(controlplane.api, looks), "objects at rest", interval=1)
    start = controlplane.audit_offset()

    outcome = program.dry_run(troubled)

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted()
    assert versions(controlplane.api) == before
    requests = controlplane.requests_since(start)
    assert requests
    assert [request for request in requests if not request.reads_only] == []


def settled(api: Api, looks: deque[dict[tuple[str, ...], object]]) -> dict[tuple[str, ...], object] | None:
    """The versions of all objects, once so many looks in a row have seen the same."""
    looks.append(versions(api))
    return looks[-1] if len(looks) == LOOKS and all(each == looks[-1] for each in looks) else None


def versions(api: Api) -> dict[tuple[str, ...], object]:
    """The resourceVersion of every object, but for those in namespaces on their way out.

    Of a node, which its kubelet reports on all the time, it is what the node is told instead.  The Lease by which the
    API server itself says every ten seconds that it is alive is left out.
    """
    going = names(each for each in api.list("Namespace") if "deletionTimestamp" in each["metadata"])
    return {
        (kind, item["metadata"].get("namespace", ""), item["metadata"]["name"]): version(kind, item)
        for kind in KINDS
        for item in api.list(kind)
        if going.isdisjoint((item["metadata"].get("namespace"), item["metadata"]["name"]))
        if SERVER_IDENTITY not in item["metadata"].get("labels", {})
    }


def version(kind: str, item: Object) -> object:
    metadata = item["metadata"]
    if kind != "Node":
        return metadata["resourceVersion"]
    return metadata["labels"], metadata["annotations"], item["spec"]
