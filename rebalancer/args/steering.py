"""What a policy may say about steering: the key `steering`, which is ours."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import Field, field_validator

from rebalancer.args.arguments import Duration, Part, Percent

AVOID_KEY = "kube-rebalancer/avoid"
_SECOND = "-more"
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 63 - len(_SECOND)
_LONGEST_PREFIX = 253
_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(hours=1)


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
        prefix, slash, name = key.rpartition("/")
        if slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= _LONGEST_PREFIX):
            raise ValueError(f"{key!r} cannot be the key of a taint: {prefix!r}, before the slash, is not a DNS name")
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            raise ValueError(
                f"{key!r} cannot be the key of a taint: write PREFIX/NAME, "
                f"the name of at most {_LONGEST_NAME} letters, digits, '-', '_' and '.'"
            )
        return key

    @field_validator("settle")
    @classmethod
    def _a_time(cls, settle: timedelta) -> timedelta:
        if not _SHORTEST <= settle <= _LONGEST:
            raise ValueError("settle has to be between 1s and 1h")
        return settle
