"""Why strategies want to evict pods, in words."""

from typing import Any

from rebalancer.cluster.resources import describe
from rebalancer.eviction.causes import Code
from rebalancer.report.words.numbers import Figures, ages_text, compared, number_text, words

_NAMED = 3  # other nodes where a pod may land


def over(figures: Figures, what: str = "over") -> str:
    """Return what is above target on a node, and by how much in all."""
    measured = f"{figures['node']} at {', '.join(map(_above, figures['measured']))}"
    return f"{measured}: {number_text(figures['points'])} points {what}" if "points" in figures else measured


def _over_target(figures: Figures) -> str:
    return f"{over(figures)}{_landing(figures)}"


def _above_mean(figures: Figures) -> str:
    if not figures["measured"]:
        return f"{figures['node']} within its band, and others are low{_landing(figures)}"
    return over(figures, "above the mean, and others are low") + _landing(figures)


def _above(measured: Figures) -> str:
    name = measured["resource"]
    if "used" in measured:
        return f"{name} {describe(name, measured['used'])} > {describe(name, measured['cap'])}"
    return compared(name, measured["before"], ">", measured["target"])


def _underutilized(figures: Figures) -> str:
    measured = (compared(each["resource"], each["before"], "<=", each["target"]) for each in figures["measured"])
    return f"{figures['node']} at {', '.join(measured)}{_landing(figures)}"


def _landing(figures: Figures) -> str:
    """Return how much the eviction relieves the node and where the pod likely lands; empty if that is not known."""
    lands_on = figures.get("lands_on")
    if lands_on is None:
        return ""
    measured = "relieved" in figures and figures["measured"]
    relieves = f"relieves {number_text(figures['relieved'])} points; " if measured else ""
    paid = ""
    if "price" in figures:
        gain, price = number_text(figures["gain"]), number_text(figures["price"])
        paid = f"; gains {gain} point hours for {price}"
    return f"; {relieves}likely lands on {_likely(lands_on)}{paid}"


def _likely(lands_on: Figures) -> str:
    """Return the node that the plan counts on, in how many histories it is that, and where else the pod may land."""
    histories = [f"{lands_on['worlds']} of {lands_on['of']}"] if "worlds" in lands_on else []
    figures = ", ".join([*histories, *map(_rise, lands_on["filled"])])
    likely = f"{lands_on['node']} ({figures})" if figures else str(lands_on["node"])
    others = lands_on.get("else", [])
    if not others:
        return likely
    more = len(others[_NAMED:])
    return f"{likely}, else {', '.join(others[:_NAMED])}" + (f" or {more} more" if more else "")


def _rise(filled: dict[str, Any]) -> str:
    before = "none" if filled["before"] is None else f"{number_text(filled['before'])} %"
    return f"{filled['resource']} {before} -> {number_text(filled['after'])} %"


def _failed(figures: Figures) -> str:
    age, minimum = ages_text(figures["age_seconds"], figures["minimum_seconds"])
    return ", ".join(["failed", *figures["reasons"], f"age {age} >= {minimum}"])


def _matches(figures: Figures) -> str:
    parts = []
    if "age_seconds" in figures:
        age, maximum = ages_text(figures["age_seconds"], figures["maximum_seconds"])
        parts.append(f"age {age} > {maximum}")
    parts += [f"state {each}" for each in figures.get("states", ())]
    parts += [f"exit code {each}" for each in figures.get("exit_codes", ())]
    parts += [f"condition {each['type']}={each['status']} {each['reason']}" for each in figures.get("conditions", ())]
    return ", ".join(each.rstrip() for each in parts)


def _duplicate(figures: Figures) -> str:
    whose = f"{figures['namespace']}/{figures['owner']['name']} on {figures['node']}"
    limit = f"at most {figures['most']} ({figures['nodes']} nodes take them)"
    return f"{figures['on_node']} of {figures['replicas']} replicas of {whose}, {limit}"


def _anti_affinity(figures: Figures) -> str:
    topology = figures["topology"]
    domain = f"topology {topology['key']}={topology['value']}" if topology else f"node {figures['node']}"
    return f"anti-affinity against {figures['pod']} on {figures['node']} ({domain})"


def _in_the_way(figures: Figures) -> str:
    more = f" and {figures['others']} more" if figures["others"] else ""
    return f"in the way of {figures['pod']} on {figures['node']}{more}, by their anti-affinity"


def _uneven(figures: Figures) -> str:
    source, target = figures["from"], figures["to"]
    sizes = f"{source['domain']} has {source['pods']}, {target['domain']} {target['pods']}"
    return f"{figures['topology_key']}: {sizes}, maxSkew {figures['max_skew']}"


GOES = words(
    {
        Code.CUSTOM: "{message}",
        Code.ABOVE_MEAN: _above_mean,
        Code.ANTI_AFFINITY_VIOLATED: _anti_affinity,
        Code.DUPLICATE: _duplicate,
        Code.FAILED: _failed,
        Code.IN_THE_WAY: _in_the_way,
        Code.NODE_AFFINITY_VIOLATED: "{required} required, {node} does not match, {better} would take it",
        Code.OVER_TARGET: _over_target,
        Code.PREFERRED_ELSEWHERE: "preferred affinity weighs {weight} on {node}, {better_weight} on {better}",
        Code.STATE_MATCHES: _matches,
        Code.TAINT_NOT_TOLERATED: "does not tolerate taint {taint} of {node}",
        Code.TOO_MANY_RESTARTS: "{restarts} restarts >= {threshold}",
        Code.TOO_OLD: _matches,
        Code.UNDERUTILIZED: _underutilized,
        Code.UNEVEN_SPREAD: _uneven,
    }
)
