"""Retry-After: how long a server asks to wait, as seconds or as a date (RFC 9110, 10.2.3)."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]+", re.ASCII)


def retry_after(headers: Mapping[str, str], details: float = 0) -> float | None:
    """Return the seconds to wait before the next try; None where the server gives no usable value.

    Args:
        headers: of the answer; a date is compared with its `Date`, since the server's clock may differ from ours.
        details: the older place, `retryAfterSeconds` in the details of a Status.
    """
    text = headers.get("Retry-After", "").strip()
    found = float(text) if _SECONDS.fullmatch(text) else _until(text, headers.get("Date", ""))
    return next((seconds for seconds in (found, details) if seconds > 0), None)


def _until(text: str, date: str) -> float:
    when = _time(text)
    return (when - (_time(date) or datetime.now(UTC))).total_seconds() if when else 0


def _time(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
