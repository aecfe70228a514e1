"""Quantities as Kubernetes writes them."""

import pytest

from rebalancer.cluster.resources import parse_milli_quantity, parse_quantity


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
