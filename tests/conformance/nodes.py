"""Nodes: ready, selected, cordoned, tainted, and whether a pod fits."""

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.selectors import parse_selector_text
from rebalancer.cluster.taints import Taint, Toleration
from rebalancer.report.words import text
from rebalancer.scheduling.eligibility import EligibleNodes
from rebalancer.scheduling.fit import Preferences, why_repelled
from tests.conformance.answers import Answer, equal
from tests.conformance.corpus import Case
from tests.conformance.snapshots import cluster, nodes, pod, snapshot

#: How the descheduler words what our reasons begin with.
_REASONS = {
    "insufficient pods": "no free pod slot",
    "pod matches inter-pod anti-affinity rule of other pod on node": "anti-affinity against",
}


def ready(case: Case) -> Answer:
    observed = {node.name: node.ready for node in nodes(case)}
    return equal({name: observed[name] for name in case["expected"]}, case["expected"])


def ready_and_selected(case: Case) -> Answer:
    on = cluster(case, parse_selector_text(case["nodeSelector"]))
    return equal([node.name for node in on.nodes], case["expected_nodes"])


def selected(case: Case) -> Answer:
    selector = parse_selector_text(case["nodeSelector"])
    return equal([node.name for node in nodes(case) if selector.matches(node.labels)], case["expected_nodes"])


def unschedulable(case: Case) -> Answer:
    return equal(nodes(case)[0].unschedulable, case["expected"])


def fit(case: Case) -> Answer:
    """NodeFit with its reason; PodFitsCurrentNode asks about the only node, PodFitsAnyOtherNode about the others."""
    others = snapshot(case)
    asked = pod(case)
    eligible = Cluster(others).index(EligibleNodes)
    if case["function"] == "PodFitsAnyOtherNode":
        return equal(eligible.among(others.nodes).any_for(asked), case["expected"])
    obstacle = eligible.why_not(asked, others.nodes[0])
    reason = text(obstacle) if obstacle else ""
    said = case.get("expected_error") or ""
    if not reason.startswith(_REASONS.get(said, said)):
        return equal(reason, said)
    return equal(not reason, case["expected"])


def repelled(case: Case) -> Answer:
    on = snapshot(case)
    asked = pod(case)
    observed = any(why_repelled(asked, node, on.pods) for node in on.nodes)
    return equal(observed, case["expected"])


def weight(case: Case) -> Answer:
    return equal(Preferences.weight(pod(case).spec, nodes(case)[0]), case["expected"])


def best_weight(case: Case) -> Answer:
    best, _ = Preferences(nodes(case)).best(pod(case).spec)
    return equal(best, case["expected"])


def tolerates(case: Case) -> Answer:
    return equal(Toleration(**case["toleration"]).tolerates(Taint(**case["taint"])), case["expected"])
