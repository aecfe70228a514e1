"""Every policy that is shipped does on a real cluster what its dry run says."""

from collections import Counter
from copy import deepcopy

import pytest
import yaml

from tests.docs.test_contracts import shipped
from tests.e2e.acts import cordon, figures, set_failed, set_old, set_restarts, set_taints, uids, wait_round
from tests.e2e.api import Object
from tests.e2e.builders import daemonset, deployment, node, taint
from tests.e2e.waiting import wait_for

#: Nodes are seconds old here, and cycles follow each other.
HASTE: Object = {"trust": {"youngNodes": "0s", "backOff": {"first": "0s"}, "undone": "0s", "movePrice": 0}}
SHIPPED = {name: yaml.safe_load(text) | (HASTE if "selection" in text else {}) for name, text in shipped()}
SOURCES = {
    name: {provider["source"] for provider in shipped.get("metricsProviders", ())} for name, shipped in SHIPPED.items()
}
BY_REQUESTS = [name for name, sources in SOURCES.items() if not sources]
BY_METRICS_SERVER = [name for name, sources in SOURCES.items() if sources == {"KubernetesMetrics"}]
PACKING = [name for name in BY_METRICS_SERVER if "HighNodeUtilization" in str(SHIPPED[name])]
CAREFUL = [name for name in BY_METRICS_SERVER if SHIPPED[name]["profiles"][0]["name"] == "safe"]
RELIEVING = sorted({*BY_METRICS_SERVER} - {*PACKING, *CAREFUL})


@pytest.fixture
def troubled(controlplane, namespace):
    """A cluster with something for every strategy: crash loops, failures, a new taint, one busy node."""
    namespace.create(*(node(name, cpu="10", zone=f"zone-{name}") for name in ("a", "b", "c")))
    namespace.create(daemonset("agent", tolerations=[{"operator": "Exists"}]))
    cordon(controlplane.api, "b", "c")
    namespace.create(deployment("crowded", replicas=8, cpu="1", usage="870m"))
    namespace.wait_ready(8, "crowded")
    cordon(controlplane.api, "a")
    cordon(controlplane.api, "c", on=False)
    namespace.create(deployment("exposed", replicas=3))
    namespace.wait_ready(3, "exposed")
    cordon(controlplane.api, "a", "b", on=False)
    set_taints(controlplane.api, "c", taint("dedicated", "batch"))
    namespace.create(deployment("looping", replicas=4), deployment("broken", replicas=2))
    namespace.wait_ready(2, "broken")
    set_restarts(namespace, namespace.wait_ready(4, "looping"), restarts=150)
    set_failed(namespace, namespace.pods("broken")[:1], reason="Shutdown")
    wait_for(lambda: len(namespace.ready("broken")) == 2, "the replacement of the one that failed")
    set_old(namespace)
    return namespace


@pytest.fixture
def sparse(namespace):
    """A cluster with one node at work, by what its pods use, and two that are nearly idle, whatever is requested."""
    namespace.create(*(node(name, cpu="10") for name in ("a", "b", "c")))
    namespace.create(daemonset("agent"))
    namespace.create(deployment("steady", replicas=5, cpu="100m", usage="900m", node="a"))
    namespace.create(*(deployment(f"quiet-{on}", cpu="4", usage="100m", node=on) for on in ("b", "c")))
    namespace.wait_ready(3 + 5 + 2)
    return namespace


@pytest.mark.parametrize("name", BY_REQUESTS)
def test_policy_by_requests(troubled, program, name):
    """It is taken without a warning, finds something to do, and does exactly what its dry run listed."""
    before = uids(troubled.pods())

    plan = program.dry_run(SHIPPED[name], "--strict")
    untouched = uids(troubled.pods())
    outcome = program.run(SHIPPED[name], "--strict")

    assert (plan.exit_code, outcome.exit_code) == (0, 0), plan.stderr + outcome.stderr
    assert (plan.errors(), outcome.errors()) == ({}, {})
    assert (plan.report["warnings"], outcome.report["warnings"]) == ([], [])
    assert plan.evicted()
    assert untouched == before
    assert outcome.report["evictions"] == plan.report["evictions"]
    assert before - uids(troubled.pods()) == set(plan.evicted_uids())


@pytest.mark.parametrize("name", RELIEVING)
def test_policy_by_metrics_server(metrics, troubled, program, name):
    """It finds the node that is busy, and does as much as its dry run; which of equal pods may change."""
    moved = as_planned(metrics, troubled, program, SHIPPED[name])

    assert moved["LowNodeUtilization", "a"]


@pytest.mark.parametrize("name", CAREFUL)
def test_careful_policy_by_metrics_server(metrics, troubled, program, name):
    """Where all is in one namespace its limit is used up by what breaks rules, before the busy node's turn."""
    moved = as_planned(metrics, troubled, program, SHIPPED[name])

    assert moved.total() == SHIPPED[name]["maxNoOfPodsToEvictPerNamespace"]


@pytest.mark.parametrize("name", PACKING)
def test_packing_policy_by_metrics_server(metrics, sparse, program, name):
    """It empties both idle nodes, which have room for each other, onto the one at work, as its dry run said.

    Young pods without siblings would be spared, so all have run for long; and the preset leaves the only pods of owners
    alone, which is lifted here.
    """
    shipped = deepcopy(SHIPPED[name])
    shipped["profiles"][0]["pluginConfig"][0]["args"]["minReplicas"] = 1
    set_old(sparse)
    assert not program.dry_run(SHIPPED[name], "--strict").evicted()
    moved = as_planned(metrics, sparse, program, shipped)

    assert moved == {("HighNodeUtilization", "b"): 1, ("HighNodeUtilization", "c"): 1}


def as_planned(metrics, namespace, program, shipped):
    """Dry run and live run, once all is measured, come to the same; returns how many each strategy took off a node."""
    measured = {pod["metadata"]["name"] for pod in namespace.pods(phase="Running")}
    wait_for(lambda: measured <= figures(metrics.api, "PodMetrics", namespace.name).keys(), "figures of all pods")
    wait_round(metrics.api, "a", "b", "c")
    before = uids(namespace.pods())

    plan = program.dry_run(shipped, "--strict")
    untouched = uids(namespace.pods())
    outcome = program.run(shipped, "--strict")

    assert (plan.exit_code, outcome.exit_code) == (0, 0), plan.stderr + outcome.stderr
    assert (plan.errors(), outcome.errors()) == ({}, {})
    assert untouched == before
    assert before - uids(namespace.pods()) == set(outcome.evicted_uids())
    planned, moved = (
        Counter((each["strategy"], each["node"]) for each in run.report["evictions"]) for run in (plan, outcome)
    )
    assert moved == planned
    return moved
