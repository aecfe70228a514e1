"""Which cluster a run means, and what is said when there is none."""

import re
import socket

import pytest

from rebalancer.cli.terminal import Question
from rebalancer.errors import ClusterError
from rebalancer.kube.retry_policy import RetryPolicy
from rebalancer.run.interruption import Interruption
from rebalancer.run.options import Options
from rebalancer.run.start import run
from tests.fake_api_server import FakeApiServer
from tests.functional.objects import OLD, policy

LIMITED = policy(OLD, maxNoOfPodsToEvictTotal=1)
#: Variables that would let a request go without the proxy.
NO_EXCEPTIONS = {"no_proxy": "", "NO_PROXY": ""}


def run_without_waits(rebalancer, kubeconfig):
    """Run in this process, with tries one after another."""
    options = Options(policy=str(rebalancer.policy(LIMITED)), kubeconfig=str(kubeconfig))
    with Interruption() as interruption:
        run(options, Question(yes=True), interruption, RetryPolicy(sleep=lambda _: None))


def test_the_home_directory_is_looked_into(two, rebalancer):
    """~/.kube/config, as kubectl does."""
    (rebalancer.folder / ".kube").mkdir()
    two.kubeconfig(rebalancer.folder).rename(rebalancer.folder / ".kube" / "config")

    outcome = rebalancer("run", "--policy", rebalancer.policy(LIMITED), "--output", "json", "--dry-run")

    assert outcome.report["cluster"] == {"context": "fake", "server": two.url}


@pytest.mark.parametrize("command", ["run", "snapshot"])
def test_no_cluster_at_all(rebalancer, command):
    """Exit code 3, and the ways to name one."""
    arguments = {
        "run": ("run", "--policy", rebalancer.policy(LIMITED)),
        "snapshot": ("snapshot", "--output", rebalancer.folder / "file.json"),
    }

    outcome = rebalancer(*arguments[command])

    assert (outcome.exit_code, outcome.stdout) == (3, "")
    for word in ("no cluster", "--kubeconfig", "KUBECONFIG"):
        assert word in outcome.stderr


@pytest.mark.parametrize(
    ("variable", "tls"), [("HTTP_PROXY", False), ("http_proxy", False), ("HTTPS_PROXY", True), ("https_proxy", True)]
)
def test_a_proxy_that_is_not_there(rebalancer, monkeypatch, variable, tls):
    """The variable that sets it is named, and what went wrong, in words of the system."""
    with FakeApiServer(tls=tls) as server, socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for name, value in {**NO_EXCEPTIONS, variable: proxy}.items():
            monkeypatch.setenv(name, value)

        words = f"the proxy {proxy} ({variable}) refuses to connect us: Connection refused"
        with pytest.raises(ClusterError, match=f"{re.escape(words)}$"):
            run_without_waits(rebalancer, server.kubeconfig(rebalancer.folder))
        assert server.requests == []


def test_a_server_that_is_not_there(two, rebalancer):
    """After some tries, with its address and the context."""
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        kubeconfig = two.kubeconfig(rebalancer.folder)
        kubeconfig.write_text(kubeconfig.read_text().replace(two.url, address))

        with pytest.raises(ClusterError, match=f"{address}.*context fake.*refused"):
            run_without_waits(rebalancer, kubeconfig)
