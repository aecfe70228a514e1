"""Why a pod goes or stays: what each strategy and each protection says of it, and what the scheduler would do with it.

The verdict is that of the dry run, so `explain` and `run` cannot disagree; what is added is all other causes, and the
scheduler's view of every node.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.engine.cycle import ProfilePlan
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.restarts import restarting
from rebalancer.errors import UsageError
from rebalancer.policy.moving import Trust
from rebalancer.report.layout import count
from rebalancer.report.words import text
from rebalancer.scheduling.simulation import Simulation

Report = Mapping[str, Any]

#: As kubectl spells them.
_KINDS = {
    **dict.fromkeys(("po", "pod", "pods"), "Pod"),
    **dict.fromkeys(("deploy", "deployment", "deployments"), "Deployment"),
    **dict.fromkeys(("rs", "replicaset"), "ReplicaSet"),
    **dict.fromkeys(("sts", "statefulset"), "StatefulSet"),
    **dict.fromkeys(("ds", "daemonset"), "DaemonSet"),
    **dict.fromkeys(("node", "no", "nodes"), "Node"),
    "job": "Job",
}
_OTHERS = "deploy/NAME, sts/NAME, rs/NAME, job/NAME, ds/NAME and node/NAME can be explained too"


def wanted_pods(target: str, namespace: str, cluster: Cluster) -> tuple[str, tuple[Pod, ...]]:
    """Return the node that a target (`NAME`, `deploy/NAME`, `node/NAME` ...) names, if it is one, and its pods.

    The namespace is that of the pod or owner; `NAMESPACE/NAME` is a pod too.
    """
    short, _, name = target.rpartition("/")
    kind = _KINDS.get(short.lower(), "Pod")
    namespace = namespace if not short or short.lower() in _KINDS else short
    if kind == "Node":
        on_node = tuple(each for each in cluster.snapshot.pods if each.node == name)
        if not on_node:
            raise UsageError(f"there is no pod on node {name}" if cluster.node(name) else f"there is no node {name}")
        return name, on_node
    pods = tuple(each for each in cluster.snapshot.pods if each.namespace == namespace and _is_meant(each, kind, name))
    if not pods:
        what = f"pod {name}" if kind == "Pod" else f"{kind} {name} with pods"
        raise UsageError(f"there is no {what} in namespace {namespace}; -n names another one; {_OTHERS}")
    return "", pods


def _is_meant(pod: Pod, kind: str, name: str) -> bool:
    owner = pod.controller
    if kind == "Pod" or not owner:
        return kind == "Pod" and pod.name == name
    if kind == "Deployment":  # its ReplicaSets have its name, a dash and a hash
        return owner.kind == "ReplicaSet" and owner.name.rpartition("-")[0] == name
    return owner.kind == kind and owner.name == name


def explained(
    pod: Pod, cluster: Cluster, plans: Iterable[ProfilePlan], report: Report, trust: Trust | None = None
) -> dict[str, Any]:
    """Return why a pod goes or stays; the cluster is as the cycle began, and the report that of the dry run."""
    restarted = restarting(trust, cluster)
    went = next((each for each in report["evictions"] if _is_about(each, pod)), None)
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "node": pod.node,
        "goes": went is not None,
        "because": went and {key: went[key] for key in ("profile", "strategy", "reason", "cause", "destination")},
        "profiles": [
            {
                "profile": plan.name,
                "heldBy": [text(x) for x in Evictor(cluster, plan.evictor, restarted=restarted).causes(pod)],
                "strategies": [
                    {"strategy": each.name, "says": _says(pod, plan.name, each.name, report)}
                    for each in (*plan.deschedule, *plan.balance)
                ],
            }
            for plan in plans
        ],
        "onNode": [
            {"strategy": run["strategy"], "state": node["state"], "percent": node["before"]}
            | {key: run[key] for key in ("thresholds", "targetThresholds")}
            for run in report["strategies"]
            for node in run["nodes"]
            if node["name"] == pod.node
        ],
        "scheduler": _scheduler_view(pod, cluster),
    }


def _says(pod: Pod, profile: str, strategy: str, report: Report) -> str:
    for key, words in (("evictions", "goes: {reason}"), ("refusals", "asked for, and stays: {reason}")):
        for each in report[key]:
            if _is_about(each, pod) and (each["profile"], each["strategy"]) == (profile, strategy):
                return words.format(reason=each["reason"])
    errors = {(each["profile"], each["strategy"]): each["error"] for each in report["strategies"]}
    if skipped := report["skipped"]:
        return f"was not asked: {skipped}"
    error = errors.get((profile, strategy))
    who = f"{profile}/{strategy}: "
    warnings = [each.removeprefix(who) for each in report["warnings"] if each.startswith(who)]
    return f"failed: {error}" if error else "; ".join(["does not ask for it", *warnings])


def _is_about(entry: Report, pod: Pod) -> bool:
    return (entry["namespace"], entry["name"]) == pod.key and entry["node"] == pod.node


def _scheduler_view(pod: Pod, cluster: Cluster) -> dict[str, Any]:
    simulation = cluster.index(Simulation)
    moments, answer = simulation.weigh(pod), simulation.ask(pod)
    # A node that only takes the replacement once the old pod is gone counts with what it scores then.
    scores = {name: each.scores(name) for each in reversed(moments) for name in each.feasible_nodes()}
    refused = {name: reasons for name, reasons in moments[0].refused.items() if name not in scores}
    totals = {name: sum(plugins.values()) for name, plugins in scores.items()}
    return {
        "unknown": answer.unknown or ("" if refused or scores else answer.reason),
        "evaluated": len(refused) + len(scores),
        "feasible": len(scores),
        "refused": [{"node": name, "reasons": list(reasons)} for name, reasons in refused.items()],
        "scores": [
            {"node": name, "total": totals[name], "plugins": dict(scores[name])}
            for name in sorted(totals, key=lambda name: (-totals[name], name))
        ],
        "lands": list(answer.nodes),
    }


def explanation_lines(document: Mapping[str, Any], *, scores: bool) -> Iterator[str]:
    """Yield an explanation for people."""
    pod = f"{document['namespace']}/{document['name']}"
    because = document["because"]
    on = f"on {document['node']}" if document["node"] else "without a node"
    yield f"{pod}, {on}: {'goes' if document['goes'] else 'stays'}"
    if because:
        yield f"  {because['strategy']}: {because['reason']}"
    for state in document["onNode"]:
        yield f"  {document['node']} is {state['state']} for {state['strategy']}: {_percents(state)}"
    for profile in document["profiles"]:
        yield f"  profile {profile['profile']}"
        for each in profile["strategies"]:
            yield f"    {each['strategy']} {each['says']}"
        held = f"would have to change: {'; '.join(profile['heldBy'])}"
        yield f"    {held if profile['heldBy'] else 'no protection and no filter holds it'}"
    yield from _scheduler_lines(document["scheduler"], scores=scores)


def _percents(state: Mapping[str, Any]) -> str:
    shares = (f"{name} {share:.0f} %" for name, share in state["percent"].items() if share is not None)
    targets = (f"{name} {share:g} %" for name, share in state["targetThresholds"].items())
    return f"{', '.join(shares)} (target {', '.join(targets) or 'none'})"


def _scheduler_lines(view: Mapping[str, Any], *, scores: bool) -> Iterator[str]:
    if view["unknown"]:
        yield f"  the scheduler's choice is not known: {view['unknown']}"
    if not view["evaluated"]:
        return
    yield f"  its replacement: {view['evaluated']} nodes evaluated, {view['feasible']} feasible"
    counts: dict[str, list[str]] = {}
    for each in view["refused"]:
        counts.setdefault("; ".join(each["reasons"]) or "not named by its affinity", []).append(each["node"])
    for reasons, nodes in sorted(counts.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield f"    {count(len(nodes), 'node')}: {reasons}"
    if view["lands"]:
        yield f"    would land on {', '.join(view['lands'][:5])}"
    for each in view["scores"] if scores else ():
        plugins = ", ".join(f"{name} {score}" for name, score in each["plugins"].items())
        yield f"    {each['node']}: {each['total']} ({plugins})"
