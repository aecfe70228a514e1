"""The time of a snapshot, told by its objects where nothing else tells it."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rebalancer.cluster.measured import NodeMetrics
from rebalancer.cluster.pod import LONG_AGO
from tests.make import NOW, node, pod, snapshot

DECADE = 10 * 365 * 86400


def newest(
    *, heartbeats: Iterable[float] = (), created: Iterable[float] = (), samples: Iterable[float] = (), **fields: Any
) -> float | None:
    """The time that objects tell, in seconds before NOW; so are theirs."""
    nodes = [node(f"n{place}", seen=NOW - timedelta(seconds=age)) for place, age in enumerate(heartbeats)]
    pods = [pod(f"p{place}", age=age) for place, age in enumerate(created)]
    metrics = tuple(NodeMetrics(f"n{place}", {}, NOW - timedelta(seconds=age)) for place, age in enumerate(samples))
    found = snapshot([*nodes, node("silent")], pods, node_metrics=metrics, **fields).newest()
    return None if found is None else (NOW - found).total_seconds()


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param({"created": [500, 100, 900]}, 100, id="the newest creation"),
        pytest.param({"created": [500], "heartbeats": [200, 150, 100]}, 150, id="the median heartbeat if later"),
        pytest.param({"created": [120], "heartbeats": [200, 150, 100]}, 120, id="a creation after that"),
        pytest.param({"heartbeats": [200, 100]}, 200, id="of an even number the earlier one"),
        pytest.param({"heartbeats": [300], "samples": [90, 60, 30]}, 60, id="the median sample if later"),
        pytest.param({"created": [50], "samples": [90]}, 50, id="a sample that is earlier"),
        pytest.param({}, None, id="nothing tells"),
    ],
)
def test_the_time_of_the_objects_stands_for_that_of_the_snapshot(times: dict[str, Any], expected: float | None) -> None:
    assert newest(**times) == expected


@pytest.mark.parametrize("odd", [-DECADE, -1, 30], ids=["far in the future", "in the future", "long after the others"])
@pytest.mark.parametrize("what", ["heartbeats", "created", "samples"])
def test_no_single_odd_object_sets_the_clock(what: str, odd: float) -> None:
    """All pods would look old, and would be evicted for it."""
    times = {"heartbeats": [5000, 5100, 5200], "created": [5050, 6000], "samples": [5060, 5070, 5080]}

    assert newest(**times | {what: [*times[what], odd]}) == pytest.approx(newest(**times), abs=100)


def test_without_heartbeats_no_time_after_the_reading_counts() -> None:
    assert newest(created=[700, -60]) == 700
    assert newest(created=[-60]) is None


def test_a_pod_without_a_creation_time_tells_nothing() -> None:
    """It counts as infinitely old."""
    ageless = msgspec.structs.replace(pod("a"), created=LONG_AGO)

    assert snapshot([node("n1")], [ageless]).newest() is None
