"""Pods: listed and sorted."""

from collections.abc import Mapping
from typing import Any

from rebalancer.api import cheapest_first
from rebalancer.cluster.selectors import EVERYTHING, parse_label_selector
from strategies.remove_pods_violating_topology_spread_constraint import _cost
from tests.conformance.answers import Answer, equal
from tests.conformance.corpus import Case
from tests.conformance.snapshots import cluster, snapshot


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
