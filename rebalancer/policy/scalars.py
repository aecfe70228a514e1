"""The plain scalars of YAML 1.1, as the descheduler reads them (framework.md 2.1)."""

import math
import re
from collections.abc import Mapping
from typing import TypeAlias

import yaml

Scalar: TypeAlias = bool | int | float | str | None

#: What YAML's own tags begin with.
TAG = "tag:yaml.org,2002:"

_LONGEST_INTEGER = 80  # digits: enough for 64 bits in base 2, with some room
_BOOLEANS: Mapping[str, bool] = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_INTEGERS = range(-(2**63), 2**64)

#: The tags of plain scalars, with the pattern of each.
PLAIN_SCALARS = (
    (f"{TAG}merge", r"<<"),
    (f"{TAG}null", r"|~|null|Null|NULL"),
    (f"{TAG}bool", "|".join(f"{each}|{each.capitalize()}|{each.upper()}" for each in _BOOLEANS)),
    (f"{TAG}int", r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)"),
    (f"{TAG}float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
)


def scalar(node: yaml.ScalarNode) -> Scalar:
    """Return the value of a scalar.

    Raises:
        ValueError: it has no value: an unknown tag, a number out of range.
    """
    text: str = node.value
    match node.tag.removeprefix(TAG):
        case "null":
            return None
        case "bool" if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        case "int":
            return _integer(text)
        case "float":
            return _float(text)
        case "str" | "merge":  # `<<` means a merge only as a key
            return text
    raise ValueError(node.tag)


def _integer(text: str) -> int:
    digits = text.replace("_", "") if text.isascii() else ""  # Python's `int` accepts the digits of all scripts
    octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
    if 0 < len(digits) <= _LONGEST_INTEGER:
        value = int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)
        if value in _INTEGERS:
            return value
    raise ValueError(text)


def _float(text: str) -> float:
    if not text.isascii():
        raise ValueError(text)
    value = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(value):
        raise ValueError(text)
    return value
