"""The command line: what it prints, and the exit codes."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from rebalancer.cli.main import main
from rebalancer.engine.strategy import builtin
from tests.commands import ROOT, run
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with

POLICY = policy(OLD)
CLUSTER = {"kind": "List", "items": two_nodes_with(*old_pods("a"))}
NOW = "2026-01-02T00:00:00Z"
RUN = ("run", "--policy", "policy.yaml")
OFFLINE = (*RUN, "--snapshot", "cluster.json")
EXAMPLE = str(ROOT / "examples/cluster.json")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "top-20230511103000.txt").write_text("web-0 10m 64Mi\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def offline(*options: str) -> Result:
    return invoke(*OFFLINE, *options)


@pytest.mark.parametrize("command", ["", "run", "validate", "snapshot", "strategies", "schema"])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_explains_itself(command: str, option: str) -> None:
    result = invoke(*filter(None, (command, option)))

    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")


STRATEGIES = "rebalancer.engine.gate, strategies.low_node_utilization, strategies.high_node_utilization"


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("rebalancer.cli.main", "kubernetes urllib3 pydantic msgspec yaml rich prometheus_api_client"),
        (STRATEGIES, "numpy rebalancer.scheduling.simulator"),
    ],
    ids=["help answers at once", "only who asks a simulated scheduler has one"],
)
def test_what_is_heavy_is_imported_where_it_is_needed(modules: str, heavy: str) -> None:
    """A process is started, since this one has imported everything."""
    code = f"import sys, {modules}; print([name for name in sys.argv[1:] if name in sys.modules])"

    assert run(sys.executable, "-c", code, *heavy.split()).stdout == "[]\n"


def test_yaml_is_the_same_document(folder: Path) -> None:
    documents: list[dict[str, Any]] = [
        json.loads(offline("--output", "json", "--now", NOW).stdout),
        yaml.safe_load(offline("--output", "yaml", "--now", NOW).stdout),
    ]
    for document in documents:
        for each in document["strategies"]:
            each["seconds"] = 0

    assert documents[0] == documents[1]


def test_too_few_nodes_are_no_error(folder: Path) -> None:
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": CLUSTER["items"][1:]}))

    result = offline()

    assert result.exit_code == 0
    assert "Nothing was done: moving pods takes 2 ready nodes, and the policy selects 1" in result.stdout


INPUT, DASH = "only one of --policy, --scheduler-config and --snapshot can be standard input", ["run", "--policy", "-"]
BAD_USAGE = {
    "no policy": (["run"], "Missing option '--policy-config-file'"),
    "nothing to validate": (["validate"], "`rebalancer presets` lists them"),
    "a misspelt option": (["run", "--polcy", "x"], "--policy"),
    "a misspelt command": (["rum"], "No such command 'rum'"),
    "an unknown preset lists the presets": (["run", "--policy", "nothing"], "the presets are demo"),
    "a folder for a policy": (["run", "--policy", "."], "policy . cannot be read: "),
    "a missing snapshot": ([*RUN, "--snapshot", "nothing"], "snapshot nothing cannot be read: No such file"),
    "a folder for a snapshot": ([*RUN, "--snapshot", "."], "snapshot . cannot be read: Is a directory"),
    "a clock for a live cluster": ([*RUN, "--now", NOW], "--now goes with --snapshot"),
    **{
        f"{flag} of a file": ([*OFFLINE, *flag.split()], "are about a live cluster: leave them out, or --snapshot")
        for flag in (
            *("--kubeconfig x", "--context x", "--as x", "--insecure-skip-tls-verify", "--request-timeout 1s"),
            *("--metrics-textfile x", "--pushgateway http://x"),
        )
    },
    "standard input twice": ([*DASH, "--snapshot", "-"], INPUT),
    "standard input twice for the scheduler": ([*DASH, "--scheduler-config", "-"], INPUT),
    **{
        f"recommend {' '.join(options)}": (["recommend", "--samples", ".", *options], words)
        for *options, words in (
            ("--rule", "magic", "--rule magic is not a rule; there are peak-mean, seed-literal, quantile, target"),
            ("--timezone", "Mars", "--timezone Mars is not a time zone"),
            ("--peak", "noon", "'noon' is not a window"),
            ("--patches", "p", "--patches needs --snapshot"),
            ("--snapshot", "absent.json", "--snapshot absent.json cannot be read"),
            ("--prometheus", "http://p", "give one of --samples, --prometheus and --policy"),
        )
    },
    **{
        f"explain {target}": (["explain", target, "--policy", "demo", "--snapshot", EXAMPLE], words)
        for target, words in (
            ("ghost", "there is no pod ghost in namespace default; -n names another one; deploy/NAME, "),
            ("pod/ghost", "there is no pod ghost in namespace default"),
            ("shop/ghost", "there is no pod ghost in namespace shop"),
            ("cronjob/ghost", "there is no pod ghost in namespace cronjob"),
            ("deploy/ghost", "there is no Deployment ghost with pods in namespace default"),
            ("node/ghost", "no node ghost"),
        )
    },
    "no address": (["recommend", "--prometheus", "ftp://x"], "it is not a URL like http://HOST:PORT"),
    "a clock that is not a time": ([*OFFLINE, "--now", "noon"], "--now 'noon' is not an RFC 3339 time"),
    "a clock without a zone": ([*OFFLINE, "--now", "2026-01-01T00:00:00"], "is not an RFC 3339 time"),
    "a duration without a unit": ([*RUN, "--deadline", "5"], "--deadline: '5' is not a duration"),
    "an interval that is not a duration": (
        [*RUN, "--descheduling-interval", "soon"],
        "interval: 'soon' is not a duration",
    ),
    "an unknown output": ([*RUN, "--output", "xml"], "'xml' is not one of"),
    "an unknown strategy": (["strategies", "PodLifetime"], "there is no strategy 'PodLifetime'"),
    "a leader of one cycle": ([*RUN, "--leader-elect"], "goes with --descheduling-interval"),
    "a port out of range": ([*RUN, "--secure-port", "70000"], "--secure-port"),
    "a hold without end": ([*RUN, "--hold", "0"], "--hold: "),
    **{
        f"{option} {value}": ([*RUN, option, value], f"Invalid value for '{option}': {words}")
        for option, value, words in (
            ("--pushgateway", "me:secret@gateway", "credentials are not sent to http://gateway over plain http: use"),
            ("--pushgateway", "http://me:secret@[", "the URL http://... has an @, but what stands before it"),
            ("--pushgateway", "ftp://gateway", "it is not a URL like http://HOST:PORT"),
            ("--otel-collector-endpoint", "me:secret@collector:4317", "it is a host and a port, and has no user"),
        )
    },
}


@pytest.mark.parametrize(("arguments", "words"), BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage_ends_with_2_and_says_what_is_wrong(folder: Path, arguments: list[str], words: str) -> None:
    result = invoke(*arguments)

    assert result.exit_code == 2
    assert words in result.stderr
    assert "secret" not in result.stderr
    assert result.stdout == ""


def test_strategies_are_listed_in_a_line_each() -> None:
    lines = invoke("strategies").stdout.splitlines()

    assert [line.split()[0] for line in lines] == [*(strategy.name for strategy in builtin()), "DefaultEvictor"]
    assert all(line.split()[1] in ("deschedule", "balance", "filter") and line.endswith(".") for line in lines)


@pytest.mark.parametrize("strategy", builtin(), ids=lambda each: each.name)
def test_each_strategy_is_explained_with_all_its_arguments(strategy: Any) -> None:
    """From its own docstring and descriptions; nothing is left undescribed."""
    text = invoke("strategies", strategy.name).stdout

    assert text.startswith(f"{strategy.name}: ")
    assert f"Extension point: {strategy.point}" in text
    for field in strategy.Args.model_fields.values():
        assert re.search(rf"^  {field.alias} \([^)]+\): {re.escape(field.description)}$", text, re.MULTILINE)
    assert "None" not in text


@pytest.mark.parametrize("name", ["policy.yaml", "-"])
def test_a_valid_policy(folder: Path, name: str) -> None:
    text = (folder / "policy.yaml").read_text()

    result = CliRunner().invoke(main, ["validate", "--policy", name], input=text)

    assert result.exit_code == 0
    assert result.stdout == f"{name} is valid: 1 profile, strategies PodLifeTime\n"


def test_what_the_reference_ignores_may_pass_if_lenient(folder: Path) -> None:
    (folder / "policy.yaml").write_text(yaml.safe_dump({**POLICY, "profil": []}))

    result = invoke("validate", "--lenient", "--policy", "policy.yaml")

    assert result.exit_code == 0
    assert "Warning: " in result.stderr
    assert invoke("validate", "--policy", "policy.yaml").exit_code == 2
