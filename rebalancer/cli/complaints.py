"""What goes wrong, told on standard error, and as an exit code."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import click

from rebalancer.cli.logs import as_logged
from rebalancer.errors import Declined, Interrupted, RebalancerError
from rebalancer.untrusted.printable import printable_lines

P = ParamSpec("P")

#: Characters in a line: a value of a document that is repeated may have millions.
_LONGEST_COMPLAINT = 1_000


def exit_on_error(command: Callable[P, None]) -> Callable[P, None]:
    """End the program with the message and the exit code of an error of our own."""

    @wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except Declined as answer:
            complain(str(answer))
            sys.exit(answer.exit_code)
        except (RebalancerError, Interrupted) as error:
            complain(f"Error: {error}")
            sys.exit(error.exit_code)

    return wrapper


def complain(text: str, longest: int = _LONGEST_COMPLAINT) -> None:
    """Say something on standard error, as the log does; where that cannot be written there is nobody left to tell."""
    try:
        click.echo(as_logged(printable_lines(text, longest)), err=True)
    except OSError:
        # What is left in the buffer would be tried again as Python ends, and change the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
