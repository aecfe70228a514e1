"""Turns causes into text for people; reports, Events, logs and annotations on requests all use it.

To add a cause, add its code in `rebalancer.eviction.causes` and its words in one of the tables here.  A cause without
words is spelled out from its code and details: `FrozenNamespace` becomes `frozen namespace (namespace shop)`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from string import Formatter
from typing import Any

from rebalancer.cluster.resources import describe
from rebalancer.engine.ledger import Notice
from rebalancer.eviction.causes import Cause, Code
from rebalancer.report.layout import age_text, ages_text, compared, number_text

Figures = Mapping[str, Any]
Words = Callable[[Figures], str]
#: Words for a cause: a function, a template, or several by the name of the detail that has to be there, "" for none.
_Said = Words | str | Mapping[str, Words | str]

_NAMED = 3  # other nodes where a pod may land
_SHOWN = 3  # obstacles


def _words(table: Mapping[Code, _Said]) -> dict[Code, Words]:
    """Return the table with functions only."""

    def made(said: _Said) -> Words:
        if isinstance(said, Mapping):
            several = {name: made(each) for name, each in said.items()}
            return lambda details: next(say(details) for name, say in several.items() if not name or name in details)
        if callable(said):
            return said
        return partial(_Shown().vformat, said, ()) if _SPECIFIED.search(said) else said.format_map

    return {code: made(said) for code, said in table.items()}


class _Shown(Formatter):
    """Knows how to show a detail: `{age_seconds:age}`, `{gain:number}`, `{resources:list}`, `{harm:obstacle}`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        show = _SHOW.get(format_spec)
        return show(value) if show else str(super().format_field(value, format_spec))


def _obstacle(obstacle: Figures) -> str:
    """Return why a node does not take a pod; an obstacle is `code` and its details."""
    return NODES[Code(obstacle["code"])](obstacle)


def _obstacles(obstacles: Sequence[Figures]) -> str:
    """Return the most frequent obstacles with their numbers, like `3 x cordoned, 1 x insufficient cpu`."""
    counted = sorted((-each["count"], _obstacle(each)) for each in obstacles)
    shown = [f"{-count} x {what}" for count, what in counted[:_SHOWN]]
    return ", ".join([*shown, "..."] if len(counted) > _SHOWN else shown)


_SHOW: Mapping[str, Callable[[Any], str]] = {
    "age": age_text,
    "number": number_text,
    "list": ", ".join,
    "obstacle": _obstacle,
    "obstacles": _obstacles,
}
_SPECIFIED = re.compile(rf":({'|'.join(_SHOW)})}}")


def _over(details: Figures, what: str = "over") -> str:
    """Return what is above target on a node, and by how much in all."""
    measured = f"{details['node']} at {', '.join(map(_above, details['measured']))}"
    return f"{measured}: {number_text(details['points'])} points {what}" if "points" in details else measured


def _above_mean(details: Figures) -> str:
    if not details["measured"]:
        return f"{details['node']} within its band, and others are low{_placement(details)}"
    return _over(details, "above the mean, and others are low") + _placement(details)


def _above(measured: Figures) -> str:
    name = measured["resource"]
    if "used" in measured:
        return f"{name} {describe(name, measured['used'])} > {describe(name, measured['cap'])}"
    return compared(name, measured["before"], ">", measured["target"])


def _underutilized(details: Figures) -> str:
    measured = (compared(each["resource"], each["before"], "<=", each["target"]) for each in details["measured"])
    return f"{details['node']} at {', '.join(measured)}{_placement(details)}"


def _placement(details: Figures) -> str:
    """Return how much the eviction relieves the node and where the pod likely lands; empty if that is not known."""
    lands_on = details.get("lands_on")
    if lands_on is None:
        return ""
    measured = "relieved" in details and details["measured"]
    relieves = f"relieves {number_text(details['relieved'])} points; " if measured else ""
    paid = ""
    if "price" in details:
        gain, price = number_text(details["gain"]), number_text(details["price"])
        paid = f"; gains {gain} point hours for {price}"
    return f"; {relieves}likely lands on {_likely(lands_on)}{paid}"


