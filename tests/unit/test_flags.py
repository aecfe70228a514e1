"""Flags that the descheduler has: each is in the table of the docs, and none stops a manifest that carries it."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from rebalancer import __version__
from rebalancer.cli.main import main
from rebalancer.run.leadership import LEADER, ONE_CYCLE

#: Of descheduler v0.36.0, in the order of its help.
FLAGS = """
    --policy-config-file --descheduling-interval --dry-run --kubeconfig --client-connection-kubeconfig
    --client-connection-qps --client-connection-burst --feature-gates --disable-metrics --bind-address --secure-port
    --enable-http2 --disable-http2-serving --http2-max-streams-per-connection --permit-address-sharing
    --permit-port-sharing --cert-dir --tls-cert-file --tls-private-key-file --tls-sni-cert-key --tls-min-version
    --tls-cipher-suites --tls-curve-preferences --otel-collector-endpoint --otel-transport-ca-cert
    --otel-trace-namespace --otel-service-name --otel-sample-rate --otel-fallback-no-op-on-error --leader-elect
    --leader-elect-lease-duration --leader-elect-renew-deadline --leader-elect-retry-period
    --leader-elect-resource-lock --leader-elect-resource-name --leader-elect-resource-namespace -v --vmodule
    --logging-format --log-flush-frequency --log-text-split-stream --log-json-split-stream
    --log-text-info-buffer-size --log-json-info-buffer-size
"""
SNAPSHOT = ["--snapshot", "examples/three-nodes.json", "--output", "json"]


def invoke(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def documented():
    text = Path("docs/command-line.md").read_text()
    return {
        flag for row in re.findall(r"^\| (`-.*?) \|", text, re.MULTILINE) for flag in re.findall(r"`(-[^`]+)`", row)
    }


def test_the_table_and_the_program_have_each_flag():
    known = {name for option in main.commands["run"].params for name in option.opts}

    assert documented() & known >= {*FLAGS.split()}


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("--feature-gates=EvictionsInBackground=true", "--feature-gates changes nothing: there are no gates"),
        ("--client-connection-qps 50", "--client-connection-qps changes nothing: requests are not throttled here"),
        ("--enable-http2", "--enable-http2 changes nothing: health and metrics are served over HTTP/1.1"),
        ("--enable-http2=false", "--enable-http2 changes nothing: health and metrics are served over HTTP/1.1"),
        ("--log_flush_frequency=5s", "--log-flush-frequency changes nothing: all logs go to standard error at once"),
    ],
)
def test_a_flag_without_effect_is_accepted_with_a_line(flag, line):
    """The run does what it does without it, and nobody believes that it works."""
    given = invoke("run", "--policy", "safe", *SNAPSHOT, *flag.split())

    assert (given.exit_code, len(given.stderr.splitlines())) == (0, 1)
    assert line in given.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--policy-config-file", "demo"),
        ("--policy_config_file=demo", "--dry-run=true"),
        ("--policy-config-file", "demo", "--dry-run", "-v=0", "--logging-format=text", "-o", "json"),
    ],
)
def test_the_arguments_of_a_cronjob_carry_over(arguments):
    result = invoke(*arguments, *SNAPSHOT)

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("{")


def test_version_and_help_are_options_and_commands_and_help_lists_all_of_them():
    assert invoke("--version").stdout == f"rebalancer, version {__version__}\n"
    assert invoke("version").stdout.startswith("rebalancer ")
    assert "Exit codes: 0" in " ".join(invoke("--help").stdout.split())
    assert invoke("help").stdout == invoke("--help").stdout
    assert invoke("help", "validate").stdout == invoke("validate", "--help").stdout
    assert "No such command 'validat'" in invoke("help", "validat").stderr
    listed = invoke("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert (len(listed), [line for line in listed if line.endswith("...")]) == (len(main.commands), [])


def test_the_durations_of_a_lease_are_told_for_each_kind_of_run():
    """A single cycle and a loop with --leader-elect have other defaults."""
    told = {option.name: option.help for option in main.commands["run"].params}

    for field, flag in (("duration", "lease_duration"), ("deadline", "renew_deadline"), ("retry", "retry_period")):
        single, leading = getattr(ONE_CYCLE, field), getattr(LEADER, field)
        assert f"default {single:g}s, with --leader-elect {leading:g}s." in told[f"leader_elect_{flag}"]
