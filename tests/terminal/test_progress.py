"""Signs of life: what a run is at, while it lasts, and nothing of it afterwards."""

import re
import sys
from dataclasses import replace

import pyte
import pytest

from rebalancer.cli.terminal import MovingLine, progress_for
from rebalancer.engine.ledger import Entry
from rebalancer.eviction.causes import Code, as_cause
from rebalancer.eviction.verdict import GRANTED, Unknown, refused
from rebalancer.run.progress import Progress, Stage
from tests.functional.conftest import rebalancer, server  # noqa: F401  fixtures
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.terminal import Terminal
from tests.make import pod
from tests.terminal.screen import Screen

#: More than a page of 500.
PODS = 600
LIMITED = policy(OLD, maxNoOfPodsToEvictTotal=3)


@pytest.fixture
def crowded(server):  # noqa: F811
    server.add(*two_nodes_with(*old_pods(*(f"p{number:03}" for number in range(PODS)))))
    return server


@pytest.fixture
def at_home(crowded, rebalancer):  # noqa: F811
    """The program where KUBECONFIG says which cluster is meant, on a terminal that can move its cursor."""
    surroundings = {"KUBECONFIG": str(crowded.kubeconfig(rebalancer.folder)), "TERM": "xterm-256color"}
    return replace(rebalancer, environment=surroundings)


def second_pages(request):
    return "continue" in request.query


def live(program, *options):
    return ("run", "--no-lease", "--policy", program.policy(LIMITED), *options)


def on_screen(written):
    screen = pyte.Screen(200, 200)
    pyte.Stream(screen).feed(written.replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display if line.strip()]


def test_reading_and_evicting_are_shown_on_a_terminal(crowded, at_home):
    """Objects of how many, and evictions of as many as were agreed to."""
    reading = crowded.stall("GET", "/api/v1/pods", when=second_pages)
    allowed = crowded.stall("POST", "*/eviction", when=lambda _: len(crowded.evicted) == 1)

    with Terminal(at_home, *live(at_home)) as terminal:
        shown = terminal.read_until("reading pods: 500 of 600")
        reading.set()
        shown += terminal.read_until("[y/N/show]: ")
        terminal.type("y\n")
        shown += terminal.read_until("evicting: PodLifeTime, pods: 1 of 3")
        allowed.set()
        outcome = terminal.finish()

    assert outcome.exit_code == 0
    assert "3 pods evicted" in outcome.stdout
    left = on_screen(shown + outcome.stderr)
    assert left[0] == "pods:        3 of 600 would be evicted"
    assert re.fullmatch(r"Evict pods from context fake \(.*\)\? \[y/N/show\]: y", left[-1])


def test_log_lines_stand_above_the_line_that_moves(crowded, at_home):
    """Whole, and nothing of that line is left between them."""
    reading = crowded.stall("GET", "/api/v1/nodes")

    with Terminal(at_home, *live(at_home, "--dry-run", "-v")) as terminal:
        shown = terminal.read_until("reading the cluster")
        reading.set()
        shown += terminal.finish().stderr

    lines = on_screen(shown)
    assert [re.sub(r"^\S+Z INFO rebalancer\.\w+\.\w+: ", "", each) for each in lines] == [
        "read 2 objects of kind Node",
        "read 600 objects of kind Pod",
        "read 0 objects of kind PodDisruptionBudget",
    ]


def test_requests_that_are_tried_again_stand_in_the_line_that_moves(crowded, at_home):
    """The last one in the place of the one before, and none of it is left; with `-v` they are logged."""
    crowded.fail("GET", "/api/v1/pods", status=503, headers={"Retry-After": "1"}, times=2)

    with Terminal(at_home, *live(at_home, "--dry-run")) as terminal:
        shown = terminal.read_until("try 1 failed: the API server answers 503")
        shown += terminal.read_until("try 2 failed: the API server answers 503")
        shown += terminal.finish().stderr

    assert "WARNING" not in shown
    assert on_screen(shown) == []


@pytest.mark.parametrize(
    ("output", "log_as_json", "term", "shown"),
    [
        ("table", False, "xterm", True),
        ("wide", False, "xterm", True),
        ("json", False, "xterm", False),
        ("yaml", False, "xterm", False),
        ("table", True, "xterm", False),
        ("table", False, "dumb", False),
    ],
)
def test_programs_and_dumb_terminals_see_nothing_of_it(monkeypatch, output, log_as_json, term, shown):
    """A report for programs has nothing beside it, on a terminal too; a dumb one could not take the line away again."""
    monkeypatch.setattr(sys, "stderr", Screen())
    monkeypatch.setenv("TERM", term)

    found = progress_for(output, 0, log_as_json=log_as_json)

    assert type(found) is (MovingLine if shown else Progress)


def test_a_snapshot_shows_what_it_reads_without_colors_where_nobody_wants_them(crowded, at_home):
    """NO_COLOR, on a terminal that has them."""
    reading = crowded.stall("GET", "/api/v1/pods", when=second_pages)
    program = replace(at_home, environment={**at_home.environment, "NO_COLOR": "1"})

    with Terminal(program, "snapshot", "-o", program.folder / "file.json") as terminal:
        shown = terminal.read_until("reading pods: 500 of 600")
        reading.set()
        outcome = terminal.finish()

    assert outcome.exit_code == 0
    assert not re.search(r"\x1b\[[0-9;]+m", shown + outcome.stderr)


def test_a_short_run_shows_nothing(monkeypatch):
    """The line comes after a while, and a run that is over by then does not wait for it."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    line = MovingLine(colored=False, hears_retries=False)
    with line.shown():
        line.tell(Stage("reading pods"))

    assert screen.getvalue() == ""


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (Stage("reading the cluster"), "reading the cluster"),
        (Stage("reading pods", 500), "reading pods: 500"),
        (Stage("reading pods", 1500, 3000), "reading pods: 1,500 of 3,000"),
    ],
)
def test_a_standing_in_words(standing, words):
    assert standing.words == words


@pytest.mark.parametrize(("verdict", "counted"), [(GRANTED, 1), (Unknown("lost"), 1), (refused(Code.IN_PROGRESS), 0)])
def test_pods_are_counted_that_this_run_moves(monkeypatch, verdict, counted):
    """Another controller moves those that are in progress: no plan has them."""
    told, progress = [], Progress()
    monkeypatch.setattr(progress, "tell", told.append)
    with progress.stage("evict"):
        progress.around("tidy", "S")
        progress.observed(Entry("tidy", "S", pod("a"), as_cause("it should"), verdict))

    assert told[-1].done == counted
