"""The page of a report or a plan: whole, small, and harmless whatever pods are called; in a real browser too."""

import json
import re
from pathlib import Path

import pytest

from rebalancer.report.page import destination_words, html
from tests.browser import CHROMIUM, evaluated
from tests.functional.objects import node, old_pods, pod, two_nodes_with

CLUSTER = Path(__file__).parents[2] / "examples" / "cluster.json"
HOSTILE = (
    "</script><script>document.title='mine'</script><img src=x onerror=\"document.title='mine'\">'\"><svg/onload=1"
    "\u202e\x1b"
)


@pytest.fixture
def report(rebalancer):
    return rebalancer("run", "--policy", "demo", "--snapshot", CLUSTER, "-o", "json").report


@pytest.fixture
def page(report, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(html(report))
    return path


def hostile(value):
    """The same document with a hostile text in place of each name and reason."""
    if isinstance(value, dict):
        kept = ("state", "stateAfter", "kind", "apiVersion")
        return {key: each if key in kept else hostile(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return HOSTILE if isinstance(value, str) else value


def large(report, nodes=5_000, moves=500):
    run = next(each for each in report["strategies"] if each["nodes"])
    many = [{**run["nodes"][number % 12], "name": f"node-{number:05}"} for number in range(nodes)]
    strategies = [{**run, "nodes": many}]
    return {**report, "strategies": strategies, "evictions": (report["evictions"] * moves)[:moves]}


def test_the_same_page_from_a_run_a_report_and_of_a_plan(rebalancer, report, tmp_path):
    """`--output html`, and `report` for what was written to a file; a run and a plan show the policy."""
    file, plan = tmp_path / "report.json", tmp_path / "plan.json"
    file.write_text(json.dumps(report))
    rebalancer("plan", "--policy", "demo", "--snapshot", CLUSTER, "--out", plan)

    direct = rebalancer("run", "--policy", "demo", "--snapshot", CLUSTER, "-o", "html").stdout
    assert "<title>rebalancer: Dry run</title>" in direct
    assert "maxNoOfPodsToEvictPerNode: 3" in direct
    moves = direct[direct.index("<h2>Moves") : direct.index("<details>")]
    assert moves in rebalancer("report", file).stdout
    planned = rebalancer("report", plan).stdout
    written = tmp_path / "plan.yaml"
    rebalancer("plan", "--policy", "demo", "--snapshot", CLUSTER, "--out", written)
    assert rebalancer("report", written).stdout == planned
    assert "<title>rebalancer: Plan</title>" in planned
    assert "maxNoOfPodsToEvictPerNode: 3" in planned


def test_what_others_wrote_is_escaped(report):
    """In cells, pictures, warnings and attributes; and nothing comes from elsewhere: the file is self-contained."""
    own, text = html(report), html(hostile(report))

    assert not re.findall(r"(?:src|href)=|https?://|@import|url\(", own)
    assert "default-src 'none'" in own

    assert text.count("<script>") == 1
    assert not {"\u202e", "\x1b"} & {*text}
    assert "<img" not in text
    assert "<svg/onload" not in text


def test_thousands_of_nodes_are_a_distribution(report):
    """5,000 nodes and 500 moves stay below 2 MB."""
    text = html(large(report))

    assert len(text.encode()) < 2_000_000
    assert "cpu, by LowNodeUtilization: 5000 nodes" in text
    assert "nodes before" in text


@pytest.mark.parametrize(
    ("nodes", "share", "more", "words"),
    [
        (["n2"], [1.0], 0, "almost certainly n2"),
        (["n2", "n7"], [0.97, 0.03], 0, "almost certainly n2"),
        (["n2", "n7"], [0.8, 0.2], 0, "likely n2, else n7"),
        (["n2", "n7", "n9"], [0.4, 0.3, 0.3], 0, "n2, n7 or n9"),
        (["n2", "n7", "n9", "n10"], [], 3, "n2, n7, n9 or 4 more"),
        (["n2"], [], 0, "n2"),
    ],
)
def test_shares_are_words(nodes, share, more, words):
    assert destination_words({"nodes": nodes, "share": share, "more": more}) == words


@pytest.mark.parametrize(
    ("text", "message"),
    [("[]", "is neither a plan nor a report"), ("{", "is not JSON"), ('{"kind": "Report"}', "is not a whole report")],
)
def test_a_file_that_is_none_is_refused(rebalancer, tmp_path, text, message):
    file = tmp_path / "x.json"
    file.write_text(text)

    done = rebalancer("report", file)

    assert (done.exit_code, message in done.stderr) == (2, True)


def test_without_a_policy_the_cluster_is_shown_as_it_is(rebalancer):
    """Usage beside requests, who makes the peaks, the room that is left, and what each preset would do."""
    text = rebalancer("report", "--snapshot", CLUSTER).stdout
    rows = [re.sub(r"</td><td>|</?t[dr]>", "|", row) for row in re.findall(r"<tr><td>.*</tr>", text)]

    assert "<title>rebalancer: Cluster</title>" in text
    assert "||node-04|cpu|42.5 %|94.5 %|+52.0||" in rows
    assert "||cpu|shop/ReplicaSet/web-7c9d|29.4||" in rows
    assert "||1000m cpu, 4096 Mi memory|3|12||" in rows
    assert any(row.startswith("||demo|15|") for row in rows)
    assert any(row.startswith("||usage-prometheus|not known|it asks Prometheus") for row in rows)


def test_room_is_for_pods_that_run_or_wait(rebalancer):
    """One that has ended needs none; a node with as many pods as it takes has none."""
    full = node("n1")
    full["status"]["allocatable"]["pods"] = "1"
    ended, waits = pod("ended", "n2", cpu="3", phase="Succeeded"), pod("waits", "", cpu="2", phase="Pending")

    text = rebalancer("report", "--snapshot", rebalancer.cluster(full, node("n2"), pod("a"), ended, waits)).stdout

    assert re.findall(r"<td>(\d+)m cpu, 0 Mi memory</td><td>1</td><td>(\d)</td>", text) == [("2000", "1"), ("100", "1")]


def test_what_could_not_be_read_of_the_cluster_is_said(two, rebalancer):
    """Beside the page: without PDBs presets would do more than a run does."""
    two.forbid("list", "poddisruptionbudgets.policy")

    done = rebalancer.at(two, "report")

    assert "<title>rebalancer: Cluster</title>" in done.stdout
    assert "left out: no permission to list poddisruptionbudgets.policy" in done.stderr


def test_why_a_preset_would_do_nothing_is_said(rebalancer, tmp_path):
    """In a cluster that is paused, for example; the others remember nothing, and go on."""
    file = tmp_path / "cluster.json"
    paused = {"memory": {"pause": json.dumps({"reason": "load test"})}}
    file.write_text(json.dumps({**json.loads(CLUSTER.read_text()), "rebalancer": paused}))

    assert "<td>all is paused: load test</td>" in rebalancer("report", "--snapshot", file).stdout


def test_a_live_cluster_is_shown_without_a_write(server, rebalancer):
    server.add(*two_nodes_with(*old_pods("a", "b")))

    done = rebalancer.at(server, "report")

    assert done.exit_code == 0
    assert "Room left for the largest pods" in done.stdout
    assert {each.method for each in server.requests} == {"GET"}


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


@needs_browser
def test_a_browser_runs_nothing_that_others_wrote(report, tmp_path):
    """Not even where a hostile name ends the script or brings its own."""
    path = tmp_path / "hostile.html"
    path.write_text(html(hostile(report)))

    title, cells = evaluated(path.as_uri(), ["document.title", "document.querySelector('#moves td').textContent"])

    assert title == "rebalancer: Dry run"
    assert "<script>document.title='mine'</script>" in cells


#: The luminance of a colour, as WCAG has it.
LUMINANCE = (
    "(c => { const l = c.match(/\\d+/g).slice(0, 3).map(v => v / 255)"
    ".map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);"
    " return .2126 * l[0] + .7152 * l[1] + .0722 * l[2] })"
)
COLORS = (("body", "backgroundColor"), ("body", "color"), ("dt", "color"), (".soft", "color"))


@needs_browser
def test_the_page_is_used_by_keyboard_alone_and_can_be_read(page):
    """Moves are searched and sorted: a button in each head takes the focus and Enter.

    Readers hear the order and how many rows are left; text has at least 4.5 to 1 on its background, as WCAG asks.
    """
    shown = "[...document.querySelectorAll('#moves tbody tr')].filter(row => !row.hidden)"
    search = "s = document.getElementById('search'); s.value = 'SEARCH'; s.dispatchEvent(new Event('input'));"
    first = "document.querySelectorAll('#moves th button')[1]"
    order = f"{shown}.map(row => row.cells[1].textContent).join()"

    count, told, labelled, focus, up, aria, down, background, *texts = evaluated(
        page.as_uri(),
        [
            f"{search} {shown}.length",
            "document.getElementById('found').textContent",
            "document.getElementById('search').labels[0].textContent",
            f"s.value = ''; s.dispatchEvent(new Event('input')); {first}.focus(); document.activeElement.textContent",
            f"document.activeElement.click(); {order}",
            f"{first}.parentElement.getAttribute('aria-sort')",
            f"document.activeElement.click(); {order}",
            *(f"{LUMINANCE}(getComputedStyle(document.querySelector('{name}')).{what})" for name, what in COLORS),
        ],
    )

    assert (count, told, labelled, focus) == (2, "2 of 15", "Search", "from")
    assert (up.split(","), aria) == (sorted(up.split(",")), "ascending")
    assert down.split(",") == sorted(down.split(","), reverse=True)
    assert all((background + 0.05) / (each + 0.05) >= 4.5 for each in texts)
