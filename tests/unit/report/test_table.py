"""The report for a person."""

import io
from typing import Any

import pytest

from rebalancer.report.view import lines
from tests.terminal.screen import Screen
from tests.unit.report.example import LIVE, report


def printed(document: dict[str, Any] | None = None, *, everything: bool = False) -> str:
    stream = io.StringIO()
    return "\n".join(lines(report() if document is None else document, stream, everything=everything))


def refusal(number: int, by: str = "PDB", reason: str = "no") -> dict[str, str]:
    asked = {"namespace": "default", "name": f"r{number}", "node": "n1", "profile": "p", "strategy": "S"}
    return {**asked, "by": by, "reason": reason}


def test_what_a_person_wants_comes_first() -> None:
    """What failed, where, whether for real, how many; then totals; then pods; then refusals; then trouble."""
    text = printed(report(warnings=("look out",)))
    pieces = [
        "FAILED: 1 of 2 strategies (Scripted: no figures), 1 eviction (422: on fire)",
        "Dry run on cluster.json",
        "2 pods would be evicted, 1 refused, 1 strategy failed, 1 unknown, 1 failed",
        "2 of 3 nodes considered",
        "Greedy",
        "default/a  n1  ReplicaSet/web",
        "default/b",
        "default/e",
        "500: in smoke",
        "MirrorPods",
        "Failed: default/d on n2 (Greedy): 422: on fire",
        "look out",
    ]

    places = [text.index(piece) for piece in pieces]

    assert places == sorted(places)
    assert "\x1b" not in text


def test_a_live_run_names_context_and_server() -> None:
    """So that nobody mistakes the cluster."""
    text = printed(report(LIVE, dry_run=False, strategies=[], failures=[]))

    assert text.startswith("Live run on prod (https://10.0.0.1)")
    assert "2 pods evicted" in text


def test_a_cycle_that_was_skipped_says_why() -> None:
    """And does not count to nothing."""
    text = printed(report(skipped="1 ready node", evictions=[], refusals=[], failures=[], strategies=[]))

    assert "Nothing was done: 1 ready node" in text
    assert "refused" not in text


def test_all_refused_pods_are_listed_on_demand() -> None:
    many = report(refusals=[refusal(number) for number in range(50)])

    assert printed(many).count("default/r") < 50
    assert all(f"default/r{number}" in printed(many, everything=True) for number in range(50))


def test_the_commonest_reason_stands_for_the_others() -> None:
    refusals = [refusal(0, reason="rare"), refusal(1, reason="common"), refusal(2, reason="common")]

    assert "common (default/r1, default/r2; 1 more reason)" in printed(report(refusals=refusals))


def test_of_many_nodes_the_most_and_the_least_used_are_shown() -> None:
    """Each once; all of them on demand."""
    states = dict.fromkeys(("state", "stateAfter"), "appropriately utilized")
    shares = [{"before": {"cpu": 90.0 - n}, "after": {"cpu": 90.0 - n}} for n in range(25)]
    nodes = [{"name": f"n{n:02}", **states, **shares[n]} for n in range(25)]
    run = report()["strategies"][0] | {"nodes": nodes, "thresholds": {"cpu": 20.0}, "targetThresholds": {"cpu": 95.0}}
    many = report(strategies=[run])

    some, every = (
        [n for n in range(25) if f"  n{n:02}  cpu" in printed(many, everything=each)] for each in (False, True)
    )

    assert (some, every) == ([*range(10), *range(15, 25)], [*range(25)])


def saying(text: str) -> dict[str, Any]:
    """A report that has this text wherever others may have written one."""
    eviction = report()["evictions"][0]
    return report(
        {"context": text, "server": text},
        strategies=[{**report()["strategies"][0], "profile": text, "error": text}],
        evictions=[{**eviction, "name": text, "node": text, "profile": text, "reason": text, "owner": None}],
        refusals=[refusal(1, reason=text)],
        failures=[{**refusal(2), "error": text}],
        warnings=[text],
    )


@pytest.mark.parametrize("text", ["[/bold]", "[red]", "[prod]", ":warning:", "a\\[b]"])
def test_brackets_and_colons_are_printed_as_they_are(text: str) -> None:
    """A webhook's message, a profile's name and a path are not markup."""
    assert printed(saying(text), everything=True).count(text) >= 10


def test_a_pod_that_another_controller_moves_is_marked() -> None:
    """It is still there for a while, and whoever looks for it should know why."""
    evictions = [{**report()["evictions"][0], "background": True}]

    assert "greed (another controller moves it)" in printed(report(evictions=evictions))


def test_doubts_are_told_where_there_are_any() -> None:
    assert "Pods that may have gone" in printed()
    assert "unknown" not in printed(report(unknown=[]))


@pytest.mark.parametrize("stream", [io.StringIO, Screen])
def test_foreign_characters_are_shown_escaped(stream: type[io.StringIO]) -> None:
    """In a terminal and piped alike: separators of lines, marks of direction, what has no width."""
    evil = "a\x1b]0;title\x07\x1b[2J\r\x9b31m\u2028\u202eb\u2066\u200b"

    text = "\n".join(lines(saying(evil), stream(), everything=True))

    assert not set(text) & set("\x07\r\x9b\u2028\u202e\u2066\u200b")
    assert not any(each in text for each in ("\x1b]", "\x1b[2J"))
    assert "\\u202e" in text