def _likely(lands_on: Figures) -> str:
    """Return the node that the plan counts on, in how many histories it is that, and where else the pod may land."""
    histories = [f"{lands_on['worlds']} of {lands_on['of']}"] if "worlds" in lands_on else []
    details = ", ".join([*histories, *map(_rise, lands_on["filled"])])
    likely = f"{lands_on['node']} ({details})" if details else str(lands_on["node"])
    others, nowhere = lands_on.get("else", []), lands_on.get("nowhere")
    more = len(others[_NAMED:]) + lands_on.get("more", 0)
    elsewhere = f", else {', '.join(others[:_NAMED])}" + (f" or {more} more" if more else "") if others else ""
    return likely + elsewhere + (f", nowhere in {nowhere} of {lands_on['of']}" if nowhere else "")


def _rise(filled: dict[str, Any]) -> str:
    before = "none" if filled["before"] is None else f"{number_text(filled['before'])} %"
    return f"{filled['resource']} {before} -> {number_text(filled['after'])} %"


def _failed(details: Figures) -> str:
    age, minimum = ages_text(details["age_seconds"], details["minimum_seconds"])
    return ", ".join(["failed", *details["reasons"], f"age {age} >= {minimum}"])


def _matches(details: Figures) -> str:
    parts = []
    if "age_seconds" in details:
        age, maximum = ages_text(details["age_seconds"], details["maximum_seconds"])
        parts.append(f"age {age} > {maximum}")
    parts += [f"state {each}" for each in details.get("states", ())]
    parts += [f"exit code {each}" for each in details.get("exit_codes", ())]
    parts += [f"condition {each['type']}={each['status']} {each['reason']}" for each in details.get("conditions", ())]
    return ", ".join(each.rstrip() for each in parts)


def _anti_affinity(details: Figures) -> str:
    topology = details["topology"]
    domain = f"topology {topology['key']}={topology['value']}" if topology else f"node {details['node']}"
    return f"anti-affinity against {details['pod']} on {details['node']} ({domain})"


def _in_the_way(details: Figures) -> str:
    more = f" and {details['others']} more" if details["others"] else ""
    return f"in the way of {details['pod']} on {details['node']}{more}, by their anti-affinity"


GOES = _words(
    {
        Code.CUSTOM: "{message}",
        Code.ABOVE_MEAN: _above_mean,
        Code.ANTI_AFFINITY_VIOLATED: _anti_affinity,
        Code.DUPLICATE: (
            "{on_node} of {replicas} replicas of {namespace}/{owner[name]} on {node}, at most {most} "
            "({nodes} nodes take them)"
        ),
        Code.FAILED: _failed,
        Code.IN_THE_WAY: _in_the_way,
        Code.NODE_AFFINITY_VIOLATED: "{required} required, {node} does not match, {better} would take it",
        Code.OVER_TARGET: lambda details: _over(details) + _placement(details),
        Code.PREFERRED_ELSEWHERE: "preferred affinity weighs {weight} on {node}, {better_weight} on {better}",
        Code.STATE_MATCHES: _matches,
        Code.TAINT_NOT_TOLERATED: "does not tolerate taint {taint} of {node}",
        Code.TOO_MANY_RESTARTS: "{restarts} restarts >= {threshold}",
        Code.TOO_OLD: _matches,
        Code.UNDERUTILIZED: _underutilized,
        Code.UNEVEN_SPREAD: (
            "{topology_key}: {from[domain]} has {from[pods]}, {to[domain]} {to[pods]}, maxSkew {max_skew}"
        ),
    }
)


NOTICES = _words(
    {
        Code.LANDED_ELSEWHERE: (
            "{waves} waves in a row landed elsewhere than foreseen, so steering ended: is there another scheduler, "
            "preemption, or a webhook that changes pods?"
        ),
        Code.LANDINGS_UNKNOWN: (
            "{pods} of {candidates} pods stay since it is not known where they would land: {reasons}"
        ),
        Code.FORECAST_MISSED: (
            "only {hits} of the last {of} replacements landed where foretold, so nothing is balanced: is there another "
            "scheduler, or a webhook that changes pods?"
        ),
        Code.MORE_STAY_OVER: "{nodes} more nodes stay over, and nothing more may go that helps",
        Code.STAYS_OVER: lambda details: f"{_over(details)}, and nothing more may go that helps",
        Code.STILL_IN_PROGRESS: "evictions still in progress, which count against the limits of this cycle: {pods}",
    }
)


