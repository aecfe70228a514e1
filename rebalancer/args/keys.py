"""Keys of labels and taints, as the API server accepts them."""

import re

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_PREFIX = 253
#: Characters in the name of a key, and in the value of a label or a taint.
LONGEST_NAME = 63


def check_key(key: str, what: str, longest: int = LONGEST_NAME) -> str:
    """Return the key.

    Args:
        key: with or without a prefix and a slash.
        what: what messages call it, like `the key of a taint`.
        longest: how many characters the name may have.

    Raises:
        ValueError: the API server would refuse it.
    """
    prefix, slash, name = key.rpartition("/")
    if slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= _LONGEST_PREFIX):
        raise ValueError(f"{key!r} cannot be {what}: {prefix!r}, before the slash, is not a DNS name")
    if not _NAME.fullmatch(name) or len(name) > longest:
        raise ValueError(
            f"{key!r} cannot be {what}: write PREFIX/NAME, "
            f"the name of at most {longest} letters, digits, '-', '_' and '.'"
        )
    return key


def is_value(text: str) -> bool:
    """Return whether a text may be the value of a label or a taint; the empty text may not be, here."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None
