"""Fixtures of the end-to-end tests; README.md says how to use them."""

import os
import secrets
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from urllib3.exceptions import HTTPError

from tests.e2e.api import ApiError
from tests.e2e.binaries import BinariesError, provide
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program
from tests.e2e.waiting import ClusterDeadlineError

CONTROLPLANE = pytest.StashKey[ControlPlane]()
KEPT_LOGS = pytest.StashKey[Path]()
TOLD = pytest.StashKey[list[str]]()
#: What these tests watch must never be seen broken, not once: they have no second try, whatever `--reruns` says, but
#: when it was a controller that did not get done what a test begins with.
BOUNDS = frozenset(f"test_{name}.py" for name in ("apiserver_restart", "churn", "steering_faults"))


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
    controlplane.start_metrics_server()
    return controlplane


@pytest.fixture
def namespace(controlplane: ControlPlane) -> Iterator[Namespace]:
    """A namespace of the test's own, and whatever it creates outside of namespaces; gone afterwards, and forgotten."""
    made = Namespace(controlplane.api, f"e2e-{secrets.token_hex(4)}")
    yield made
    made.delete()
    controlplane.api.delete("ConfigMap", "kube-rebalancer-memory", "kube-system")


@pytest.fixture
def program(controlplane: ControlPlane) -> Program:
    """The program under test, as user "program" of this run's control plane."""
    return Program(controlplane.kubeconfig)


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what tests had to tell, and where the logs of a run that failed are."""
    for line in config.stash.get(TOLD, ()):
        terminalreporter.write_line(line)
    if KEPT_LOGS in config.stash:
        terminalreporter.write_line(f"the control plane's logs are in {config.stash[KEPT_LOGS]}")


def described(namespace: Namespace) -> str:
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
