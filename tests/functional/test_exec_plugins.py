"""A credentials plugin that hangs is named after five seconds, and given up after --exec-timeout."""

import json
import signal
from pathlib import Path

import pytest

from rebalancer.kube import exec_plugin
from tests.e2e.waiting import wait_for
from tests.fake_api_server import CERTIFICATE, FakeApiServer
from tests.functional.objects import ONE, old_pods, two_nodes_with
from tests.functional.program import finish
from tests.functional.terminal import Terminal

VERSION = "client.authentication.k8s.io/v1"

#: Waits in a process of its own, as a plugin does that has started a browser or a helper.
HANGING = """#!/bin/sh
sleep 600 &
echo $! > {folder}/helper
wait
"""
WAITING = """#!/bin/sh
cat {folder}/answer
"""


def arguments(program, server, script, **more):
    plugin = program.folder / "sso-login"
    plugin.write_text(script.format(folder=program.folder))
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": VERSION, "command": str(plugin), "interactiveMode": "Never", **more}}
    kubeconfig = server.kubeconfig(program.folder, user=user)
    return ("run", "--dry-run", "--policy", program.policy(ONE), "--kubeconfig", kubeconfig, "-o", "json")


def answer(**status):
    return json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})


def is_gone(process: int) -> bool:
    """Whether a process has ended, though perhaps nobody has collected it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_plugin_that_hangs_is_given_up(two, rebalancer):
    """Its name, how long it had, and the cure; what it has started ends with it, and nothing is sent."""
    outcome = rebalancer(*arguments(rebalancer, two, HANGING), "--exec-timeout", "300ms")

    assert (outcome.exit_code, outcome.stdout) == (3, "")
    assert outcome.stderr == (
        f"Error: kubeconfig {rebalancer.folder}/kubeconfig: the exec plugin {rebalancer.folder}/sso-login of context "
        "'fake' gave no credentials: it did not answer within 0.3 s and was ended. See what it waits for by calling it "
        "yourself, or give it longer with --exec-timeout.\n"
    )
    helper = rebalancer.folder / "helper"
    if helper.exists() and helper.read_text():  # a busy machine may not have come so far within that time
        wait_for(lambda: is_gone(int(helper.read_text())), "the end of the helper")
    assert two.requests == []


def test_a_plugin_that_takes_its_time_is_named(two, rebalancer, monkeypatch):
    """While it is waited for; its answer is used when it comes."""
    assert exec_plugin.NAMED_AFTER_SECONDS == 5.0
    monkeypatch.setattr(exec_plugin, "NAMED_AFTER_SECONDS", 0.1)
    (rebalancer.folder / "answer").write_text(answer(token="the-token"))

    outcome = rebalancer(*arguments(rebalancer, two, WAITING.replace("cat", "sleep 0.3; cat")))

    assert outcome.stderr.endswith(
        f": the exec plugin {rebalancer.folder}/sso-login of context 'fake' has not answered for 0.1 s; "
        "it is given up after 60 s (--exec-timeout)\n"
    )
    assert outcome.evicted() == ["default/a"]


def test_a_plugin_on_a_terminal_may_ask(two, rebalancer):
    asking = "#!/bin/sh\necho password? >&2; read given; echo $given > {folder}/heard; exit 1\n"
    run = arguments(rebalancer, two, asking, interactiveMode="IfAvailable")
    with Terminal(rebalancer, *run) as terminal:
        terminal.read_until("password?")
        terminal.type("open sesame\n")

        assert terminal.finish().exit_code == 3
    assert (rebalancer.folder / "heard").read_text() == "open sesame\n"


def test_ctrl_c_ends_the_plugin_too(two, rebalancer):
    """130 at once, and nothing is left behind."""
    process = rebalancer.start(*arguments(rebalancer, two, HANGING))
    helper = rebalancer.folder / "helper"
    wait_for(lambda: helper.exists() and helper.read_text().endswith("\n"), "the helper")
    process.send_signal(signal.SIGINT)

    assert finish(process).exit_code == 130
    wait_for(lambda: is_gone(int(helper.read_text())), "the end of the helper")


@pytest.mark.parametrize(("expires", "asked_again"), [("2020-01-01T00:00:00Z", True), ("2999-01-01T00:00:00Z", False)])
def test_credentials_that_have_expired_are_asked_for_again(two, rebalancer, expires, asked_again):
    """Before a request, so that the API server never sees an old token."""
    (rebalancer.folder / "answer").write_text(answer(token="the-token", expirationTimestamp=expires))
    counting = "#!/bin/sh\necho >> {folder}/calls\ncat {folder}/answer\n"

    outcome = rebalancer(*arguments(rebalancer, two, counting))

    assert outcome.evicted() == ["default/a"]
    assert {each.headers["authorization"] for each in two.requests} == {"Bearer the-token"}
    assert ((rebalancer.folder / "calls").read_text().count("\n") > 1) == asked_again


def test_a_plugin_may_give_a_client_certificate(rebalancer):
    """With its key, for a server that asks for one."""
    certificate = CERTIFICATE.read_text()
    with FakeApiServer(two_nodes_with(*old_pods("a", "b")), tls=True, asks_for_certificate=True) as server:
        given = answer(token="the-token", clientCertificateData=certificate, clientKeyData=certificate)
        (rebalancer.folder / "answer").write_text(given)
        outcome = rebalancer(*arguments(rebalancer, server, WAITING), "--insecure-skip-tls-verify")

    assert outcome.evicted() == ["default/a"]


def test_a_plugin_that_must_ask_somebody_needs_a_terminal(two, rebalancer):
    """interactiveMode: Always, in a CronJob."""
    outcome = rebalancer(*arguments(rebalancer, two, HANGING, interactiveMode="Always"))

    assert outcome.exit_code == 3
    assert "it wants to ask somebody (interactiveMode: Always), and there is no terminal.\n" in outcome.stderr
