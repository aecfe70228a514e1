"""Fixtures of the end-to-end tests; README.md says how to use them."""

import os
import secrets
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from urllib3.exceptions import HTTPError

from tests.e2e.api import Api, ApiError
from tests.e2e.binaries import BinariesError, provide
from tests.e2e.builders import node
from tests.e2e.harness import ControlPlane
from tests.e2e.last_words import last_words
from tests.e2e.namespace import Namespace, is_ready
from tests.e2e.program import Program
from tests.e2e.waiting import ClusterDeadlineError

CONTROLPLANE = pytest.StashKey[ControlPlane]()
KEPT_LOGS = pytest.StashKey[Path]()
TOLD = pytest.StashKey[list[str]]()
#: What these tests watch must never be seen broken, not once: they have no second try, whatever `--reruns` says, but
#: when it was a controller that did not get done what a test begins with.
BOUNDS = frozenset(f"test_{name}.py" for name in ("apiserver_restart", "churn", "etcd_stopped", "steering_faults"))


@dataclass(frozen=True)
class Cluster:
    """A cluster to test against: the control plane of this run, or an existing one."""

    kubeconfig: Path
    api: Api


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder, and those that have no second try."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("e2e")
            if item.path.name in BOUNDS:
                reruns = item.config.getoption("reruns", None) or 0
                item.add_marker(pytest.mark.flaky(reruns=reruns, only_rerun=[ClusterDeadlineError]))


@pytest.fixture(scope="session")
def controlplane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The control plane of this run, whose nodes, API server and audit log are the test's to use."""
    if existing_kubeconfig():
        pytest.skip("needs a control plane of its own, not the one of REBALANCER_E2E_KUBECONFIG")
    try:
        binaries = provide()
    except BinariesError as error:
        pytest.exit(f"no control plane to test against: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    with ControlPlane(binaries) as running:
        request.config.stash[CONTROLPLANE] = running
        yield running
        if request.session.testsfailed:
            request.config.stash[KEPT_LOGS] = keep_logs(running)


@pytest.fixture(scope="session")
def metrics(controlplane: ControlPlane) -> ControlPlane:
    """The same, with metrics-server running."""
    controlplane.start_metrics_server()
    return controlplane


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """The cluster of REBALANCER_E2E_KUBECONFIG, or else the control plane of this run."""
    existing = existing_kubeconfig()
    if existing:
        return Cluster(existing, Api(existing))
    running: ControlPlane = request.getfixturevalue("controlplane")
    return Cluster(running.kubeconfig, running.api)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """A namespace of the test's own, and whatever it creates outside of namespaces; gone afterwards, and forgotten."""
    made = Namespace(cluster.api, f"e2e-{secrets.token_hex(4)}")
    yield made
    made.delete()
    if not existing_kubeconfig():
        cluster.api.delete("ConfigMap", "kube-rebalancer-memory", "kube-system")


@pytest.fixture
def program(cluster: Cluster) -> Program:
    """The program under test, as user "program" of this run's control plane, or as the user of an existing cluster."""
    return Program(cluster.kubeconfig)


@pytest.fixture
def two_nodes(cluster: Cluster, namespace: Namespace) -> None:
    """Two nodes at least, which every run needs: this run's are made; an existing cluster has them or is skipped."""
    if not existing_kubeconfig():
        namespace.create(node("a", cpu="16"), node("b", cpu="16"))
    elif sum(map(is_ready, cluster.api.list("Node"))) < 2:
        pytest.skip("the cluster of REBALANCER_E2E_KUBECONFIG has fewer than two nodes that are Ready")


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes a line that the test run's summary is to show, such as counts."""
    return request.config.stash.setdefault(TOLD, []).append


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell with a failure what ran where, and how the logs end."""
    report = yield
    if report.when == "call" and report.failed and isinstance(item, pytest.Function):
        running = item.config.stash.get(CONTROLPLANE, None)
        if running:
            report.sections.append(("control plane's logs", running.processes.tails()))
        namespace = item.funcargs.get("namespace")
        if isinstance(namespace, Namespace):  # last, as it says most: the end of a long report is what is kept of it
            report.sections.append(("pods", described(namespace)))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Say what tests had to tell, where the logs of a run that failed are, and, after all else, what failed."""
    for line in config.stash.get(TOLD, ()):
        terminalreporter.write_line(line)
    if KEPT_LOGS in config.stash:
        terminalreporter.write_line(f"the control plane's logs are in {config.stash[KEPT_LOGS]}")
    yield
    failed = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
    if failed:
        terminalreporter.write_sep("=", "what failed")
    for line in last_words(failed):
        terminalreporter.write_line(line)


def existing_kubeconfig() -> Path | None:
    """The kubeconfig that REBALANCER_E2E_KUBECONFIG names, if it is set."""
    named = os.environ.get("REBALANCER_E2E_KUBECONFIG")
    return Path(named) if named else None


def described(namespace: Namespace) -> str:
    """What runs in a namespace, or why that cannot be told."""
    try:
        return namespace.describe()
    except (ApiError, HTTPError) as error:
        return f"the API server does not tell: {error}"


def keep_logs(running: ControlPlane) -> Path:
    """Copy the logs of a run that failed to where they outlive it."""
    given = os.environ.get("REBALANCER_E2E_LOGS")
    folder = Path(given or tempfile.mkdtemp(prefix="rebalancer-e2e-logs-"))
    running.keep_logs(folder)
    return folder
