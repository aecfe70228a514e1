"""How long emptied nodes are kept empty: the policy's key `hold`, which is ours, and the option `--hold`."""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator

from rebalancer.policy.arguments import Duration, parse_duration

#: Key of the soft taint of a held node, and of the annotation that says until when.
HOLD_KEY = "kube-rebalancer/hold"
_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(hours=24)


def _held_for(duration: timedelta) -> timedelta:
    if not _SHORTEST <= duration <= _LONGEST:
        raise ValueError("a node is held for 1s to 24h")
    return duration


Hold = Annotated[Duration, AfterValidator(_held_for)]
"""How long an emptied node carries a soft taint."""


def parse_hold(text: str) -> timedelta:
    """Read such a time.

    Raises:
        ValueError: it is not a duration, or too short or too long.
    """
    return _held_for(parse_duration(text))
