"""What a policy may say about taints on nodes: the keys `steering` and `hold`, which are ours."""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from rebalancer.cluster.selectors import key_fault
from rebalancer.policy.arguments import Duration, Part, Percent, between, parse_duration

#: Key of the soft taint of a held node, and of the annotation that says until when.
HOLD_KEY = "kube-rebalancer/hold"
_held_for = between(timedelta(seconds=1), timedelta(hours=24), "a node is held for 1s to 24h")
Hold = Annotated[Duration, AfterValidator(_held_for)]
"""How long an emptied node carries a soft taint."""


def parse_hold(text: str) -> timedelta:
    """Read such a time.

    Raises:
        ValueError: it is not a duration, or too short or too long.
    """
    return _held_for(parse_duration(text))


#: Key of the label, and of the soft taint, of a node under pressure, unless marking rules give another.
PRESSURE_KEY = "kube-rebalancer/pressure"

#: Key of the soft taint of an avoided node.
AVOID_KEY = "kube-rebalancer/avoid"
_SECOND = "-more"
_LONGEST_NAME = 63 - len(_SECOND)


def avoid_keys(key: str) -> tuple[str, str]:
    """Return the keys of the two soft taints: of every avoided node, and of hot nodes beside it.

    A node has no two taints of one key and one effect, so two taints need two keys.
    """
    return key, key + _SECOND


class Steering(Part):
    """How replacements are steered to where they help, by soft taints on the other nodes."""

    key: str = Field(AVOID_KEY, description="Key of the soft taints; the second of a hot node has `-more` appended.")
    settle: Annotated[
        Duration,
        AfterValidator(between(timedelta(seconds=1), timedelta(hours=1), "settle has to be between 1s and 1h")),
    ] = Field(timedelta(seconds=60), description="How long a wave waits for its replacements to be bound, at least.")
    min_gain: Annotated[Percent, Field(ge=0, le=100)] = Field(
        1.5, description="How many points, in percent of a node, a move has to bring."
    )

    @field_validator("key")
    @classmethod
    def _taintable(cls, key: str) -> str:
        if fault := key_fault(key, _LONGEST_NAME):
            raise ValueError(f"{key!r} cannot be the key of a taint: {fault}")
        if key == HOLD_KEY:
            raise ValueError(f"{key!r} is the key of the taints that hold emptied nodes: give steering another one")
        return key
