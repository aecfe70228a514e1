"""Turns causes into text for people; reports, Events, logs and annotations on requests all use it.

To add a cause, add its code in `rebalancer.eviction.causes` and its words in one of the tables here.  A cause without
words is spelled out from its code and details: `FrozenNamespace` becomes `frozen namespace (namespace shop)`.
"""

import re
from typing import Any

from rebalancer.cluster.resources import describe
from rebalancer.engine.ledger import Notice
from rebalancer.eviction.causes import Cause, Code
from rebalancer.report.layout import ages_text, compared, number_text
from rebalancer.report.words.stays import NODES, STAYS, Figures, words

_NAMED = 3  # other nodes where a pod may land


def over(details: Figures, what: str = "over") -> str:
    """Return what is above target on a node, and by how much in all."""
    measured = f"{details['node']} at {', '.join(map(_above, details['measured']))}"
    return f"{measured}: {number_text(details['points'])} points {what}" if "points" in details else measured


def _above_mean(details: Figures) -> str:
    if not details["measured"]:
        return f"{details['node']} within its band, and others are low{_placement(details)}"
    return over(details, "above the mean, and others are low") + _placement(details)


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
    more = len(others[_NAMED:])
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


GOES = words(
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
        Code.OVER_TARGET: lambda details: over(details) + _placement(details),
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


NOTICES = words(
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
        Code.STAYS_OVER: lambda details: f"{over(details)}, and nothing more may go that helps",
        Code.STILL_IN_PROGRESS: lambda details: (
            f"evictions still in progress, which count against the limits of this cycle: {', '.join(details['pods'])}"
        ),
    }
)


_WORDS = {**GOES, **STAYS, **NODES, **NOTICES}


def text(cause: Cause) -> str:
    """Return a cause in words, with its details."""
    message = cause.details.get("message")
    if message is not None:
        return str(message)
    say = _WORDS.get(cause.code)
    return say(cause.details) if say else _spelled_out(cause)


def notice_text(notice: Notice) -> str:
    """Return a warning in words, with the name of who gives it."""
    return f"{notice.who}: {text(notice.cause)}" if notice.who else text(notice.cause)


def _spelled_out(cause: Cause) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cause.code.value).lower()
    details = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in cause.details.items())
    return f"{name} ({details})" if details else name
