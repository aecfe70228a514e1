"""What a policy may say about trust over time: the keys `trust`, `windows` and `freeze`, which are ours."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidatorFunctionWrapHandler, WithJsonSchema, WrapValidator, model_validator

from rebalancer.policy.arguments import Count, Duration, Int, Part, Percent, between

_PERCENTAGE = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)%", re.ASCII)
_WHOLE = 100.0


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a number of pods, in percent; of few pods it is one at least, unless it is nothing."""

    percent: float
    at_most: int | None = None

    def of(self, number: int) -> int:
        """Return how many of so many pods it is: rounded down, at least one, and at most as many as are allowed."""
        part = max(1, int(number * self.percent / _WHOLE)) if self.percent else 0
        return part if self.at_most is None else min(part, self.at_most)

    def __str__(self) -> str:
        return f"{self.percent:g}%"


def _count_or_share(value: Any, count: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(value, Share):
        return value
    if not isinstance(value, str) or (found := _PERCENTAGE.fullmatch(value)) is None:
        return count(value)
    if float(found[1]) > _WHOLE:
        raise ValueError(f"{value} is more than 100%")
    return Share(float(found[1]))


Most = Annotated[
    Count,
    WrapValidator(_count_or_share),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\d+(\.\d+)?%$"}]}),
]
"""A number of pods, or a part of them like `25%` (a `Share`)."""


def most(limit: int | Share, number: int) -> int:
    """Return a limit as a number, of so many pods."""
    return limit.of(number) if isinstance(limit, Share) else limit


class BackOff(Part):
    """How long an owner is left alone after a move."""

    first: Duration = Field(timedelta(minutes=30), description="After a cycle that moved pods of it.")
    longest: Duration = Field(timedelta(hours=6), description="At most, however often it was moved.")
    within: Duration = Field(timedelta(hours=6), description="Each further cycle within this time doubles it.")


class Lasting(Part):
    """A load counts where it lasts."""

    cycles: Annotated[Int, Field(ge=1, le=12)] = Field(3, description="A node was over its target in so many ...")
    of: Annotated[Int, Field(ge=1, le=12)] = Field(4, description="... of the last cycles, with this one.")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.cycles > self.of:
            raise ValueError(f"{self.cycles} of {self.of} cycles is more than all: give cycles at most as many as of")
        return self


class Trust(Part):
    """What keeps a balance strategy from acting too often, too soon, or against others; on with selection: relief."""

    enabled: bool = Field(True, description="false: decide by this cycle alone, and remember nothing.")
    wait_ready: bool = Field(
        True, description="An owner's next pod goes only when the replacement of its last one is Ready."
    )
    max_per_owner: Most | None = Field(
        None, description="Most pods of one owner that are away at once, like 25% or 2; of all strategies."
    )
    back_off: BackOff = Field(BackOff(), description="How long an owner is left alone after a move.")
    undone: Duration = Field(
        timedelta(hours=24), description="For so long a move that was undone is not repeated, nor a new one undone."
    )
    young_nodes: Duration = Field(timedelta(minutes=10), description="Nodes that are younger are left alone.")
    after_scaling: Duration = Field(
        timedelta(minutes=10), description="For so long an owner is left alone after its HorizontalPodAutoscaler acted."
    )
    do_not_disrupt: Literal["balance", "all", "ignore"] = Field(
        "balance", description="Which strategies heed safe-to-evict: false and do-not-disrupt."
    )
    ready_within: Annotated[
        Duration,
        AfterValidator(between(timedelta(seconds=10), timedelta(hours=1), "readyWithin has to be between 10s and 1h")),
    ] = Field(
        timedelta(minutes=5), description="A replacement that takes longer counts as failed, and stops its owner."
    )
    restart: Literal[True, False, "annotated"] = Field(
        False,
        description="Move the only pod of a Deployment by restarting its rollout, where a second pod is Ready before "
        "the first one goes; annotated: only of Deployments with kube-rebalancer/restart: true.",
    )
    move_price: Annotated[Percent, Field(ge=0, le=1000)] = Field(
        6.0, description="Points over the target x hours that an ordinary move has to bring; 0: moves cost nothing."
    )
    lasting: Lasting | None = Field(
        None, description="A node counts as over only if it was so in several cycles; absent: in this one."
    )
