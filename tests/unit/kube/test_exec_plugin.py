"""What a credentials plugin is told, whom it may ask, and what becomes of an answer that is of no use."""

import base64
import json
import os
import sys

import pytest

from rebalancer.errors import NoCredentials
from rebalancer.kube.config import ChosenContext
from rebalancer.kube.exec_plugin import answered

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


@pytest.mark.parametrize("printed", ["s3cret", ANSWER.replace("/v1", "/v1beta1"), ANSWER.replace("token", "password")])
def test_an_answer_without_credentials_is_an_error_that_does_not_repeat_it(choose, printed):
    """What a plugin prints may be a token."""
    with pytest.raises(NoCredentials, match="plugin of context 'there' gave no credentials: ") as caught:
        answered(choose(f"echo '{printed}'"), 120.0)
    assert "s3cret" not in str(caught.value)
    assert "the-" not in str(caught.value)


def test_a_plugin_that_is_given_up_sooner_is_not_named_before(choose, caplog):
    """The error says it all; the line that names a plugin is for whoever waits for it."""
    with pytest.raises(NoCredentials, match=r"did not answer within 0\.1 s and was ended"):
        answered(choose("exec sleep 600"), 0.1)
    assert caplog.messages == []
