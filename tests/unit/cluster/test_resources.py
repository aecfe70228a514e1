"""Quantities as Kubernetes writes them, vectors of resources, and what the scheduler sets aside for a pod."""

import pytest

from rebalancer.cluster.resources import (
    describe,
    effective_requests,
    parse_milli_quantity,
    parse_quantity,
    parse_resources,
)


def test_cpu_is_in_millicores_and_everything_else_in_whole_units() -> None:
    """The names decide on the unit."""
    parsed = parse_resources({"cpu": "1.5", "memory": "1Ki", "pods": "110", "example.com/gpu": "1"})

    assert parsed == {"cpu": 1500, "memory": 1024, "pods": 110, "example.com/gpu": 1}


def test_a_bad_quantity_names_its_resource() -> None:
    """A person finds the place."""
    with pytest.raises(ValueError, match="memory: 'lots' is not a valid quantity"):
        parse_resources({"cpu": "1", "memory": "lots"})


SIDECAR, PLAIN = True, False


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({"containers": [100, 50]}, 150, id="containers run together"),
        pytest.param(
            {"containers": [100], "inits": [(400, PLAIN), (300, PLAIN)]}, 400, id="the greatest init container"
        ),
        pytest.param({"containers": [100], "inits": [(40, PLAIN)]}, 100, id="which is less than the containers"),
        pytest.param({"containers": [100], "inits": [(50, SIDECAR)]}, 150, id="a sidecar runs with the containers"),
        pytest.param(
            {"containers": [100], "inits": [(50, SIDECAR), (400, PLAIN)]}, 450, id="and beside later init containers"
        ),
        pytest.param(
            {"containers": [100], "inits": [(400, PLAIN), (50, SIDECAR)]}, 400, id="but not beside earlier ones"
        ),
        pytest.param(
            {"containers": [100], "inits": [(50, SIDECAR), (400, PLAIN), (20, SIDECAR)], "overhead": 7},
            457,
            id="overhead comes on top",
        ),
        pytest.param({"containers": [100], "pod": 30, "overhead": 7}, 37, id="the pod's own request replaces the sum"),
    ],
)
def test_effective_requests(parts: dict, expected: int) -> None:
    """The formula of the Kubernetes documentation, in millicores."""
    found = effective_requests(
        [{"cpu": each} for each in parts["containers"]],
        [({"cpu": each}, restartable) for each, restartable in parts.get("inits", ())],
        {"cpu": parts["pod"]} if "pod" in parts else {},
        {"cpu": parts["overhead"]} if "overhead" in parts else {},
    )

    assert found == {"cpu": expected}


def test_a_pod_level_request_replaces_cpu_memory_and_huge_pages_only() -> None:
    """Kubernetes allows no others there, and one that stands there all the same does not count."""
    asked = {"cpu": 1, "memory": 1, "hugepages-2Mi": 1, "example.com/gpu": 1}
    at_pod_level = dict.fromkeys(asked, 5)

    found = effective_requests([asked], [], at_pod_level, {})

    assert found == {"cpu": 5, "memory": 5, "hugepages-2Mi": 5, "example.com/gpu": 1}


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("memory", 5 << 29, "2.5Gi"),
        ("memory", 2048, "2Ki"),
        ("memory", 12, "12"),
        ("pods", 3, "3"),
    ],
)
def test_amounts_are_described_as_people_write_them(name: str, amount: int, text: str) -> None:
    """Reasons in reports can be checked against manifests."""
    assert describe(name, amount) == text


@pytest.mark.parametrize(
    ("text", "units", "thousandths"),
    [
        pytest.param("2", 2, 2000, id="a plain number"),
        pytest.param("250m", 1, 250, id="thousandths round up to a whole"),
        pytest.param("0.5", 1, 500, id="so does a fraction"),
        pytest.param(".5", 1, 500, id="a fraction without a whole part"),
        pytest.param("5.", 5, 5000, id="a whole part without a fraction"),
        pytest.param("100u", 1, 1, id="millionths round up to a thousandth"),
        pytest.param("1n", 1, 1, id="so do billionths"),
        pytest.param("1Ki", 1024, 1024_000, id="a binary suffix"),
        pytest.param("1.5Gi", 3 << 29, (3 << 29) * 1000, id="a fraction with a binary suffix"),
        pytest.param("1k", 1000, 1000_000, id="a decimal suffix"),
        pytest.param("1E", 10**18, 10**21, id="E alone is a suffix"),
        pytest.param("1E3", 1000, 1000_000, id="E with digits is an exponent"),
        pytest.param("12e-3", 1, 12, id="a negative exponent"),
        pytest.param("+3", 3, 3000, id="a sign"),
        pytest.param("128974848000m", 128974848, 128974848000, id="memory in thousandths, as controllers write it"),
        pytest.param(0, 0, 0, id="YAML's zero"),
        pytest.param(100, 100, 100_000, id="a YAML number keeps its zeros"),
        pytest.param(1.5, 2, 1500, id="a YAML fraction"),
        pytest.param(2**62 + 1, 2**62 + 1, (2**62 + 1) * 1000, id="a YAML number that no float can hold"),
    ],
)
def test_quantities_are_read_exactly_and_rounded_up(text: str | float, units: int, thousandths: int) -> None:
    """Bytes and counts in whole units, cpu in thousandths, never less than what is written."""
    assert parse_quantity(text) == units
    assert parse_milli_quantity(text) == thousandths


@pytest.mark.parametrize(
    "text", ["", "m", "1 Gi", "1gi", "1K", "0x10", "1e", "1.2.3", "--1", "1Kib", "1e31", "٣", "1\n"]
)
def test_anything_else_is_no_quantity(text: str) -> None:
    """The error quotes the text."""
    with pytest.raises(ValueError) as error:
        parse_quantity(text)
    assert repr(text) in str(error.value)
