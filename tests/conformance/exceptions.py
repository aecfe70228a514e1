"""The one list of cases that do not pass, each with its reason.

DIFFERENT: the program decides otherwise on purpose; the harness checks that it does so in the very way listed.
LEFT_OUT: nothing in the program plays the role of the function under test.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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

#: By the function under test, of which all cases are left out.
LEFT_OUT: Mapping[str, str] = {
    "utils/TestUniqueSortTolerations": _COMPARED,
    "utils/TestTolerationsEqual": _COMPARED,
    "utils/TestUniqueSortNodeSelectorRequirements": _COMPARED,
    "utils/TestUniqueSortNodeSelectorTerms": _COMPARED,
    "utils/TestNodeSelectorTermsEqual": _COMPARED,
    "normalizer/TestClamp": "percentages are kept between 0 and 100; other bounds do not occur",
}
