"""What an operator wants to know before a live run: how many pods would go, of which owners, within which limits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rebalancer.report.layout import count, listed
from rebalancer.report.view import calls

Report = Mapping[str, Any]
Line = tuple[str, str]

_NAMES = {"total": "in all", "node": "from a node", "namespace": "from a namespace"}
_MOST = 5


def question_lines(report: Report) -> Iterator[Line]:
    """Yield the lines above the question, each as its label and its text.

    Args:
        report: of the plan that would be carried out.
    """
    for call in calls(report):
        yield "!", call
    overview = report["overview"]
    pods = overview["pods"]
    yield "pods", f"{pods['evicted']} of {pods['total']} would be evicted"
    if overview["namespaces"]:
        yield "namespaces", _listed(overview["namespaces"], lambda each: each["name"])
    if overview["owners"]:
        yield "owners", _listed(overview["owners"], _owner)
    yield "limits", _limits(overview["limits"])
    yield from _nodes(report["strategies"])
    for warning in report["warnings"]:
        yield "warning", warning


def move_lines(report: Report) -> Iterator[Line]:
    """Yield the pods that would be evicted: where each is, and why, with where it lands."""
    for each in report["evictions"]:
        yield f"{each['namespace']}/{each['name']}", f"on {each['node']}, by {each['strategy']}: {each['reason']}"


def _listed(shares: Sequence[Mapping[str, Any]], name: Any) -> str:
    return listed((f"{name(each)} {each['evicted']} of {each['total']}{_percent(each)}" for each in shares), _MOST)


def _percent(share: Mapping[str, Any]) -> str:
    return f" ({share['evicted'] * 100 // share['total']} %)" if share["total"] else ""


def _owner(owner: Mapping[str, Any]) -> str:
    return f"{owner['namespace']}/{owner['kind']}/{owner['name']}{'' if owner['pdb'] else ' (no PDB)'}"


def _limits(limits: Mapping[str, int | str | None]) -> str:
    given = [f"{limits[key]} {words}" for key, words in _NAMES.items() if limits[key] is not None]
    return ", ".join(given) or "none"


def _nodes(runs: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """Yield for each strategy that weighs nodes how many are over target, now and after the plan."""
    for run in runs:
        if nodes := run["nodes"]:
            now, then = (sum(node[key] == "overutilized" for node in nodes) for key in ("state", "stateAfter"))
            yield "nodes", f"{run['strategy']}: {count(now, 'node')} over target now, {then or 'none'} afterwards"


def new_pods(report: Report, shown: frozenset[str]) -> list[str]:
    """Return the pods of a plan that were not shown before, as `namespace/name`.

    Args:
        report: of the plan.
        shown: UIDs of the pods that were shown before.
    """
    return [f"{each['namespace']}/{each['name']}" for each in report["evictions"] if each["uid"] not in shown]
