"""A report or a plan as one HTML file: no network, nothing from elsewhere, readable at thousands of nodes.

Names, labels and reasons are what others wrote.  The template escapes all of them and shows visible characters only,
and the page's policy (CSP) lets its own script run and no other.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from statistics import mean, pstdev
from typing import Any

from jinja2 import Environment, StrictUndefined

from rebalancer.report.layout import count
from rebalancer.untrusted.printable import printable

Document = Mapping[str, Any]
#: A title, the titles of the columns, and the cells as text.
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]
#: How full a node is before and after, in percent, and its name.
Shares = tuple[float, float, str]

#: Up to so many nodes have a row each; more are shown as a distribution.
_ROWS = 60
_BINS = 20
_WIDTH, _LEFT, _ROW = 760.0, 170.0, 22.0
_SCALE = (_WIDTH - _LEFT - 150.0) / 100.0
_NAMED = 40  # characters of a name in a picture
_SURE, _LIKELY = 0.95, 0.6
_MOST_NAMED = 3
_CHANGE, _USAGE = ("before", "after"), ("requested", "used")
_FAR = 10  # nodes whose requests say least


def html(document: Document) -> str:
    """Return the page of a report, of a plan, or of a cluster without a policy."""
    parts_of = {"ClusterReport": _of_cluster, "Plan": _of_plan}.get(document.get("kind", ""), _of_run)
    return rendered(warnings=document["warnings"], **parts_of(document))


def rendered(**parts: Any) -> str:
    """Return a page of these parts: a title, a head of names and values, and what else the template has."""
    template, script = (
        files("rebalancer.report").joinpath(name).read_text("utf-8") for name in ("page.html.j2", "page.js")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=_visible, trim_blocks=True, lstrip_blocks=True
    )
    digest = b64encode(sha256(script.encode()).digest()).decode()
    usual: dict[str, Any] = {"moves": None, "legend": _CHANGE, "script": script, "digest": digest}
    usual |= dict.fromkeys(("alarms", "failures", "pictures", "policy", "tables", "warnings"), ())
    return environment.from_string(template).render(usual | parts, width=_WIDTH, left=_LEFT, scale=_SCALE)


def _visible(value: object) -> object:
    """Return what the template writes, but for its script."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _of_plan(plan: Document) -> dict[str, Any]:
    nodes: dict[str, list[Document]] = {}
    for node in plan["nodes"]:
        nodes.setdefault(node["strategy"], []).append(node)
    return {
        "title": "Plan",
        "head": [
            ("cluster", _where(plan["cluster"])),
            ("as of", plan["created"]),
            ("policy", _policy_name(plan["policy"])),
            ("moves", str(len(plan["moves"]))),
        ],
        "pictures": list(_pictures((name, each, plan["targets"].get(name, {})) for name, each in nodes.items())),
        "moves": [_move(each) for each in plan["moves"]],
        "policy": _policy(plan["policy"]),
    }


def _of_run(report: Document) -> dict[str, Any]:
    return {
        "title": "Dry run" if report["dryRun"] else "Run",
        "head": list(_head(report)),
        "pictures": list(
            _pictures((run["strategy"], run["nodes"], run["targetThresholds"]) for run in report["strategies"])
        ),
        "moves": [_move(each) for each in report["evictions"]],
        "tables": [_refusals(report["refusals"])] if report.get("refusals") else [],
        "alarms": report["overview"]["alarms"],
        "failures": [f"{_pod(each)}: {each['error']}" for each in report.get("failures", ())],
        "policy": _policy(report.get("policy")),
    }


def _head(report: Document) -> Iterator[tuple[str, str]]:
    yield "cluster", _where(report["cluster"])
    yield "as of", report["now"]
    if report["skipped"]:
        yield "nothing was done", report["skipped"]
    total, nodes = report["overview"]["pods"], report["nodes"]
    yield "to evict" if report["dryRun"] else "evicted", f"{total['evicted']} of {total['total']} pods"
    if policy := report.get("policy"):
        yield "policy", _policy_name(policy)
    yield "nodes", f"{nodes['considered']} of {nodes['total']} took part"


def _where(cluster: Document) -> str:
    return str(cluster.get("file") or cluster.get("context") or cluster.get("server") or "unknown")


def _policy_name(policy: Document) -> str:
    return f"{policy['name']}, {policy['hash']}"


def _policy(policy: Document | None) -> Sequence[str]:
    if not policy:
        return ()
    import yaml  # noqa: PLC0415  a report holds no policy

    return yaml.safe_dump(policy["document"], sort_keys=False).splitlines()


def _move(entry: Document) -> dict[str, str]:
    owner = entry.get("owner")
    return {
        "pod": _pod(entry),
        "node": entry["node"],
        "owner": f"{owner['kind']}/{owner['name']}" if owner else "",
        "strategy": entry["strategy"],
        "lands": destination_words(entry.get("destination")),
        "why": entry["reason"],
    }


def _pod(entry: Document) -> str:
    return f"{entry['namespace']}/{entry['name']}"


def destination_words(destination: Document | None) -> str:
    """Return where a replacement lands, and how sure that is: `almost certainly n2`, or `n2, n7 or n9`."""
    if not destination or not destination["nodes"]:
        return ""
    names, shares, more = destination["nodes"], destination.get("share") or (), destination["more"]
    is_alone, first = len(names) == 1 and not more, max(shares, default=0.0)
    if shares and (is_alone or first >= _SURE):
        return f"almost certainly {names[0]}"
    if first >= _LIKELY:
        return f"likely {names[0]}, else {_listed(names[1:], more)}"
    return _listed(names, more)


