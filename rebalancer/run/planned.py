"""Plans made and applied: a plan is a dry run as a file, and to apply it is a run that may evict its pods alone.

There is one path: the strategies of the policy decide anew on the cluster as it is, and the gate lets no pod go that
the plan does not name (`NotPlanned`).  So whatever has changed, a subset of the plan goes, in the order of a run, under
the same protections, limits and PDBs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import rebalancer
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.cycle import ProfilePlan
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.ledger import Ledger
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.engine.strategy import Balance
from rebalancer.errors import UsageError
from rebalancer.eviction.causes import Code
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.verdict import Failed, Refused, Unknown
from rebalancer.policy.arguments import Args
from rebalancer.report.plan import LONGEST, MOST_BUDGETS, Plan, PlannedMove, PlannedNode, PlanOptions, plan_policy
from rebalancer.report.words import text

#: A clock may be so much behind the one by which the plan was made.
_SKEW = timedelta(minutes=1)
_NAMED = 20
_GONE = "it is gone: evicted already, or deleted"
_NOT_PICKED = "no strategy picks it any more; --force-premises evicts it all the same"


@dataclass(frozen=True, slots=True)
class ChosenPart:
    """What of a plan is to be applied, unless it is too old; with `force` also pods that no strategy picks any more."""

    plan: Plan
    moves: tuple[PlannedMove, ...]
    max_age: timedelta
    force: bool = False

    def profiles(self, plans: Iterable[ProfilePlan]) -> tuple[ProfilePlan, ...]:
        """Return profiles that let none but the planned pods go."""
        only, found = frozenset(move.uid for move in self.moves), []
        for each in plans:
            moves = tuple(move for move in self.moves if move.profile == each.name)
            forced = (AsPlanned(AsPlannedArgs(moves=moves)),) if self.force and moves else ()
            found.append(replace(each, only=only, balance=(*each.balance, *forced)))
        return tuple(found)

    def demand(self, snapshot: Snapshot) -> None:
        """Refuse a plan of another cluster, one that is too old or calls a pod by another's name, by a UsageError."""
        wanted, found = self.plan.cluster.get("uid"), snapshot.cluster_uid
        if not wanted or not found:
            where = "the plan does" if not wanted else "this cluster's objects do"
            raise UsageError(f"{where} not tell which cluster it is: the namespace kube-system could not be read")
        if wanted != found:
            raise UsageError(f"the plan is for another cluster: kube-system has the UID {wanted} there, {found} here")
        age = snapshot.now - self.plan.created
        if age > self.max_age:
            raise UsageError(
                f"the plan is {_minutes(age)} old, and --max-age is {_minutes(self.max_age)}: make a new one"
            )
        if age < -_SKEW:
            raise UsageError(f"the plan was made {_minutes(-age)} in the future: look at the clocks")
        names = {pod.uid: str(pod) for pod in snapshot.pods}
        if odd := next((each for each in self.moves if names.get(each.uid, str(each)) != str(each)), None):
            raise UsageError(f"the plan was changed: the pod that it calls {odd} is {names[odd.uid]} by its UID")


class AsPlannedArgs(Args):
    """The moves of one profile."""

    moves: tuple[PlannedMove, ...] = ()


