"""What a policy may say about how pods are moved: the keys `steering`, `hold` and `trust`, which are ours."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, WrapValidator, field_validator, model_validator

from rebalancer.cluster.selectors import key_fault
from rebalancer.policy.arguments import Count, Duration, Int, Part, Percent, between, parse_duration

#: Key of the soft taint of a held node, and of the annotation that says until when.
HOLD_KEY = "kube-rebalancer/hold"
_held_for = between(timedelta(seconds=1), timedelta(hours=24), "a node is held for 1s to 24h")
Hold = Annotated[Duration, AfterValidator(_held_for)]
"""How long an emptied node carries a soft taint."""


def parse_hold(text: str) -> timedelta:
    """Read such a time; raises ValueError if it is not a duration, or too short or too long."""
    return _held_for(parse_duration(text))


#: Key of the label, and of the soft taint, of a node under pressure, unless marking rules give another.
PRESSURE_KEY = "kube-rebalancer/pressure"
#: Key of the soft taint of an avoided node.
AVOID_KEY = "kube-rebalancer/avoid"
_SECOND = "-more"
_LONGEST_NAME = 63 - len(_SECOND)


def avoid_keys(key: str) -> tuple[str, str]:
    """Return the keys of the soft taints of avoided nodes, and of hot ones beside it: a node has one taint of a key."""
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
        return f"{self.percent:g}%" + ("" if self.at_most is None else f" (at most {self.at_most})")


def _count_or_share(value: Any, count: Callable[[Any], Any]) -> Any:
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
