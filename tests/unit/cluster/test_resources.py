"""What is not a valid quantity, and amounts in words; quantities and requests have properties."""

import pytest

from rebalancer.cluster.resources import describe, parse_quantity


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
