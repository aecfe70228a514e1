"""A report or a plan as one HTML file: no network, nothing from elsewhere, readable at thousands of nodes.

Names, labels and reasons are what others wrote.  The template escapes all of them, and the page's policy (CSP) lets its
own script run and no other.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from statistics import mean, pstdev
from typing import Any

from jinja2 import Environment, StrictUndefined

from rebalancer.report.layout import count
from rebalancer.untrusted.printable import printable

Document = Mapping[str, Any]

#: Up to so many nodes have a row each; more are shown as a distribution.
_ROWS = 60
_BINS = 20
_WIDTH, _LEFT, _ROW = 760.0, 170.0, 22.0
_SCALE = (_WIDTH - _LEFT - 150.0) / 100.0
_NAMED = 40  # characters of a name in a picture
_SURE, _LIKELY = 0.95, 0.6
_MOST_NAMED = 3
_USAGE = ("requested", "used")
_FAR = 10  # nodes whose requests say least


@dataclass(frozen=True, slots=True)
class Row:
    """A node in a picture: from where to where its dot goes, and the figures as text."""

    name: str
    y: float
    before: float
    after: float
    text: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class UsageRange:
    """A range of percentages, and how many nodes are in it."""

    x: float
    width: float
    before: float
    after: float
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """How full nodes are by one resource, before and after: a row for each, or a distribution.

    Attributes:
        target: where the line of the target is; None without a target.
        figures: deviation and highest in words.
    """

    title: str
    height: float
    target: float | None
    target_text: str
    figures: str
    rows: Sequence[Row]
    bars: Sequence[UsageRange]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title, the titles of its columns, and its cells as text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def html(document: Document) -> str:
    """Return the page of a report, of a plan, or of a cluster without a policy.

    Args:
        document: as `rebalancer.report.document` or `rebalancer.report.plan` makes it.
    """
    template = files("rebalancer.report").joinpath("page.html.j2").read_text()
    script = files("rebalancer.report").joinpath("page.js").read_text()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return environment.from_string(template).render(
        script=script, digest=digest, width=_WIDTH, left=_LEFT, scale=_SCALE, **_parts(document)
    )


def _parts(document: Document) -> dict[str, Any]:
    if document.get("kind") == "ClusterReport":
        return _of_cluster(document)
    is_plan = document.get("kind") == "Plan"
    moves = document["moves"] if is_plan else document["evictions"]
    return {
        "title": "Plan" if is_plan else ("Dry run" if document["dryRun"] else "Run"),
        "head": list(_head(document, is_plan=is_plan)),
        "pictures": list(_pictures(document)),
        "moves": [_move(each) for each in moves],
        "tables": [_refusals(document["refusals"])] if document.get("refusals") else [],
        "legend": ("before", "after"),
        "alarms": [printable(each) for each in document.get("overview", {}).get("alarms", ())],
        "warnings": [printable(each) for each in document["warnings"]],
        "failures": [f"{_pod(each)}: {printable(each['error'])}" for each in document.get("failures", ())],
        "policy": _policy(document.get("policy")),
    }


def _head(document: Document, *, is_plan: bool) -> Iterator[tuple[str, str]]:
    yield "cluster", _where(document["cluster"])
    yield "as of", document["created"] if is_plan else document["now"]
    if is_plan:
        yield "policy", f"{printable(document['policy']['name'])}, {document['policy']['hash']}"
        yield "moves", str(len(document["moves"]))
        return
    if document["skipped"]:
        yield "nothing was done", printable(document["skipped"])
    total = document["overview"]["pods"]
    yield "to evict" if document["dryRun"] else "evicted", f"{total['evicted']} of {total['total']} pods"
    if policy := document.get("policy"):
        yield "policy", f"{printable(policy['name'])}, {policy['hash']}"
    nodes = document["nodes"]
    yield "nodes", f"{nodes['considered']} of {nodes['total']} took part"


def _where(cluster: Document) -> str:
    return printable(str(cluster.get("file") or cluster.get("context") or cluster.get("server") or "unknown"))


def _policy(policy: Document | None) -> str:
    if not policy:
        return ""
    import yaml  # noqa: PLC0415  a report holds no policy

    return printable_block(yaml.safe_dump(policy["document"], sort_keys=False))


def printable_block(text: str) -> str:
    """Return a text of several lines, each safe to show."""
    return "\n".join(map(printable, text.splitlines()))


def _move(entry: Document) -> dict[str, str]:
    owner = entry.get("owner")
    return {
        "pod": _pod(entry),
        "node": printable(entry["node"]),
        "owner": printable(f"{owner['kind']}/{owner['name']}") if owner else "",
        "strategy": printable(entry["strategy"]),
        "lands": landing_words(entry.get("destination")),
        "why": printable(entry["reason"]),
    }


def _pod(entry: Document) -> str:
    return printable(f"{entry['namespace']}/{entry['name']}")


def landing_words(destination: Document | None) -> str:
    """Return where a replacement lands, and how sure that is: `almost certainly n2`, or `n2, n7 or n9`."""
    if not destination or not destination["nodes"]:
        return ""
    names = [printable(name) for name in destination["nodes"]]
    shares = destination.get("share") or ()
    if len(names) == 1 and not destination["more"]:
        return f"almost certainly {names[0]}" if shares else names[0]
    first = max(shares, default=0.0)
    if shares and first >= _SURE:
        return f"almost certainly {names[0]}"
    if shares and first >= _LIKELY:
        return f"likely {names[0]}, else {_listed(names[1:], destination['more'])}"
    return _listed(names, destination["more"])


def _listed(names: Sequence[str], more: int) -> str:
    others = more + len(names[_MOST_NAMED:])
    if others:
        return f"{', '.join(names[:_MOST_NAMED])} or {others} more"
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _refusals(refusals: Iterable[Document]) -> Table:
    counts = Counter((printable(each["strategy"]), printable(each["by"])) for each in refusals)
    rows = [(strategy, by, str(number)) for (strategy, by), number in counts.most_common()]
    return Table("Asked for, and stays", ("strategy", "because of", "pods"), rows)


def _of_cluster(document: Document) -> dict[str, Any]:
    """Return the parts of the page of a cluster without a policy: requests beside usage."""
    known = [each for each in document["nodes"] if each["used"]]
    pairs = [{"name": each["name"], "before": each["requested"], "after": each["used"]} for each in known]
    resources = list(dict.fromkeys(name for each in pairs for name in each["after"]))
    pictures = [
        _picture("requests and usage", printable(name), [p for p in pairs if _both(p, name)], None, _USAGE)
        for name in resources
    ]
    return {
        "title": "Cluster",
        "head": [
            ("cluster", _where(document["cluster"])),
            ("as of", document["now"]),
            ("nodes", str(len(document["nodes"]))),
        ],
        "pictures": pictures,
        "moves": None,
        "tables": list(_cluster_tables(document, known)),
        "alarms": (),
        "warnings": [printable(each) for each in document["warnings"]],
        "failures": (),
        "policy": "",
        "legend": _USAGE,
    }


def _cluster_tables(document: Document, known: Sequence[Document]) -> Iterator[Table]:
    def gap(each: Document, resource: str) -> float:
        return float(each["used"].get(resource, 0.0) - each["requested"].get(resource, 0.0))

    far = sorted(
        ((each, name, gap(each, name)) for each in known for name in each["used"]), key=lambda row: -abs(row[2])
    )
    rows = [
        (
            printable(each["name"]),
            name,
            f"{each['requested'].get(name, 0):g} %",
            f"{each['used'][name]:g} %",
            f"{points:+.1f}",
        )
        for each, name, points in far[:_FAR]
    ]
    yield Table("Where requests and usage differ most", ("node", "resource", "requested", "used", "points"), rows)
    peaks = [(each["resource"], printable(each["owner"]), f"{each['points']:g}") for each in document["peaks"]]
    yield Table("Who makes the peaks", ("resource", "owner", "points of the ten fullest nodes"), peaks)
    room = [(each["requests"], str(each["pods"]), str(each["nodesWithRoom"])) for each in document["room"]]
    yield Table("Room left for the largest pods", ("requests", "pods like this", "nodes with room"), room)
    presets = [(each["name"], _count(each["evictions"]), printable(each["says"])) for each in document["presets"]]
    yield Table("What each preset would do", ("preset", "pods to evict", "because"), presets)


def _count(number: int | None) -> str:
    return "not known" if number is None else str(number)


def _pictures(document: Document) -> Iterator[Picture]:
    """Yield a picture for each strategy that compared nodes, and for each resource."""
    if document.get("kind") == "Plan":
        by_strategy: dict[str, list[Document]] = {}
        for node in document["nodes"]:
            by_strategy.setdefault(node["strategy"], []).append(node)
        groups = [(name, nodes, document["targets"].get(name, {})) for name, nodes in by_strategy.items()]
    else:
        groups = [(run["strategy"], run["nodes"], run["targetThresholds"]) for run in document["strategies"]]
    for strategy, nodes, targets in groups:
        names = list(dict.fromkeys(name for node in nodes for name in node["before"]))
        for resource in names:
            known = [node for node in nodes if _both(node, resource)]
            if known:
                yield _picture(printable(strategy), printable(resource), known, targets.get(resource))


def _both(node: Document, resource: str) -> bool:
    return node["before"].get(resource) is not None and node["after"].get(resource) is not None


def _picture(
    strategy: str,
    resource: str,
    nodes: Sequence[Document],
    target: float | None,
    words: tuple[str, str] = ("before", "after"),
) -> Picture:
    found = ((each["before"][resource], each["after"][resource], each["name"]) for each in nodes)
    pairs = sorted(found, key=lambda pair: (-pair[0], pair[2]))
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    figures = (
        f"mean {mean(before):.1f} % {words[0]} and {mean(after):.1f} % {words[1]}, standard deviation "
        f"{pstdev(before):.1f} and {pstdev(after):.1f} points, highest {max(before):.0f} % and {max(after):.0f} %"
    )
    if target is not None:
        over = [sum(share > target for share in shares) for shares in (before, after)]
        figures += f", {count(over[0], 'node')} over target before and {over[1] or 'none'} after"
    is_small = len(pairs) <= _ROWS
    return Picture(
        f"{resource}, by {strategy}: {len(pairs)} nodes",
        (len(pairs) * _ROW if is_small else 200.0) + 30.0,
        None if target is None else _x(target),
        "" if target is None else f"target {round(target, 1):g} %",
        figures,
        [_row(place, pair, target) for place, pair in enumerate(pairs)] if is_small else [],
        [] if is_small else list(_bars(before, after)),
    )


def _row(place: int, pair: tuple[float, float, str], target: float | None) -> Row:
    before, after, name = pair
    shown = printable(name)
    shown = shown if len(shown) <= _NAMED else f"{shown[: _NAMED - 1]}…"
    moved = f"{before:.0f} % → {after:.0f} %" if round(before) != round(after) else f"{after:.0f} %"
    return Row(shown, place * _ROW + 24.0, _x(before), _x(after), moved, target is not None and after > target)


def _bars(before: Sequence[float], after: Sequence[float]) -> Iterator[UsageRange]:
    """Yield how many nodes are in each range of percentages; the highest bar fills the picture."""
    counts = [Counter(min(int(share * _BINS / 100), _BINS - 1) for share in shares) for shares in (before, after)]
    most = max(max(count.values()) for count in counts)
    width = 100.0 / _BINS
    for place in range(_BINS):
        then, now = counts[0][place], counts[1][place]
        text = (
            f"{place * width:.0f} to {(place + 1) * width:.0f} %: {count(then, 'node')} before, {now or 'none'} after"
        )
        yield UsageRange(_x(place * width), width * _SCALE, 180.0 * then / most, 180.0 * now / most, text)


def _x(share: float) -> float:
    return round(_LEFT + min(max(share, 0.0), 110.0) * _SCALE, 1)
