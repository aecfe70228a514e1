"""Standard error: the log, as text for people or as one JSON object a line, and what goes wrong, with its exit code."""

import errno
import json
import logging
import os
import sys
import time
import types
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TextIO, TypeAlias

import click

from rebalancer.errors import Declined, Interrupted, RebalancerError
from rebalancer.untrusted.printable import printable, printable_lines

_Failure: TypeAlias = tuple[type[BaseException], BaseException, types.TracebackType | None] | tuple[None, None, None]


class SafeFormatter(logging.Formatter):
    """Formats records: unprintable characters are escaped, URLs lose their userinfo, times are in UTC."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """Return the line of a record."""
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _Failure) -> str:  # noqa: N802  logging's name
        """Return a traceback, line by line."""
        return printable_lines(super().formatException(ei))


P = ParamSpec("P")
#: Characters in a line: a value of a document that is repeated may have millions.
_LONGEST_COMPLAINT = 1_000
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
#: Where a disk takes no more.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


class JsonLines(SafeFormatter):
    """One object a line, always with the same keys: ts, level, logger, msg, and error where there is a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {
            "ts": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": printable_lines(record.getMessage()),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def as_logged(text: str) -> str:
    """Return a text that ends the program as the log shows it: with JSON as an object, else as it is."""
    if not any(isinstance(each.formatter, JsonLines) for each in logging.getLogger().handlers):
        return text
    fields = {"name": "rebalancer", "levelno": logging.ERROR, "levelname": "ERROR", "msg": "%s", "args": (text,)}
    return JsonLines().format(logging.makeLogRecord(fields))


def set_up(verbosity: int, *, as_json: bool) -> None:
    """Log from now on: warnings, and more with a verbosity of 1 and 2."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else SafeFormatter(_TEXT))
    logging.basicConfig(handlers=[handler], force=True)
    logging.getLogger("rebalancer").setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])


def exit_on_error(command: Callable[P, None]) -> Callable[P, None]:
    """End the program with the message and the exit code of an error of our own."""

    @wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (RebalancerError, Interrupted) as error:
            complain(str(error) if isinstance(error, Declined) else f"Error: {error}")
            sys.exit(error.exit_code)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            complain(f"Error: the output cannot be written: {error.strerror}")
            _give_up(sys.stdout)
            sys.exit(1)

    return wrapper


def complain(*texts: str, longest: int = _LONGEST_COMPLAINT) -> None:
    """Say something on standard error, as the log does; where that cannot be written there is nobody left to tell."""
    try:
        for text in texts:
            click.echo(as_logged(printable_lines(text, longest)), err=True)
    except OSError:
        _give_up(sys.stderr)


def _give_up(stream: TextIO) -> None:
    # What is left in the buffer would be tried again as Python ends, and change the exit code.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
