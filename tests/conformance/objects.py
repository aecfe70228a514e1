"""Nodes and pods: ready, selected, cordoned, tainted, listed and sorted, and whether a pod fits."""

from collections.abc import Mapping
from typing import Any

from rebalancer.api import cheapest_first
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.selectors import EVERYTHING, parse_label_selector, parse_selector_text
from rebalancer.cluster.taints import Taint, Toleration
from rebalancer.report.words import text
from rebalancer.scheduling.eligibility import EligibleNodes
from rebalancer.scheduling.fit import Preferences, why_repelled
from strategies.remove_pods_violating_topology_spread_constraint import _cost
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


def listed(case: Case) -> Answer:
    on = cluster(case)
    node = on.node(case["node"])
    assert node is not None
    selector = parse_label_selector(case["labelSelector"]) if case["labelSelector"] else EVERYTHING
    return equal(sum(selector.matches(pod.labels) for pod in on.pods_on(node)), case["expected_count"])


def by_priority(case: Case) -> Answer:
    return equal([pod.name for pod in cheapest_first(snapshot(case).pods)], case["expected_order"])


def by_age(case: Case) -> Answer:
    pods = sorted(snapshot(case).pods, key=lambda pod: pod.age_order)
    return equal([pod.name for pod in pods], case["expected_order"])


def by_cost_in_domains(case: Case) -> Answer:
    """Order the pods of each domain as the strategy does, from those that stay longest to those that leave first.

    Pods that may not be evicted never get that far.
    """
    observed = {}
    for domain in case["domains"]:
        pods = snapshot({"now": case["now"], "pods": _evictable(domain)}).pods
        observed[domain["topologyValue"]] = [pod.name for pod in sorted(pods, key=_cost, reverse=True)]
    expected = {
        domain["topologyValue"]: [pod["metadata"]["name"] for pod in _evictable(domain)] for domain in case["expected"]
    }
    return equal(observed, expected)


def _evictable(domain: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [pod for pod in domain["pods"] if pod["metadata"]["annotations"]["evictable"] == "true"]
