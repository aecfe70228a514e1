"""Resource lists, what is not a valid quantity, and amounts in words; quantities and requests have properties."""

import pytest

from rebalancer.cluster.resources import (
    describe,
    parse_quantity,
    parse_resources,
)


def test_cpu_is_in_millicores_and_everything_else_in_whole_units() -> None:
    parsed = parse_resources({"cpu": "1.5", "memory": "1Ki", "pods": "110", "example.com/gpu": "1"})

    assert parsed == {"cpu": 1500, "memory": 1024, "pods": 110, "example.com/gpu": 1}


def test_a_bad_quantity_names_its_resource() -> None:
    with pytest.raises(ValueError, match="memory: 'lots' is not a valid quantity"):
        parse_resources({"cpu": "1", "memory": "lots"})


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
    assert describe(name, amount) == text


@pytest.mark.parametrize(
    "text", ["", "m", "1 Gi", "1gi", "1K", "0x10", "1e", "1.2.3", "--1", "1Kib", "1e31", "٣", "1\n"]
)
def test_anything_else_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_quantity(text)
    assert repr(text) in str(error.value)
