"""The descheduler's own test cases, put to this program."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conformance import corpus, evictions, evictor, objects, policies, runs, usage
from tests.conformance.answers import Answer


@dataclass(frozen=True)
class Difference:
    """Why, and what the program makes of the case instead."""

    reason: str
    instead: Any


_EVICTOR = "TestDefaultEvictorFilter"
_MIRROR = (
    f"{_EVICTOR}/Pod is evicted because it is a mirror pod, but it has scheduler.alpha.kubernetes.io/evict annotation"
)
_NEVER_MIRROR = "a mirror pod stays whatever its annotations say: the kubelet would only make it again"
_GRANTED_COUNT = "minReplicas counts what this cycle has granted already; the descheduler looks at the state before it"
_DOMAINS = "removepodsviolatingtopologyspreadconstraint/TestSortDomains"
_LOW_FIRST = "of a crowded domain low priorities leave before high ones, which in the descheduler leave first"

#: The one list of cases that do not pass: the program decides otherwise on purpose, and in the very way listed.
DIFFERENT: Mapping[str, Difference] = {
    f"defaultevictor/{_MIRROR}": Difference(
        _NEVER_MIRROR, {"Filter default/p11": False, "PreEvictionFilter default/p11": True}
    ),
    f"defaultevictor_cli/{_MIRROR}": Difference(_NEVER_MIRROR, []),
    f"defaultevictor_cli/{_EVICTOR}/minReplicas of 2, owner with 2 replicas, evicts": Difference(
        _GRANTED_COUNT, ["default/p1"]
    ),
    f"defaultevictor_cli/{_EVICTOR}/minReplicas of 2, multiple owners, no eviction": Difference(
        _GRANTED_COUNT, ["default/p1"]
    ),
    f"defaultevictor_cli/{_EVICTOR}/ignorePodsWithoutPDB, pod with PDBs, evicts": Difference(
        "its PDB allows no disruption, and a PDB counts in a dry run as it does in a live one", []
    ),
    f"{_DOMAINS}/single domain with mixed pods": Difference(
        _LOW_FIRST, {"a": ["evictable-high-priority", "evictable-with-affinity"]}
    ),
    f"{_DOMAINS}/multiple domains with different priorities and selectors": Difference(
        _LOW_FIRST, {"a": ["high-priority-affinity", "low-priority-no-affinity"], "b": ["medium-priority-affinity"]}
    ),
    "policy_probes/v1alpha1": Difference("a v1alpha1 policy is converted instead of refused", True),
    "removefailedpods/TestSetDefaults_RemoveFailedPodsArgs/RemoveFailedPodsArgs empty": Difference(
        "the default is filled in at once; in the descheduler this function leaves it to the decoding of the policy, "
        "with the same outcome (TestDecodeDefaults)",
        {"minPodLifetimeSeconds": 3600},
    ),
}

_COMPARED = "no tolerations or selectors are sorted or compared: equal specs are one shared value"

#: By the function under test, of which all cases are left out: nothing in the program plays its role.
LEFT_OUT: Mapping[str, str] = {
    "utils/TestUniqueSortTolerations": _COMPARED,
    "utils/TestTolerationsEqual": _COMPARED,
    "utils/TestUniqueSortNodeSelectorRequirements": _COMPARED,
    "utils/TestUniqueSortNodeSelectorTerms": _COMPARED,
    "utils/TestNodeSelectorTermsEqual": _COMPARED,
    "normalizer/TestClamp": "percentages are kept between 0 and 100; other bounds do not occur",
}


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
