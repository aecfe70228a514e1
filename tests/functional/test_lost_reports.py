"""A report that cannot be written loses nothing that was done."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.functional.objects import OLD, pod, policy, two_nodes_with
from tests.functional.program import finish

FULL = Path("/dev/full")
CLUSTER = ROOT / "examples" / "cluster.json"
EVIL = "x\x1b[31m\u202ehidden\x07\u200b"
SHOWN = "x\\x1b[31m\\u202ehidden\\x07\\u200b"
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs a file that is always full")


@needs_full
@pytest.mark.parametrize(
    ("forbidden", "options", "exit_code", "gone"),
    [
        ("", (), 0, "; evicted: default/a, default/b"),
        ("pods/eviction", (), 1, "; evicted: nothing"),
        ("", ("--dry-run", "--output", "table"), 1, ""),
    ],
    ids=["live", "forbidden", "dry"],
)
def test_a_run_on_a_full_disk(two, rebalancer, forbidden, options, exit_code, gone):
    """One line says which pods went; and where pods went, a Job must not do it again.  Else that does no harm."""
    two.forbid("create", forbidden)
    with FULL.open("w") as full:
        outcome = finish(rebalancer.start(*rebalancer.arguments(two, policy(OLD)), *options, stdout=full))

    assert outcome.exit_code == exit_code
    assert outcome.stderr.endswith(f"Error: the report cannot be written: No space left on device{gone}\n")


@needs_full
@pytest.mark.parametrize("command", [("strategies",), ("plan", "--policy", "demo", "--snapshot", CLUSTER)])
def test_any_other_output_on_a_full_disk(rebalancer, command):
    """One line, and an exit code that says that it is not there."""
    with FULL.open("w") as full:
        outcome = finish(rebalancer.start(*command, stdout=full))

    assert outcome.exit_code == 1
    assert outcome.stderr.splitlines()[-1] == "Error: the output cannot be written: No space left on device"


def test_a_live_run_whose_output_was_closed_at_start(two, rebalancer):
    """`>&-` in a shell."""
    arguments = rebalancer.arguments(two, policy(OLD))
    outcome = finish(rebalancer.start(*arguments, preexec_fn=lambda: os.close(1)))

    assert outcome.exit_code == 0
    assert outcome.stderr.endswith("standard output is closed; evicted: default/a, default/b\n")


@needs_full
def test_where_nothing_at_all_can_be_written_the_exit_code_still_tells(two, rebalancer):
    """Standard error is full too."""
    with FULL.open("w") as full:
        outcome = finish(rebalancer.start(*rebalancer.arguments(two, policy(OLD)), stdout=full, stderr=full))

    assert (outcome.exit_code, two.evicted) == (0, ["default/a", "default/b"])


def test_a_character_that_the_encoding_lacks_is_written_as_ascii(two, rebalancer):
    """A webhook's words in another script; the report is there, whole."""
    two.fail("POST", "*/a/eviction", status=400, message='admission webhook "w" denied the request: 禁止…')
    talking = replace(rebalancer, environment={"PYTHONIOENCODING": "ascii:strict"})

    process = talking.start(*talking.arguments(two, policy(OLD)), "--output", "table")
    outcome = finish(process)

    assert outcome.exit_code == 0, outcome.stderr
    assert "default/b" in outcome.stdout
    assert "\\u7981\\u6b62" in outcome.stdout


def test_a_locale_of_another_encoding(rebalancer):
    """A page is in UTF-8 all the same, as it says; elsewhere what the encoding lacks is an escape."""
    asked = ("--policy", rebalancer.policy(policy(OLD)), "--snapshot")
    file, out = rebalancer.cluster(*two_nodes_with(pod("Ж"))), rebalancer.folder / "page.html"
    locale = {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    abroad = replace(rebalancer, environment=locale)

    def said(*arguments):
        outcome = finish(abroad.start(*arguments))
        assert outcome.exit_code == 0, outcome.stderr
        return outcome.stdout

    page = said("run", *asked, file, "--output", "html")
    said("report", "--snapshot", file, "--out", out)
    assert [" ▲" in each for each in (page, out.read_text())] == [True, True]
    assert "\\u0416" in said("explain", "node/n1", *asked, file)


def test_nobody_reads_a_dry_run_to_its_end(two, rebalancer):
    """`| head`: whoever read it has seen enough, and needs no message."""
    reading, pipe = os.pipe()
    os.close(reading)
    outcome = finish(rebalancer.start(*rebalancer.arguments(two, policy(OLD)), "--dry-run", stdout=pipe))
    os.close(pipe)

    assert (outcome.exit_code, outcome.stderr) == (1, "")


def test_a_closed_standard_input_is_said(rebalancer):
    """`<&-` in a shell: exit code 2 in a line."""
    arguments = ("--policy", "demo", "--snapshot", "-")
    outcome = finish(rebalancer.start("run", *arguments, preexec_fn=lambda: os.close(0)))

    assert outcome.exit_code == 2
    assert "standard input is closed" in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1


def test_a_question_without_standard_input(two, rebalancer):
    """Nobody can answer: only --yes can say so.  The name of the context is shown escaped."""
    variables = {"KUBECONFIG": str(two.kubeconfig(rebalancer.folder, context=EVIL))}
    at_home = replace(rebalancer, environment=variables)

    outcome = finish(at_home.start("run", "--policy", at_home.policy(policy(OLD)), preexec_fn=lambda: os.close(0)))

    assert outcome.exit_code == 2
    assert "say so with --yes" in outcome.stderr
    assert (SHOWN in outcome.stderr, EVIL in outcome.stderr) == (True, False)
    assert two.requests == []


@pytest.mark.parametrize("output", ["table", "json"])
def test_what_a_server_says_reaches_no_terminal_unescaped(two, rebalancer, output):
    """In the report and in logs at their most talkative, piped; a program gets it as it is."""
    two.fail("POST", "*/a/eviction", status=400, message=f'admission webhook "w" denied the request: {EVIL}')

    outcome = rebalancer(*rebalancer.arguments(two, policy(OLD)), "--output", output, "-v", "2")

    for text in (outcome.stdout, outcome.stderr):
        assert set(text) - {"\n"} == {each for each in text if each.isprintable()}
    assert SHOWN in outcome.stderr
    assert SHOWN in outcome.stdout if output == "table" else EVIL in outcome.report["refusals"][0]["reason"]