class AsPlanned(Balance[AsPlannedArgs]):
    """Asks for the planned pods that no strategy has picked, in the order of the plan."""

    name = "AsPlanned"
    Args = AsPlannedArgs

    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Ask for each pod that is still there."""
        pods = {pod.uid: pod for pod in cluster.snapshot.pods}
        for move in self.args.moves:
            pod = pods.get(move.uid)
            if pod is not None and cluster.contains(pod) and evict.evictable(pod, move.reason):
                evict(pod, move.reason)  # its replacement may land elsewhere by now than the plan says


def applied(chosen: ChosenPart, ledger: Ledger, cluster: Cluster) -> dict[str, Any]:
    """Return what became of the moves of a plan: which went, and why others were skipped."""
    gone, reasons = {entry.pod.uid for entry in ledger.evictions}, dict[str, str]()
    there, ended = {pod.uid for pod in cluster.snapshot.pods}, ledger.stopped
    for entry in reversed((*ledger.refusals, *ledger.failures, *ledger.unknown)):
        match entry.verdict:
            case Refused(cause=cause):
                reasons[entry.pod.uid] = text(cause)
                ended = ended or (text(cause) if cause.code is Code.TOTAL_LIMIT else "")
            case Failed(error=error) | Unknown(error=error):
                reasons[entry.pod.uid] = error
    failed = {(run.profile, run.strategy): run.error for run in ledger.runs}

    def reason(move: PlannedMove) -> str:
        if ledger.skipped or move.uid not in there:  # what was not read has no pods
            return ledger.skipped or _GONE
        return reasons.get(move.uid) or ended or failed.get((move.profile, move.strategy)) or _NOT_PICKED

    skipped = [
        {"namespace": move.namespace, "name": move.name, "uid": move.uid, "reason": reason(move)}
        for move in chosen.moves
        if move.uid not in gone
    ]
    left_out = len(chosen.plan.moves) - len(chosen.moves)
    return {"moves": len(chosen.moves), "leftOut": left_out, "evicted": len(gone), "skipped": skipped}


def skipped_in_words(skipped: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield a warning for each of the first moves that were skipped, and one for all others."""
    for each in skipped[:_NAMED]:
        yield f"of the plan, {each['namespace']}/{each['name']} is skipped: {each['reason']}"
    if len(skipped) > _NAMED:
        yield f"of the plan, {len(skipped) - _NAMED} more are skipped; `--output json` names them under plan.skipped"


def make_plan(
    report: Mapping[str, Any],
    cluster: Cluster,
    plans: Iterable[ProfilePlan],
    policy: tuple[str, str],
    given: PlanOptions,
) -> Plan:
    """Return the plan of a dry run, with the name and text of its policy, and what the command line said."""
    snapshot = cluster.snapshot
    pods = {pod.uid: pod for pod in snapshot.pods}
    budgets = DisruptionBudgets(sorted(snapshot.budgets or (), key=lambda each: each.name), snapshot.pods)
    waves = {
        move["uid"]: number
        for run in report["strategies"]
        for number, wave in enumerate(run["waves"], 1)
        for move in wave["moves"]
    }
    compared = [(run, run["strategy"]) for run in report["strategies"] if run["nodes"]]
    if len({name for _, name in compared}) < len(compared):  # two profiles have it
        compared = [(run, f"{run['profile']}/{name}"[-253:]) for run, name in compared]
    if any(not each["uid"] for each in report["evictions"]):
        raise UsageError("a pod of the plan has no UID, so it could not be told from others: take the snapshot anew")
    return Plan(
        created=datetime.fromisoformat(report["now"]),
        program=f"rebalancer {rebalancer.__version__}",
        cluster={"uid": snapshot.cluster_uid, **report["cluster"]},
        policy=plan_policy(*policy),
        options=given,
        protections={each.name: Evictor(cluster, each.evictor).protections for each in plans},
        moves=tuple(_move(each, pods[each["uid"]], budgets, waves.get(each["uid"])) for each in report["evictions"]),
        nodes=tuple(
            PlannedNode(strategy=name, name=node["name"], before=node["before"], after=node["after"])
            for run, name in compared
            for node in run["nodes"]
        ),
        targets={name: run["targetThresholds"] for run, name in compared},
        warnings=tuple([each[:LONGEST] for each in report["warnings"]]),
    )


def _move(entry: Mapping[str, Any], pod: Pod, budgets: DisruptionBudgets, wave: int | None) -> PlannedMove:
    keys = ("namespace", "name", "uid", "node", "profile", "strategy", "cause", "destination")
    allowed = [{"name": each.name, "allowed": each.disruptions_allowed} for each in budgets.selecting(pod)]
    owner = entry["owner"] and {key: text[:LONGEST] for key, text in entry["owner"].items()}
    cut: dict[str, object] = {"owner": owner, "reason": entry["reason"][:LONGEST], "budgets": allowed[:MOST_BUDGETS]}
    more = {"resourceVersion": pod.resource_version, "wave": wave}
    return PlannedMove.model_validate({key: entry[key] for key in keys} | cut | more)


def _minutes(age: timedelta) -> str:
    return f"{age.total_seconds() / 60:.0f} min"
