"""Why pods stay, in words: protections, filters, limits, PDBs, rest after a move, the rules of balancing.

And why nodes do not take a pod.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rebalancer.cluster.resources import describe
from rebalancer.eviction.causes import Code
from rebalancer.report.layout import age_text, ages_text, number_text

Figures = Mapping[str, Any]
Words = Callable[[Figures], str]

_SHOWN = 3


def words(table: Mapping[Code, str | Mapping[str, str] | Words]) -> dict[Code, Words]:
    """Return the table with functions only; a template names details in braces, and of several the first fits."""
    return {code: each if callable(each) else partial(_said, each) for code, each in table.items()}


def _said(template: str | Mapping[str, str], details: Figures) -> str:
    """Return a template with its details; of several the first whose detail is there, or that for the name ""."""
    if isinstance(template, str):
        return template.format_map(details)
    return next((text.format_map(details) for name, text in template.items() if not name or name in details), "")


def _insufficient(details: Figures) -> str:
    name = details["resource"]
    if "requested" not in details:
        return f"insufficient {name}"
    return (
        f"insufficient {name} "
        f"({describe(name, details['requested'])} requested, {describe(name, details['free'])} free)"
    )


NODES = words(
    {
        Code.ABOVE_CEILING: lambda details: f"{details['resource']} above {number_text(details['ceiling'])} %",
        Code.ANTI_AFFINITY: "anti-affinity against {pod}",
        Code.CORDONED: "cordoned",
        Code.HELD_NODE: "which is held empty",
        Code.IDLE_NODE: "which is to be emptied, too",
        Code.INSUFFICIENT: _insufficient,
        Code.NO_POD_SLOT: "no free pod slot",
        Code.NODE_AFFINITY: "node selector or affinity does not match",
        Code.OWN_NODE: "where it is",
        Code.TAINT: "taint {taint} is not tolerated",
        Code.UNKNOWN_USAGE: "whose usage is unknown",
        Code.OTHER_POOL: "which is of another pool",
    }
)


def obstacle_text(obstacle: Figures) -> str:
    """Return why a node does not take a pod; an obstacle is `code` and its details."""
    return NODES[Code(obstacle["code"])](obstacle)


def obstacles_text(obstacles: Sequence[Figures]) -> str:
    """Return the most frequent obstacles with their numbers, like `3 x cordoned, 1 x insufficient cpu`."""
    counted = sorted((-each["count"], obstacle_text(each)) for each in obstacles)
    shown = [f"{-count} x {what}" for count, what in counted]
    more = ["..."] if len(shown) > _SHOWN else []
    return ", ".join(shown[:_SHOWN] + more)


_CRITICAL = {
    "priority": "critical: priority {priority} >= {threshold}",
    "priority_class": "critical: its priority class is {priority_class}",
    "": "annotated as critical",
}


def _persistent(details: Figures) -> str:
    if "claim" not in details:
        return "uses a PersistentVolumeClaim"
    if details["storage_class"] is None:
        return f"storage class of claim {details['claim']} is unknown, so it counts as protected"
    return f"claim {details['claim']} has protected storage class {details['storage_class']}"


def _too_young(details: Figures) -> str:
    if details["age_seconds"] is None:
        return "has not started"
    age, minimum = ages_text(details["age_seconds"], details["minimum_seconds"])
    return f"started {age} ago, less than {minimum}"


def _node_fit(details: Figures) -> str:
    if "domains" in details:
        return "fits no node of a domain below the average"
    if said := _said(_NO_CERTAIN_ROOM, details):
        return said
    if not details["nodes"]:
        return "there is no other node"
    return f"fits none of {details['nodes']} other nodes: {obstacles_text(details['obstacles'])}"


#: What `nodeFit: scheduler` found.
_NO_CERTAIN_ROOM = {
    "unschedulable": "the scheduler would find no node for its replacement: {unschedulable}",
    "unknown": "it is not known whether its replacement fits: {unknown}",
    "tied": "a rule between pods ties its replacement to that of {tied}: which comes first is not known",
    "crowd": "{nodes} nodes have room for its replacement, but {crowd} others may take that first",
    "ousted": "its replacement might take the room of that of {ousted}",
}
_PDB = {
    "problem": "PDB {pdb} could not be read, so it allows nothing: {problem}",
    "disrupted": "PDB {pdb} counts it as disrupted: its eviction has been granted before",
    "observed": "PDB {pdb} has changed and its status does not show it yet",
    "": "PDB {pdb} allows none of its {disruptions_allowed} disruptions any more",
}


def _pdb(details: Figures) -> str:
    if "pdbs" in details:
        more = f" and {details['more']} more" if "more" in details else ""
        return f"more than one PDB selects it ({', '.join(details['pdbs'])}{more}), which the API server refuses"
    return _said(_PDB, details)


_NO_DESTINATION = {
    "unschedulable": "no destination: the scheduler would find none, {unschedulable}",
    "unknown": "no destination is known: {unknown}",
    "gathers": "no destination: all pods of its owner would be on {gathers}",
}


def _no_destination(details: Figures) -> str:
    if "tolerated" in details:
        return "tolerates the taints of no destination"
    for name, choice in (("likely", "would likely choose"), ("may_choose", "may choose")):
        if name in details:
            return f"no destination: the scheduler {choice} {details[name]}, {obstacle_text(details['harm'])}"
    if said := _said(_NO_DESTINATION, details):
        return said
    return f"no destination: of {details['nodes']} nodes {obstacles_text(details['obstacles'])}"


def _no_usage(details: Figures) -> str:
    if "pods_measured" in details:
        return "this source does not measure pods, so at most one leaves a node"
    if "used" in details:
        return "it uses nothing"
    of = f" of {', '.join(details['resources'])}" if "resources" in details else ""
    return f"its usage{of} is unknown"


def _younger_than_window(details: Figures) -> str:
    age, window = ages_text(details["age_seconds"], details["window_seconds"])
    return f"{age} old, and figures sum up {window}"


def _keep_free(details: Figures) -> str:
    free, keep = number_text(details["free"]), number_text(details["keep"])
    return f"the other nodes would have {free} % of their {details['resource']} free, and {keep} % are to be kept"


_LOST = "{owner[kind]} {owner[name]} has lost {lost} of {pods} pods in this cycle"
_OWNER_SHARE = {"limit": f"{_LOST}, and {{limit}} is the most", "": f"{_LOST}, and without a PDB a quarter is the most"}


def _back_off(details: Figures) -> str:
    times = "" if details["times"] == 1 else f" by {details['times']} cycles"
    return f"its owner was moved of late{times}: it rests for {age_text(details['left_seconds'])} more"


def _keeping(say: Words) -> Words:
    def both(details: Figures) -> str:
        node = details.get("keeps_node")
        return say(details) + (f"; it keeps {node}, which is emptied whole or not at all" if node else "")

    return both


_STAYS = words(
    {
        Code.BARE_PODS: "has no owner and has not failed",
        Code.DAEMON_SET_PODS: "belongs to a DaemonSet",
        Code.FAILED_BARE_PODS: "has no owner",
        Code.LABEL_SELECTOR: "labels do not match the evictor's",
        Code.LOCAL_STORAGE: "uses local storage",
        Code.MALFORMED_NODES: "its node {node} could not be read: {problem}",
        Code.MALFORMED_PODS: "could not be read: {problem}",
        Code.MIN_POD_AGE: _too_young,
        Code.MIRROR_PODS: "a mirror pod, the kubelet would keep it",
        Code.PREFER_NO_EVICTION: "annotated prefer-no-eviction",
        Code.PRIORITY_THRESHOLD: "priority {priority} >= {threshold}",
        Code.PVC: _persistent,
        Code.RESOURCE_CLAIMS: "claims devices",
        Code.STATIC_PODS: "a static pod, the kubelet would keep it",
        Code.SYSTEM_CRITICAL_PODS: _CRITICAL,
        Code.TERMINATING_PODS: "already terminating",
        Code.WITHOUT_PDB: {"known": "PDBs are unknown, so it counts as having none", "": "no PDB selects it"},
        Code.AUTOSCALED: lambda details: f"its owner was scaled {age_text(details['age_seconds'])} ago",
        Code.BACK_OFF: _back_off,
        Code.DO_NOT_DISRUPT: "its annotation {annotation} asks to leave it alone",
        Code.FINISHING_JOB: "its Job is about to complete",
        Code.FIRST_MOVE: "nothing is remembered of earlier cycles, so {owner} loses one pod at most",
        Code.LEAVING_NODE: "others take node {node} out of service ({sign})",
        Code.FALLS_BY_ITSELF: "{node} over now, falls by itself at {at} UTC as on {days} of {of} days",
        Code.NOT_LASTING: "{node} is over its target in {times} of the last {of} cycles, and {cycles} are needed",
        Code.DEFERRED: "deferred to the next run: {why}",
        Code.NOT_WORTH: lambda details: (
            f"gains {number_text(details['gain'])} point hours, and moving it costs {number_text(details['price'])}"
        ),
        Code.NOT_READY: "deferred: the replacement of its owner's last pod is not Ready",
        Code.OWNER_STOPPED: lambda details: (
            f"a replacement of its owner failed ({details['why']}): it rests for "
            f"{age_text(details['left_seconds'])} more"
        ),
        Code.ROLLOUT: "{owner} is in a rollout",
        Code.UNDONE: {
            "replaced": "it was moved here of late, and moving it again would undo that",
            "": "a move of its owner from {node} was undone of late",
        },
        Code.YOUNG_NODE: lambda details: f"node {details['node']} is only {age_text(details['age_seconds'])} old",
        Code.CLOSED: "{failures} evictions in a row failed for one cause: {error}",
        Code.NO_PERMISSION: "no permission to create pods/eviction in namespace {namespace}",
        Code.NOT_PLANNED: "not in the plan",
        Code.GONE: "already evicted in this cycle, or gone",
        Code.IN_PROGRESS: "another controller is already moving it",
        Code.MIN_REPLICAS: "its owner has too few pods: {pods}, and minReplicas is {minimum}",
        Code.NAMESPACE_LABEL_SELECTOR: {
            "known": "labels of namespace {namespace} are unknown",
            "": "labels of namespace {namespace} do not match",
        },
        Code.NAMESPACE_LIMIT: "{used} of {limit} evictions in namespace {namespace} are used",
        Code.NEWCOMER: lambda details: f"started {age_text(details['age_seconds'])} ago: it may just have been moved",
        Code.NODE_FIT: _node_fit,
        Code.NODE_LIMIT: "{used} of {limit} evictions from {node} are used",
        Code.OWNER_SHARE: _OWNER_SHARE,
        Code.PDB: _pdb,
        Code.TOTAL_LIMIT: "{used} of {limit} evictions of this cycle are used",
        Code.WEBHOOK: "an admission webhook refuses it",
        Code.HOLDS_NODE: "its annotation {annotation} holds the node against autoscalers",
        Code.KEEP_FREE: _keep_free,
        Code.NODE_GROUP: "{nodes} nodes of the group {label}={group} are in use, and at least {keep} are to stay so",
        Code.NO_DESTINATION: _no_destination,
        Code.NO_USAGE: _no_usage,
        Code.NOT_SELECTED: "the strategy's arguments leave it alone",
        Code.YOUNGER_THAN_WINDOW: _younger_than_window,
    }
)

STAYS = {code: _keeping(say) for code, say in _STAYS.items()}
