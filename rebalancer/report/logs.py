"""Logs that are safe with foreign text: one line for each record, whatever a server or a pod's owner wrote into it."""

import logging
import types
from datetime import UTC, datetime
from typing import TypeAlias

from rebalancer.untrusted.printable import printable, printable_lines

_Failure: TypeAlias = tuple[type[BaseException], BaseException, types.TracebackType | None] | tuple[None, None, None]


def time_of(record: logging.LogRecord) -> str:
    """Return when a record was made, as RFC 3339 writes it, in UTC and to the millisecond."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class SafeFormatter(logging.Formatter):
    """Formats records: unprintable characters are escaped, URLs lose their userinfo, times are in UTC."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802  logging's
        """Return the time of a record."""
        return time_of(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """Return the line of a record."""
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _Failure) -> str:  # noqa: N802  logging's name
        """Return a traceback, line by line."""
        return printable_lines(super().formatException(ei))
