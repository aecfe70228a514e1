"""What is on the screen of a real terminal, whatever its width."""

import json

import pytest
from click.testing import CliRunner

from rebalancer.cli.main import main
from rebalancer.report.view import lines
from tests.functional.objects import node, pod, policy
from tests.terminal.screen import Screen, on_screen

DEMO = ("run", "--policy", "demo", "--snapshot", "examples/cluster.json")
LONG = "checkout-worker-with-a-rather-long-name-7c9d8f6b5"


def written(folder, objects, policy_):
    (folder / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (folder / "policy.yaml").write_text(json.dumps(policy_))
    return ("run", "--policy", str(folder / "policy.yaml"), "--snapshot", str(folder / "cluster.json"))


def crowd(folder, count, *, limit=10_000, name="web"):
    """A run that evicts so many pods of two owners on ten nodes."""
    nodes = [node(f"n{number}") for number in range(10)]
    pods = [
        pod(f"{name}-{number:04d}", f"n{number % 10}", restarts=5, owner=f"{name}-{number % 2}")
        for number in range(count)
    ]
    limits = {} if limit is None else {"maxNoOfPodsToEvictTotal": limit}
    tidy = policy(("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 5}), **limits)
    return written(folder, nodes + pods, tidy)


def demo_names():
    """Names that a report of the demo must show: those of pods that go, and of the nodes they go from."""
    report = json.loads(CliRunner().invoke(main, [*DEMO, "--output", "json"]).stdout)
    return [each[key] for each in report["evictions"] for key in ("name", "node")]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_name_is_cut_and_no_line_wrapped_by_the_terminal(columns):
    """Each name of a pod or a node stands on the screen as a whole, and a line ends before the screen does."""
    shown = on_screen(*DEMO, columns=columns)

    words = set(shown.text.split())
    assert words.issuperset(demo_names())
    assert "…" not in shown.text
    # What the program wrote as a line is a line on the screen.
    assert len(shown.lines) == len(shown.raw.splitlines())


def test_long_names_stay_whole(tmp_path):
    shown = on_screen(*crowd(tmp_path, 3, name=LONG), columns=80)

    for number in range(3):
        assert any(f"{LONG}-{number:04d}" in line.split() for line in shown.lines)
    assert shown.text.count("5 restarts >= 5") == 3


def test_five_hundred_evictions_are_readable(tmp_path):
    """Counted by strategy and owner, on one screen; with -v 1 and --output wide each is there.

    In a pipe each is a line, however many they are: `grep` finds them.
    """
    run = crowd(tmp_path, 500)

    grouped, wide = on_screen(*run, columns=80), on_screen(*run, "--output", "wide", columns=80)
    piped = CliRunner().invoke(main, run).stdout.splitlines()

    assert len(grouped.lines) < 25
    assert "RemovePodsHavingTooManyRestarts: 500 pods" in grouped.text
    assert "250  default  ReplicaSet/web-0" in grouped.text
    assert "(-v 1 or --output wide lists each)" in grouped.text
    assert all(f"web-{number:04d}" in wide.text for number in range(500))
    lines = {line.split()[0]: line for line in piped if "5 restarts >= 5" in line}
    assert lines.keys() == {f"default/web-{number:04d}" for number in range(500)}


@pytest.mark.parametrize(
    ("color", "variables", "colored"),
    [
        ("auto", {}, True),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": ""}, True),
        ("auto", {"TERM": "dumb"}, False),
        ("never", {}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("always", {"TERM": "dumb"}, True),
    ],
)
def test_who_wants_no_colours_gets_none(monkeypatch, color, variables, *, colored):
    """The option before the variable; the words are the same."""
    report = json.loads(CliRunner().invoke(main, [*DEMO, "--output", "json"]).stdout)
    for name, value in {"TERM": "xterm", "NO_COLOR": "", **variables}.items():
        monkeypatch.setenv(name, value)

    text = "\n".join(lines(report, Screen(), color=color))

    assert ("\x1b[" in text) == colored
    assert "LowNodeUtilization" in text


def test_a_run_without_limits_is_warned_of_in_a_dry_run_too(tmp_path):
    """At the top, once, with how much of the cluster would go."""
    shown = on_screen(*crowd(tmp_path, 40, limit=None))

    assert "!  the policy sets no limit on evictions" in "\n".join(shown.lines[:4])
    assert shown.text.count("no limit") == 1
    assert "40 of 40 pods of the cluster: more than a fifth" in shown.text
