"""Whether the metrics API has seen the latest change, and what it tells."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.builders import pod
from tests.outcome.figures import duration, measured, shares, told, unsettled


def metrics(name, timestamp="2026-01-01T10:00:30Z", window="10.5s", **usage):
    return {"metadata": {"name": name}, "timestamp": timestamp, "window": window, "usage": usage}


@pytest.mark.parametrize(("text", "seconds"), [("10.5s", 10.5), ("1m3s", 63), ("999ms", 0.999), ("1h0m0s", 3600)])
def test_durations_are_read_as_go_prints_them(text, seconds):
    """Hours to milliseconds."""
    assert duration(text) == timedelta(seconds=seconds)


def test_figures_count_once_their_window_began_after_the_change():
    """A window that reaches back before the change mixes old and new; missing figures are not settled either."""
    change = datetime(2026, 1, 1, 10, 0, 19, tzinfo=UTC)
    seen = [metrics("early", window="12s"), metrics("late")]

    assert unsettled(seen, ["early", "late", "missing"], change) == {"early", "missing"}


def test_shares_are_of_allocatable():
    """Quantities of any suffix, in percent."""
    node = {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}}

    seen = measured([metrics("a", cpu="1000000000n", memory="2097152Ki")])

    assert shares([node], seen) == {"a": {"cpu": pytest.approx(25), "memory": pytest.approx(25)}}


def test_what_pods_are_said_to_use_is_summed_by_node():
    """From the annotations that the metrics are made from."""
    made = [pod("web", node=node, usage="500m", memory_usage="1Ki") for node in ("a", "a", "b")]

    assert told(made) == {"a": {"cpu": 1.0, "memory": 2048.0}, "b": {"cpu": 0.5, "memory": 1024.0}}
