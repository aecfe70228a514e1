"""The program's log on standard error: as text for people, as one JSON object a line for programs."""

import json
import logging
import sys
import types
from datetime import UTC, datetime
from typing import TextIO, TypeAlias

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


_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


class JsonLines(logging.Formatter):
    """One object a line, always with the same keys: ts, level, logger, msg, and error where there is a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {
            "ts": time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": printable_lines(record.getMessage()),
        }
        if record.exc_info:
            line["error"] = printable_lines(self.formatException(record.exc_info))
        return json.dumps(line)


def as_logged(text: str) -> str:
    """Return a text that ends the program as the log shows it: with JSON as an object, else as it is."""
    if not any(isinstance(each.formatter, JsonLines) for each in logging.getLogger().handlers):
        return text
    fields = {"name": "rebalancer", "levelno": logging.ERROR, "levelname": "ERROR", "msg": "%s", "args": (text,)}
    return JsonLines().format(logging.makeLogRecord(fields))


def set_up(verbosity: int, *, as_json: bool, stream: TextIO | None = None) -> None:
    """Log from now on.

    Args:
        verbosity: 0 for warnings, 1 and 2 for more.
        as_json: whether to write an object a line.
        stream: where to; None for standard error.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if as_json else SafeFormatter(_TEXT))
    logging.basicConfig(handlers=[handler], force=True)
    logging.getLogger("rebalancer").setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
