"""Logs that hold foreign text safely: one line a record, whatever a server or a pod's owner has written into it."""

import logging
import types
from typing import TypeAlias

from rebalancer.foreign.printable import printable, printable_lines

_Failure: TypeAlias = tuple[type[BaseException], BaseException, types.TracebackType | None] | tuple[None, None, None]


class SafeFormatter(logging.Formatter):
    """Formats records with what is not printable escaped, and URLs without userinfo."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """Return the line of a record."""
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _Failure) -> str:  # noqa: N802  logging's name
        """Return a traceback, line by line."""
        return printable_lines(super().formatException(ei))