def _requested(details: Figures) -> str:
    name, requested, free = (details[each] for each in ("resource", "requested", "free"))
    return f"insufficient {name} ({describe(name, requested)} requested, {describe(name, free)} free)"


def _claim(details: Figures) -> str:
    if details["storage_class"] is None:
        return f"storage class of claim {details['claim']} is unknown, so it counts as protected"
    return f"claim {details['claim']} has protected storage class {details['storage_class']}"


def _ages(template: str, bound: str) -> Words:
    """Return what puts the age and its bound into a template, with the fewest units that show a difference."""
    return lambda details: template.format(*ages_text(details["age_seconds"], details[bound]))


_started = _ages("started {} ago, less than {}", "minimum_seconds")


def _no_room(details: Figures) -> str:
    if not details["nodes"]:
        return "there is no other node"
    return f"fits none of {details['nodes']} other nodes: {_obstacles(details['obstacles'])}"


def _back_off(details: Figures) -> str:
    times = "" if details["times"] == 1 else f" by {details['times']} cycles"
    return f"its owner was moved of late{times}: it rests for {age_text(details['left_seconds'])} more"


NODES = _words(
    {
        Code.ABOVE_CEILING: "{resource} above {ceiling:number} %",
        Code.ANTI_AFFINITY: "anti-affinity against {pod}",
        Code.CORDONED: "cordoned",
        Code.HELD_NODE: "which is held empty, young or about to go",
        Code.IDLE_NODE: "which is to be emptied, too",
        Code.INSUFFICIENT: {"requested": _requested, "": "insufficient {resource}"},
        Code.NO_POD_SLOT: "no free pod slot",
        Code.NODE_AFFINITY: "node selector or affinity does not match",
        Code.OWN_NODE: "where it is",
        Code.TAINT: "taint {taint} is not tolerated",
        Code.UNKNOWN_USAGE: "whose usage is unknown",
        Code.OTHER_POOL: "which is of another pool",
    }
)
_LOST = "{owner[kind]} {owner[name]} has lost {lost} of {pods} pods in this cycle"
STAYS = _words(
    {
        Code.BARE_PODS: "has no owner and has not failed",
        Code.DAEMON_SET_PODS: "belongs to a DaemonSet",
        Code.FAILED_BARE_PODS: "has no owner",
        Code.LABEL_SELECTOR: "labels do not match the evictor's",
        Code.LOCAL_STORAGE: "uses local storage",
        Code.MALFORMED_NODES: "its node {node} could not be read: {problem}",
        Code.MALFORMED_PODS: "could not be read: {problem}",
        Code.MIN_POD_AGE: lambda details: "has not started" if details["age_seconds"] is None else _started(details),
        Code.MIRROR_PODS: "a mirror pod, the kubelet would keep it",
        Code.PREFER_NO_EVICTION: "annotated prefer-no-eviction",
        Code.PRIORITY_THRESHOLD: "priority {priority} >= {threshold}",
        Code.PVC: {"claim": _claim, "": "uses a PersistentVolumeClaim"},
        Code.RESOURCE_CLAIMS: "claims devices",
        Code.STATIC_PODS: "a static pod, the kubelet would keep it",
        Code.SYSTEM_CRITICAL_PODS: {
            "priority": "critical: priority {priority} >= {threshold}",
            "priority_class": "critical: its priority class is {priority_class}",
            "": "annotated as critical",
        },
        Code.TERMINATING_PODS: "already terminating",
        Code.WITHOUT_PDB: {"known": "PDBs are unknown, so it counts as having none", "": "no PDB selects it"},
        Code.AUTOSCALED: "its owner was scaled {age_seconds:age} ago",
        Code.BACK_OFF: _back_off,
        Code.DO_NOT_DISRUPT: "its annotation {annotation} asks to leave it alone",
        Code.FINISHING_JOB: "its Job is about to complete",
        Code.FIRST_MOVE: "nothing is remembered of earlier cycles, so {owner} loses one pod at most",
        Code.LEAVING_NODE: "others take node {node} out of service ({sign})",
        Code.FALLS_BY_ITSELF: "{node} over now, falls by itself at {at} UTC as on {days} of {of} days",
        Code.NOT_LASTING: "{node} is over its target in {times} of the last {of} cycles, and {cycles} are needed",
        Code.DEFERRED: "deferred to the next run: {why}",
        Code.NOT_WORTH: "gains {gain:number} point hours, and moving it costs {price:number}",
        Code.NOT_READY: "deferred: the replacement of its owner's last pod is not Ready",
        Code.OWNER_STOPPED: "a replacement of its owner failed ({why}): it rests for {left_seconds:age} more",
        Code.ROLLOUT: "{owner} is in a rollout",
        Code.UNDONE: {
            "replaced": "it was moved here of late, and moving it again would undo that",
            "": "a move of its owner from {node} was undone of late",
        },
        Code.YOUNG_NODE: "node {node} is only {age_seconds:age} old",
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
        Code.NEWCOMER: "started {age_seconds:age} ago: it may just have been moved",
        Code.NODE_FIT: {
            "domains": "fits no node of a domain below the average",
            "unschedulable": "the scheduler would find no node for its replacement: {unschedulable}",
            "unknown": "it is not known whether its replacement fits: {unknown}",
            "tied": "a rule between pods ties its replacement to that of {tied}: which comes first is not known",
            "crowd": "{nodes} nodes have room for its replacement, but {crowd} others may take that first",
            "ousted": "its replacement might take the room of that of {ousted}",
            "": _no_room,
        },
        Code.NODE_LIMIT: "{used} of {limit} evictions from {node} are used",
        Code.OWNER_SHARE: {
            "limit": f"{_LOST}, and {{limit}} is the most",
            "": f"{_LOST}, and without a PDB a quarter is the most",
        },
        Code.PDB: {
            "more": "more than one PDB selects it ({pdbs:list} and {more} more), which the API server refuses",
            "pdbs": "more than one PDB selects it ({pdbs:list}), which the API server refuses",
            "problem": "PDB {pdb} could not be read, so it allows nothing: {problem}",
            "disrupted": "PDB {pdb} counts it as disrupted: its eviction has been granted before",
            "observed": "PDB {pdb} has changed and its status does not show it yet",
            "": "PDB {pdb} allows none of its {disruptions_allowed} disruptions any more",
        },
        Code.TOTAL_LIMIT: "{used} of {limit} evictions of this cycle are used",
        Code.WEBHOOK: "an admission webhook refuses it",
        Code.HOLDS_NODE: "its annotation {annotation} holds the node against autoscalers",
        Code.KEEP_FREE: (
            "the other nodes would have {free:number} % of their {resource} free, and {keep:number} % are to be kept"
        ),
        Code.NODE_GROUP: "{nodes} nodes of the group {label}={group} are in use, and at least {keep} are to stay so",
        Code.NO_DESTINATION: {
            "tolerated": "tolerates the taints of no destination",
            "likely": "no destination: the scheduler would likely choose {likely}, {harm:obstacle}",
            "may_choose": "no destination: the scheduler may choose {may_choose}, {harm:obstacle}",
            "unschedulable": "no destination: the scheduler would find none, {unschedulable}",
            "unknown": "no destination is known: {unknown}",
            "gathers": "no destination: all pods of its owner would be on {gathers}",
            "": "no destination: of {nodes} nodes {obstacles:obstacles}",
        },
        Code.NO_USAGE: {
            "pods_measured": "this source does not measure pods, so at most one leaves a node",
            "used": "it uses nothing",
            "resources": "its usage of {resources:list} is unknown",
            "": "its usage is unknown",
        },
        Code.NOT_SELECTED: "the strategy's arguments leave it alone",
        Code.YOUNGER_THAN_WINDOW: _ages("{} old, and figures sum up {}", "window_seconds"),
    }
)


_WORDS = {**GOES, **STAYS, **NODES, **NOTICES}


def text(cause: Cause) -> str:
    """Return a cause in words, with its details."""
    details, say = cause.details, _WORDS.get(cause.code)
    if details.get("message") is not None:
        return str(details["message"])
    keeps = details.get("keeps_node")
    kept = f"; it keeps {keeps}, which is emptied whole or not at all" if keeps else ""
    return say(details) + kept if say else _spelled_out(cause)


def notice_text(notice: Notice) -> str:
    """Return a warning in words, with the name of who gives it."""
    return f"{notice.who}: {text(notice.cause)}" if notice.who else text(notice.cause)


def _spelled_out(cause: Cause) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cause.code.value).lower()
    details = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in cause.details.items())
    return f"{name} ({details})" if details else name
