"""What probes are told, on a clock that the test moves, and whether anything is served at all."""

from pathlib import Path

import pytest

from rebalancer.run.options import LeaseOptions, Options, ServingOptions
from rebalancer.run.telemetry import Health, Telemetry, served
from tests.functional.probing import ask
from tests.ports import free_port


@pytest.fixture
def health(time):
    """Of a loop with a cycle every five minutes, whose policy is valid and whose API server answers."""
    made = Health(deadline=300.0, interval=300.0, clock=time.clock)
    made.api_problem = ""
    return made


def is_well(checks):
    return not any(checks.values())


@pytest.mark.parametrize("wait", [0.0, 600.0])
def test_a_cycle_may_take_its_deadline_and_some_more_and_then_it_is_stuck(time, wait):
    """A restart repairs that and nothing else; it may wait for another run first, however long that takes."""
    health = Telemetry(Options("safe", deadline=300.0, lease=LeaseOptions(lease_wait=wait))).health
    health._clock = time.clock
    health.cycle_began()
    time.now += 420 + wait
    assert is_well(health.alive())

    time.now += 1
    assert health.alive()["cycle"] == f"it began {421 + wait:.0f} s ago and has not ended"

    health.cycle_ended(300.0)
    assert is_well(health.alive())


def test_it_is_alive_where_nothing_can_be_done(health, time):
    """Neither a bad policy nor a missing API server is cured by a restart."""
    assert Health(300.0, 300.0, time.clock).ready()["api"] == "the API server was not asked yet"
    health.api_problem = "no answer"
    health.policy_problem = "no policy"
    time.now += 1e6

    assert is_well(health.alive())
    assert not is_well(health.ready())


@pytest.mark.parametrize(("pause", "after"), [(300.0, 1200.0), (3000.0, 3900.0)])
def test_a_leader_whose_last_cycle_is_too_old_is_not_ready(health, time, pause, after):
    """Older than its present pause and three intervals."""
    health.cycle_ended(pause)
    time.now += after
    assert is_well(health.ready())

    time.now += 1
    assert "one is due every 300 s" in health.ready()["cycles"]


def test_followers_are_ready_and_have_time_when_they_take_over(health, time):
    """Nor need they ask a source."""
    health.source_problem = "no source was asked yet"
    with health.following():
        time.now += 1e6
        assert is_well(health.ready())

    assert health.ready()["sources"] == "no source was asked yet"
    health.source_problem = ""
    assert is_well(health.ready())
    time.now += 1201
    assert not is_well(health.ready())


def test_a_single_run_is_never_overdue(time):
    health = Health(300.0, 0.0, time.clock)
    health.api_problem = ""
    time.now += 1e6

    assert is_well(health.ready())


def sockets() -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum(str(link.readlink()).startswith("socket:") for link in links if link.is_symlink())


@pytest.mark.parametrize(("port", "pod"), [(None, ""), (0, ""), (0, "10.0.0.1")])
def test_nothing_is_served_on_a_laptop_or_where_told_so(monkeypatch, port, pod) -> None:
    """Outside a pod without a flag, and with port 0 inside of one too."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", pod)
    before = sockets()

    with served(ServingOptions(secure_port=port), Telemetry(Options("demo"))):
        assert sockets() == before


def test_a_page_is_made_only_for_a_browser():
    """Of a large report that takes seconds, while probes wait."""
    telemetry, port = Telemetry(Options("safe")), free_port()
    telemetry.last_report = {"kind": "a report of which no page can be made"}

    with served(ServingOptions(port, "127.0.0.1", insecure_http=True), telemetry):
        statuses = [ask(port, "/report", secure=False, Accept=form).status for form in ("*/*", "text/html")]

    assert statuses == [200, 500]
