"""Quantities agree with a reading of Kubernetes' rules in fractions."""

from contextlib import suppress
from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.resources import parse_milli_quantity, parse_quantity

BINARY = {suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
DECIMAL = {
    suffix: Fraction(1000) ** power
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
DIGITS = st.text("0123456789", min_size=1, max_size=8)
NUMBERS = st.one_of(
    DIGITS, st.builds("{}.{}".format, DIGITS, DIGITS), st.builds(".{}".format, DIGITS), st.builds("{}.".format, DIGITS)
)


def value_of(number: str) -> Fraction:
    whole, _, fraction = number.partition(".")
    return Fraction(int(whole or "0")) + Fraction(int(fraction or "0"), 10 ** len(fraction))


def units_and_thousandths(text: str) -> tuple[int, int]:
    return parse_quantity(text), parse_milli_quantity(text)


def rounded_up(value: Fraction) -> tuple[int, int]:
    return ceil(value), ceil(value * 1000)


@given(st.sampled_from(("", "+")), NUMBERS, st.sampled_from(sorted((BINARY | DECIMAL).items())))
def test_a_suffix_is_a_factor_and_fractions_are_rounded_up(sign, number, suffix):
    name, factor = suffix
    assert units_and_thousandths(sign + number + name) == rounded_up(value_of(number) * factor)


@given(NUMBERS, st.sampled_from("eE"), st.sampled_from(("", "+", "-")), st.integers(0, 18))
def test_an_exponent_is_a_power_of_ten(number, letter, sign, exponent):
    value = value_of(number) * Fraction(10) ** int(f"{sign}{exponent}")

    assert units_and_thousandths(f"{number}{letter}{sign}{exponent}") == rounded_up(value)


@given(st.just(0.0) | st.floats(1e-9, 1e15))
def test_numbers_of_yaml_are_read_as_they_stand(number):
    """A fraction is not an error, and it is rounded up as any other."""
    assert parse_quantity(number) == ceil(Fraction(str(number)))


@given(st.text(max_size=12))
def test_every_text_is_a_quantity_or_refused(text):
    with suppress(ValueError):
        assert parse_quantity(text) is not None
