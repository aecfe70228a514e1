"""What a credentials plugin is told, whom it may ask, an answer that is of no use, and signals while it starts."""

import base64
import json
import os
import signal
import sys

import pytest

from rebalancer.errors import NoCredentials
from rebalancer.kube.config import ChosenContext
from rebalancer.kube.exec_plugin import answered, held_signals

VERSION = "client.authentication.k8s.io/v1"
SERVER = {"server": "https://there:6443"}
ANSWER = json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": {"token": "the-token"}})


@pytest.fixture
def choose(tmp_path):
    """Make a context whose plugin is this shell script."""

    def make(script: str, cluster: dict = SERVER, **settings) -> ChosenContext:
        plugin = tmp_path / "plugin"
        plugin.write_text(f"#!/bin/sh\n{script}\n")
        plugin.chmod(0o755)
        entry = {"apiVersion": VERSION, "command": str(plugin), "interactiveMode": "Never", **settings}
        return ChosenContext("the kubeconfig", "there", cluster, {"exec": entry})

    return make


@pytest.fixture
def told(choose, tmp_path):
    """Run a plugin with these settings, and return what it is told."""

    def run(cluster: dict = SERVER, **settings) -> dict:
        script = f"printenv KUBERNETES_EXEC_INFO > {tmp_path}/told\necho '{ANSWER}'"
        assert answered(choose(script, cluster, **settings), 120.0)[0].user == {"token": "the-token"}
        return json.loads((tmp_path / "told").read_text())["spec"]

    return run


@pytest.fixture
def at_a_terminal(monkeypatch):
    """Somebody sits at the program."""
    screen, theirs = os.openpty()
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        yield
    os.close(screen)


@pytest.mark.parametrize(("asks", "cluster"), [(True, {"cluster": SERVER}), (False, {})])
def test_a_plugin_is_told_of_the_cluster_only_if_it_asks(told, asks, cluster):
    """As the API has it: provideClusterInfo."""
    assert told(provideClusterInfo=asks) == {"interactive": False} | cluster


def test_a_plugin_is_told_the_certificate_authority_that_counts(told, tmp_path):
    """That in the kubeconfig itself goes before a file, which need not be there."""
    (tmp_path / "ca.crt").write_text("of a file")
    ours, of_file = (base64.b64encode(each).decode() for each in (b"ours", b"of a file"))
    from_file = SERVER | {"certificate-authority": str(tmp_path / "ca.crt")}
    both = SERVER | {"certificate-authority": "/absent", "certificate-authority-data": ours}

    for cluster, authority in ((from_file, of_file), (both, ours)):
        given = told(cluster, provideClusterInfo=True)["cluster"]
        assert given == SERVER | {"certificate-authority-data": authority}


@pytest.mark.usefixtures("at_a_terminal")
@pytest.mark.parametrize(("mode", "may_ask"), [("Never", False), ("IfAvailable", True), ("Always", True)])
def test_a_plugin_that_never_asks_is_not_interactive_at_a_terminal_either(told, mode, may_ask):
    """interactiveMode says so."""
    assert told(interactiveMode=mode) == {"interactive": may_ask}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"env": [{"name": "A=B", "value": "c"}]}, "illegal environment variable name"),
        ({"args": ["a\0b"]}, "embedded null byte"),
        ({"args": ["x" * 300_000]}, "Argument list too long"),
    ],
)
def test_a_plugin_that_cannot_be_started_is_an_error(choose, settings, why):
    with pytest.raises(NoCredentials, match=f"it cannot be started: {why}"):
        answered(choose("", **settings), 120.0)


@pytest.mark.parametrize("printed", ["s3cret", ANSWER.replace("/v1", "/v1beta1"), ANSWER.replace("token", "password")])
def test_an_answer_without_credentials_is_an_error_that_does_not_repeat_it(choose, printed):
    """What a plugin prints may be a token."""
    with pytest.raises(NoCredentials, match="plugin of context 'there' gave no credentials: ") as caught:
        answered(choose(f"echo '{printed}'"), 120.0)
    assert "s3cret" not in str(caught.value)
    assert "the-" not in str(caught.value)


class EndedError(Exception):
    """A signal came."""


def end(*_):
    raise EndedError


@pytest.fixture
def handlers():
    """SIGTERM and SIGINT end the program, SIGHUP is ignored."""
    wanted = {signal.SIGTERM: end, signal.SIGINT: end, signal.SIGHUP: signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    yield wanted
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_takes_effect_afterwards(number, handlers):
    """All that had to be done is done by then."""
    done = []

    def act():
        with held_signals():
            signal.raise_signal(number)
            done.append("all")

    with pytest.raises(EndedError):
        act()

    assert done == ["all"]
    assert {each: signal.getsignal(each) for each in handlers} == handlers


def test_it_can_take_effect_earlier(handlers):
    """Where it would be a nuisance no more; from then on signals act at once, and one that is ignored stays so."""
    with held_signals() as release:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(EndedError):
            release()
        with pytest.raises(EndedError):
            signal.raise_signal(signal.SIGINT)

    assert {each: signal.getsignal(each) for each in handlers} == handlers


def test_an_error_meanwhile_is_kept(handlers):
    """And signals act again."""
    with pytest.raises(FileNotFoundError), held_signals():
        raise FileNotFoundError

    assert {each: signal.getsignal(each) for each in handlers} == handlers
