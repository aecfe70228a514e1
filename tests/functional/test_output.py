"""What the program says, where it says it, and with which exit code it ends."""

import json
import re
from datetime import UTC, datetime

import pytest

from tests.functional.objects import OLD, ONE, policy


@pytest.mark.parametrize(
    ("options", "evicted", "refused"),
    [
        ((), False, False),
        (("-v", "1"), True, False),
        (("-v=1",), True, False),
        (("--v=2",), True, True),
        (("--v", "9"), True, True),
    ],
)
def test_how_much_is_logged(two, rebalancer, options, evicted, refused):
    """Evictions from 1 on, refusals from 2 on; the number in any of the ways that the descheduler takes it."""
    stderr = rebalancer.run(two, ONE, *options).stderr

    assert ("evicted default/a" in stderr, "refused by TotalLimit" in stderr) == (evicted, refused)


@pytest.mark.parametrize(("options", "exit_code"), [((), 0), (("--fail-on-error",), 1), (("--dry-run",), 1)])
def test_a_strategy_that_fails_does_not_stop_the_others(two, rebalancer, options, exit_code):
    """It makes a live run fail only on demand where another one has evicted, and a dry run in any case."""
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, "metricsUtilization": {"metricsServer": True}}
    limited = {"maxNoOfPodsToEvictTotal": 1, "metricsProviders": [{"source": "KubernetesMetrics"}]}

    outcome = rebalancer.run(two, policy(OLD, ("LowNodeUtilization", args), **limited), *options)

    assert outcome.exit_code == exit_code
    assert outcome.evicted() == ["default/a"]


@pytest.mark.parametrize(("most", "options", "exit_code"), [(1, (), 10), (0, (), 0), (1, ("--strict",), 10)])
def test_a_dry_run_tells_by_its_exit_code_whether_there_is_something_to_do(two, rebalancer, most, options, exit_code):
    """On request; a live run has no such code, since a Job would start it again."""
    asked = policy(OLD, maxNoOfPodsToEvictTotal=most)

    assert rebalancer.run(two, asked, "--dry-run", "--detailed-exitcode", *options).exit_code == exit_code
    assert rebalancer.run(two, asked, "--detailed-exitcode").exit_code == 2
    assert two.evicted == []


@pytest.mark.parametrize("flag", ["--log-format", "--logging-format"])
def test_everything_is_an_object_a_line(many, rebalancer, flag):
    """Evictions one by one, refusals as counts, a summary last."""
    many.fail("POST", "*/events", status=403)
    document = policy(OLD, maxNoOfPodsToEvictTotal=2)

    outcome = rebalancer(*rebalancer.arguments(many, document, ""), flag, "json", "-v", "1")

    logged = [json.loads(line) for line in outcome.stderr.splitlines()]
    lines = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert logged
    assert all(set(line) == {"ts", "level", "logger", "msg"} for line in logged)
    assert [line["kind"] for line in lines] == ["Eviction", "Eviction", "Refusals", "Strategy", "Warning", "Summary"]
    assert [line["name"] for line in lines[:2]] == ["p00", "p01"]
    assert lines[2]["count"] == 1
    assert (lines[-1]["evicted"], lines[-1]["refused"], lines[-1]["failed"]) == (2, 1, 0)
    assert rebalancer.run(many, document, flag, "json").report["kind"] == "Report"  # asked for, it stays one document


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("--policy", "{folder}/nowhere.yaml"), "Error: there is no policy file "),
        (("--kubeconfig", "{folder}/nowhere"), "Error: kubeconfig "),
        (("--deadline", "soon"), "Error: --deadline: 'soon' is not a duration"),
    ],
)
def test_what_ends_the_program_is_an_object_too(many, rebalancer, changed, words):
    """`kubectl logs POD | jq` reads why a pod failed."""
    option, value = changed
    given = [*rebalancer.arguments(many, policy(OLD), ""), "--deadline", "9m"]
    given[given.index(option) + 1] = value.format(folder=rebalancer.folder)

    outcome = rebalancer(*given, "--log-format=json")

    last = json.loads(outcome.stderr.splitlines()[-1])
    assert outcome.exit_code in (2, 3)
    assert set(last) == {"ts", "level", "logger", "msg"}
    assert (last["level"], last["logger"]) == ("error", "rebalancer")
    assert last["msg"].startswith(words)


def test_no_line_grows_with_the_cluster(many, rebalancer):
    evictor = {"minReplicas": 100}

    limited = policy(OLD, evictor=evictor, maxNoOfPodsToEvictTotal=9)
    outcome = rebalancer(*rebalancer.arguments(many, limited, ""), "--log-format=json")

    lines = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert [line["kind"] for line in lines] == ["Refusals", "Strategy", "Summary"]
    assert lines[0]["count"] == 40
    assert max(map(len, outcome.stdout.splitlines())) < 400


def test_a_line_of_text_begins_with_its_time(many, rebalancer):
    """RFC 3339 in UTC, wherever the machine is; then level, module and message."""
    before = datetime.now(UTC).replace(microsecond=0)

    lines = rebalancer.run(many, policy(OLD, maxNoOfPodsToEvictTotal=2), "-v", "1").stderr.splitlines()

    pattern = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (INFO|WARNING) rebalancer(\.\w+)+: .+")
    times = [datetime.fromisoformat(pattern.fullmatch(line)[1]) for line in lines]
    assert times == sorted(times)
    assert before <= times[0]
    assert times[-1] <= datetime.now(UTC)
    assert any(" INFO rebalancer.run.live: evicted default/p00 on n1 (PodLifeTime: " in line for line in lines)
