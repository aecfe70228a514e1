"""The size of a plan compared with its cluster: how many pods of how many, of which owners, and what is alarming."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import DisruptionBudget
from rebalancer.engine.limits import Limits
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.report.layout import listed

_LARGEST = 5
#: A plan is alarming if it takes more than this share of the cluster's pods, or of the pods of an owner without a PDB.
_ALARMING_OF_CLUSTER = Fraction(1, 5)
_ALARMING_OF_OWNER = Fraction(1, 2)

NO_LIMITS = "the policy sets no limit on evictions (maxNoOfPodsToEvictTotal, ...PerNode, ...PerNamespace)"

_Owner = tuple[str, str, str]
Share = Mapping[str, Any]


def overview(
    evicted: Sequence[Pod],
    pods: Sequence[Pod],
    budgets: Iterable[DisruptionBudget] | None,
    limits: Limits,
    alarms: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the size of a plan, or of what was done; budgets are None where they were not read."""
    owners = _owner_shares(evicted, pods, DisruptionBudgets(budgets or ()))
    lost, had = (Counter(pod.namespace for pod in each) for each in (evicted, pods))
    namespaces = sorted(lost.items(), key=lambda each: (-each[1], each[0]))[:_LARGEST]
    given = {"total": limits.total, "node": limits.per_node, "namespace": limits.per_namespace}
    return {
        "pods": {"evicted": len(evicted), "total": len(pods)},
        "namespaces": [{"name": name, "evicted": count, "total": had[name]} for name, count in namespaces],
        "owners": owners[:_LARGEST],
        "limits": {name: each if each is None or isinstance(each, int) else str(each) for name, each in given.items()},
        "alarms": [*_alarms(len(evicted), len(pods), owners, limits), *alarms],
    }


def _owner_shares(evicted: Iterable[Pod], pods: Iterable[Pod], budgets: DisruptionBudgets) -> list[Share]:
    going = [pod for pod in evicted if pod.active]
    lost, had = (Counter(filter(None, map(_owner, each))) for each in (going, (pod for pod in pods if pod.active)))
    covered = {_owner(pod) for pod in going if budgets.select(pod)}
    ranked = sorted(lost.items(), key=lambda each: (-each[1], each[0]))
    return [
        dict(zip(("namespace", "kind", "name"), owner, strict=True))
        | {"evicted": count, "total": had[owner], "pdb": owner in covered}
        for owner, count in ranked
    ]


def _owner(pod: Pod) -> _Owner | None:
    return (pod.namespace, pod.controller.kind, pod.controller.name) if pod.controller else None


def _alarms(evicted: int, total: int, owners: Sequence[Share], limits: Limits) -> list[str]:
    alarms = [] if limits else [NO_LIMITS]
    if total and Fraction(evicted, total) > _ALARMING_OF_CLUSTER:
        alarms.append(f"{evicted} of {total} pods of the cluster: more than a fifth")
    bare = [each for each in owners if not each["pdb"]]
    for each in bare:
        lost, had = each["evicted"], each["total"]
        if had > 1 and Fraction(lost, had) > _ALARMING_OF_OWNER:
            share = "all" if lost == had else "more than half"
            alarms.append(f"{lost} of {had} pods of {_named(each)}, which no PDB covers: {share}")
    if singles := sorted(_named(each) for each in bare if each["total"] == 1):
        alarms.append(f"the only pod of {listed(singles, _LARGEST)}: nothing serves until its replacement is Ready")
    return alarms


def _named(owner: Share) -> str:
    return f"{owner['kind']} {owner['namespace']}/{owner['name']}"
