"""Pods: listed and sorted."""

from rebalancer.api import cheapest_first
from rebalancer.model.selectors import EVERYTHING, parse_label_selector
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
