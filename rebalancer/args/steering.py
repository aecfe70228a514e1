"""What a policy may say about steering: the key `steering`, which is ours."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, field_validator

from rebalancer.args.arguments import Duration, Part, Percent
from rebalancer.args.keys import LONGEST_NAME, check_key

AVOID_KEY = "kube-rebalancer/avoid"
_SECOND = "-more"
_LONGEST_NAME = LONGEST_NAME - len(_SECOND)
_SHORTEST_SETTLE, _LONGEST_SETTLE = timedelta(seconds=1), timedelta(hours=1)


def avoid_keys(key: str) -> tuple[str, str]:
    """Return the keys of the two soft taints: of every avoided node, and of hot nodes beside it.

    A node has no two taints of one key and one effect, so two taints need two keys.
    """
    return key, key + _SECOND


class Steering(Part):
    """How replacements are steered to where they help, by soft taints on the other nodes."""

    key: str = Field(AVOID_KEY, description="Key of the soft taints; the second of a hot node has `-more` appended.")
    settle: Duration = Field(
        timedelta(seconds=60), description="How long a wave waits for its replacements to be bound, at least."
    )
    min_gain: Annotated[Percent, Field(ge=0, le=100)] = Field(
        1.5, description="How many points, in percent of a node, a move has to bring."
    )

    @field_validator("key")
    @classmethod
    def _taintable(cls, key: str) -> str:
        return check_key(key, "the key of a taint", _LONGEST_NAME)

    @field_validator("settle")
    @classmethod
    def _a_time(cls, settle: timedelta) -> timedelta:
        if not _SHORTEST_SETTLE <= settle <= _LONGEST_SETTLE:
            raise ValueError("settle has to be between 1s and 1h")
        return settle
