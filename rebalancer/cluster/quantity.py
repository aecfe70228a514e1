"""Kubernetes quantities ("250m", "1Gi", "1e3") as integers.

Source: the Kubernetes documentation, Quantity: a signed decimal number with a binary suffix (Ki .. Ei), a decimal
one (n, u, m, k .. E) or a decimal exponent.  Fractions are rounded up, as Quantity.Value() does.
"""

import re
from functools import lru_cache

_QUANTITY = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LARGEST_EXPONENT = 30
_LONGEST = 100  # characters: far more than any number that fits 64 bits
_SHOWN = 20
_MILLI = 3


def parse_quantity(text: str | float) -> int:
    """Return the quantity in whole units, rounded up: bytes of memory, a count of pods.

    Raises:
        ValueError: the text is not a valid quantity.
    """
    return _scaled(_text(text), 0)


def parse_milli_quantity(text: str | float) -> int:
    """Return the quantity in thousandths, rounded up: millicores of cpu.

    Raises:
        ValueError: the text is not a valid quantity.
    """
    return _scaled(_text(text), _MILLI)


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else str(value)


@lru_cache(maxsize=65_536)
def _scaled(text: str, shift: int) -> int:
    if len(text) > _LONGEST:
        raise ValueError(f"{text[:_SHOWN]!r}... is not a valid quantity: it has {len(text)} characters")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a valid quantity (examples: 250m, 1.5, 2Gi)")
    sign, number, exponent, suffix = match.groups()
    whole, _, fraction = number.partition(".")
    power = int(exponent[1:]) if exponent else _DECIMAL.get(suffix or "", 0)
    if abs(power) > _LARGEST_EXPONENT:
        raise ValueError(f"{text!r} is not a valid quantity: its exponent is out of range")
    amount = int(whole + fraction or "0") << _BINARY.get(suffix or "", 0)
    return _rounded_up(-amount if sign == "-" else amount, power + shift - len(fraction))


def _rounded_up(amount: int, power: int) -> int:
    if power >= 0:
        return amount * int(10**power)
    return -(-amount // int(10**-power))