def _listed(names: Sequence[str], more: int) -> str:
    others = more + len(names[_MOST_NAMED:])
    if others:
        return f"{', '.join(names[:_MOST_NAMED])} or {others} more"
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _refusals(refusals: Iterable[Document]) -> Table:
    counts = Counter((each["strategy"], each["by"]) for each in refusals)
    rows = [(strategy, by, str(number)) for (strategy, by), number in counts.most_common()]
    return "Asked for, and stays", ("strategy", "because of", "pods"), rows


def _of_cluster(cluster: Document) -> dict[str, Any]:
    known = [each for each in cluster["nodes"] if each["used"]]
    pairs = [{"name": each["name"], "before": each["requested"], "after": each["used"]} for each in known]
    return {
        "title": "Cluster",
        "head": [
            ("cluster", _where(cluster["cluster"])),
            ("as of", cluster["now"]),
            ("nodes", str(len(cluster["nodes"]))),
        ],
        "pictures": list(_pictures([("requests and usage", pairs, {})], _USAGE)),
        "tables": list(_cluster_tables(cluster, known)),
        "legend": _USAGE,
    }


def _cluster_tables(cluster: Document, known: Sequence[Document]) -> Iterator[Table]:
    gaps = [
        (each, name, used - each["requested"].get(name, 0.0)) for each in known for name, used in each["used"].items()
    ]
    far = [
        (each["name"], name, *(f"{each[key].get(name, 0):g} %" for key in _USAGE), f"{points:+.1f}")
        for each, name, points in sorted(gaps, key=lambda row: -abs(row[2]))[:_FAR]
    ]
    yield "Where requests and usage differ most", ("node", "resource", *_USAGE, "points"), far
    peaks = [(each["resource"], each["owner"], f"{each['points']:g}") for each in cluster["peaks"]]
    yield "Who makes the peaks", ("resource", "owner", "points of the ten fullest nodes"), peaks
    room = [(each["requests"], str(each["pods"]), str(each["nodesWithRoom"])) for each in cluster["room"]]
    yield "Room left for the largest pods", ("requests", "pods like this", "nodes with room"), room
    presets = [
        (each["name"], "not known" if (number := each["evictions"]) is None else str(number), each["says"])
        for each in cluster["presets"]
    ]
    yield "What each preset would do", ("preset", "pods to evict", "because"), presets


def _pictures(
    groups: Iterable[tuple[str, Sequence[Document], Mapping[str, float]]], words: tuple[str, str] = _CHANGE
) -> Iterator[Document]:
    """Yield a picture for each resource of each group, which has a name, its nodes, and targets in percent."""
    for group, nodes, targets in groups:
        for resource in dict.fromkeys(name for node in nodes for name in node["before"] | node["after"]):
            shares = [(node["before"].get(resource), node["after"].get(resource), node["name"]) for node in nodes]
            if known := [each for each in shares if None not in each]:
                known.sort(key=lambda each: (-each[0], each[2]))
                title = f"{resource}, by {group}: {len(known)} nodes"
                yield _picture(title, known, targets.get(resource), words)


def _picture(title: str, nodes: Sequence[Shares], target: float | None, words: tuple[str, str]) -> Document:
    before, after = [each[0] for each in nodes], [each[1] for each in nodes]
    figures = (
        f"mean {mean(before):.1f} % {words[0]} and {mean(after):.1f} % {words[1]}, standard deviation "
        f"{pstdev(before):.1f} and {pstdev(after):.1f} points, highest {max(before):.0f} % and {max(after):.0f} %"
    )
    if target is not None:
        over = [sum(share > target for share in shares) for shares in (before, after)]
        figures += f", {count(over[0], 'node')} over target before and {over[1] or 'none'} after"
    is_small = len(nodes) <= _ROWS
    return {
        "title": title,
        "height": (len(nodes) * _ROW if is_small else 200.0) + 30.0,
        "target": None if target is None else _x(target),
        "target_text": "" if target is None else f"target {round(target, 1):g} %",
        "figures": figures,
        "rows": [_row(place, each, target) for place, each in enumerate(nodes)] if is_small else [],
        "bars": [] if is_small else list(_bars(before, after)),
    }


def _row(place: int, node: Shares, target: float | None) -> Document:
    before, after, name = node
    return {
        "name": name if len(name) <= _NAMED else f"{name[: _NAMED - 1]}…",
        "y": place * _ROW + 24.0,
        "before": _x(before),
        "after": _x(after),
        "text": f"{before:.0f} % → {after:.0f} %" if round(before) != round(after) else f"{after:.0f} %",
        "is_over": target is not None and after > target,
    }


def _bars(before: Sequence[float], after: Sequence[float]) -> Iterator[Document]:
    counts = [Counter(min(int(share * _BINS / 100), _BINS - 1) for share in shares) for shares in (before, after)]
    most = max(max(count.values()) for count in counts)
    width = 100.0 / _BINS
    for place in range(_BINS):
        then, now = counts[0][place], counts[1][place]
        start, end = place * width, (place + 1) * width
        text = f"{start:.0f} to {end:.0f} %: {count(then, 'node')} before, {now or 'none'} after"
        heights = {"before": 180.0 * then / most, "after": 180.0 * now / most}
        yield {"x": _x(start), "width": width * _SCALE, "text": text, **heights}


def _x(share: float) -> float:
    return round(_LEFT + min(max(share, 0.0), 110.0) * _SCALE, 1)
