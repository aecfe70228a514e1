"""The descheduler's own test cases, put to this program."""

from collections.abc import Callable, Mapping

import pytest

from tests.conformance import corpus, evictions, evictor, objects, policies, runs, usage
from tests.conformance.answers import Answer
from tests.conformance.exceptions import DIFFERENT, LEFT_OUT

CHECKS: Mapping[str, Callable[[corpus.Case], Answer]] = {
    "args_defaults": policies.defaults,
    "args_validation": policies.validate,
    "average_usage": usage.average,
    "best_preferred_node_affinity_weight": objects.best_weight,
    "classify_deviation_thresholds": usage.classes_around_mean,
    "effective_pod_protections": evictor.protections,
    "evict_pod": evictions.evict,
    "evictor_filter": evictor.filters,
    "evictor_init": evictor.initialise,
    "evictor_limits": evictions.limits,
    "list_pods_on_node": objects.listed,
    "node_fit": objects.fit,
    "node_ready": objects.ready,
    "node_selector": objects.selected,
    "node_unschedulable": objects.unschedulable,
    "normalize_and_classify": usage.classes,
    "plugin": runs.run,
    "pod_types": evictor.pod_types,
    "pods_with_anti_affinity_exist": objects.repelled,
    "policy_decode": policies.decode,
    "policy_run": runs.run,
    "policy_validate": policies.validate,
    "preferred_node_affinity_weight": objects.weight,
    "prometheus_usage": usage.shares,
    "protected_pvc_storage_classes": evictor.storage_classes,
    "ready_nodes": objects.ready_and_selected,
    "sort_domains": objects.by_cost_in_domains,
    "sort_nodes_by_usage": usage.sorted_nodes,
    "sort_pods_by_age": objects.by_age,
    "sort_pods_by_priority_low_to_high": objects.by_priority,
    "sum_thresholds": usage.sums,
    "tolerates_taint": objects.tolerates,
    "usage_to_percentage": usage.percentages,
}


def _function(case):
    return str(case["id"]).rpartition("/")[0]


_CASES = corpus.read()
_ABSENT = pytest.param(None, id="corpus", marks=pytest.mark.skip(reason=corpus.missing() or "there are some"))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in _CASES] or [_ABSENT])
def test_case(case):
    """The program decides as the descheduler does, or differs exactly as listed."""
    if why := LEFT_OUT.get(_function(case)):
        pytest.skip(f"left out: {why}")
    difference = DIFFERENT.get(case["id"])
    answer = CHECKS[case["kind"]](case)
    if difference is None:
        assert answer.agrees, f"observed {answer.observed}, expected {answer.expected}"
    else:
        assert not answer.agrees, "it agrees by now: take it off the list"
        assert answer.observed == difference.instead


@pytest.mark.skipif(not _CASES, reason=corpus.missing() or "there are some")
def test_exceptions_name_cases():
    assert set(DIFFERENT) <= {case["id"] for case in _CASES if _function(case) not in LEFT_OUT}
    assert set(LEFT_OUT) <= {_function(case) for case in _CASES}
