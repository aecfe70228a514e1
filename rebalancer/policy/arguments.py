"""What arguments are made of: the base of every `Args`, and the pieces that strategies share.

Decoding follows descheduler v0.36.0: keys are strict and case-sensitive, `null` means absent,
`1.0` is an integer but `1.5` and `"5"` are not, and no type is guessed from another.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic.alias_generators import to_camel

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CONTENTION, METRIC_RESOURCE
from rebalancer.cluster.selectors import LabelSelector, parse_label_selector

_QUOTED = 60  # characters of a bad value that a message repeats
_INTEGERS = range(-(2**63), 2**63)
_SECONDS_OF = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"a number is expected, not {str(value).lower()}")  # noqa: TRY004  pydantic wants ValueError
    if isinstance(value, str):
        raise ValueError(f"a number is expected, not the text {value[:_QUOTED]!r}{_as_number(value)}")  # noqa: TRY004
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and value not in _INTEGERS:
        raise ValueError(f"{value} is out of range: a whole number has 64 bits")
    return value


def _as_number(text: str) -> str:
    if percent := re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%\s*", text, re.ASCII):
        return f"; write {percent[1]}, a percentage has no sign"
    if re.fullmatch(r"-?\d{1,18}(?:\.\d{1,9})?", text, re.ASCII):
        return f"; write {text} without quotes"
    if time := re.fullmatch(r"(\d{1,9})(s|m|h|d|w)", text, re.ASCII):
        return f"; write {int(time[1]) * _SECONDS_OF[time[2]]} where seconds are meant"
    return ""


Int = Annotated[int, BeforeValidator(_number)]
"""A whole number of 64 bits; `5.0` is one, `5.5` and `"5"` are not."""

Count = Annotated[int, Field(ge=0), BeforeValidator(_number)]
"""A whole number that is not negative."""

Percent = Annotated[float, BeforeValidator(_number)]
"""A share of a hundred; fractions are allowed.  Its range is checked where it is used."""


class Args(BaseModel):
    """The base of every plugin's arguments: frozen, snake_case here, camelCase in the policy.

    Unknown keys are errors.  A key whose value is null counts as absent.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        strict=True,
        arbitrary_types_allowed=True,  # selectors are msgspec values
        defer_build=True,  # a run pays for the plugins of its policy only
    )

    #: Keys that are accepted with any value and mean nothing (the descheduler tolerates them in arguments).
    ignored_keys: ClassVar[frozenset[str]] = frozenset({"apiVersion", "kind"})

    @model_validator(mode="before")
    @classmethod
    def _drop_absent(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return {} if data is None else data
        known = {*cls.model_fields, *(field.alias for field in cls.model_fields.values())}
        absent = {key for key, value in data.items() if value is None and key in known}
        return {key: value for key, value in data.items() if key not in absent | cls.ignored_keys}


class Part(Args):
    """The base of an object inside arguments: like `Args`, without the tolerated keys."""

    ignored_keys = frozenset()


def part(*carried: str, **fields: Any) -> Any:
    """Return a model of an object with these keys; those that are only carried over may have any value."""
    anything: Any = (object, None)
    return create_model("Part", __base__=Part, **dict.fromkeys(carried, anything), **fields)


class IncludeOrExclude(Part):
    """Names of one kind: either only some, or all but some."""

    include: tuple[str, ...] = Field((), strict=False, description="Only these.")
    exclude: tuple[str, ...] = Field((), strict=False, description="All but these.")

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if self.include and self.exclude:
            raise ValueError("give either include or exclude, not both")
        return self


class Namespaces(IncludeOrExclude):
    """Namespaces by name: either only some, or all but some."""

    def __contains__(self, namespace: str) -> bool:
        return (not self.include or namespace in self.include) and namespace not in self.exclude


class LabelExpression(Part):
    """An expression of a label selector, as editors and helm are told of it; `parse_label_selector` checks it."""

    key: str = Field(description="Of the label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="What is asked of it.")
    values: list[str] = Field([], description="With In and NotIn.")


class LabelSelectorKeys(Part):
    """The keys of a label selector, likewise."""

    match_labels: dict[str, str] = Field({}, description="Labels with their values.")
    match_expressions: list[LabelExpression] = Field([], description="All of these have to hold as well.")


Selector = Annotated[
    LabelSelector,
    BeforeValidator(
        lambda value: parse_label_selector(value) if isinstance(value, Mapping) else value,
        json_schema_input_type=LabelSelectorKeys,
    ),
]
"""A Kubernetes LabelSelector (matchLabels, matchExpressions), parsed."""

Names = Annotated[tuple[str, ...], Field(strict=False)]
"""A list of words."""


_NATIVE = ("cpu", "memory", "pods", "ephemeral-storage", CONTENTION, METRIC_RESOURCE)
_NATIVE_PREFIXES = ("hugepages-", "attachable-volumes-")


def _resource_name(name: str) -> str:
    if name in _NATIVE or name.startswith(_NATIVE_PREFIXES) or "/" in name:
        return name
    raise ValueError(f"{name!r} is not a resource: {', '.join(_NATIVE[:-1])}, or an extended one like example.com/gpu")


def _not_empty(thresholds: dict[str, float]) -> dict[str, float]:
    if not thresholds:
        raise ValueError("give at least one resource with its percentage, like cpu: 20")
    return thresholds


ResourceName = Annotated[str, AfterValidator(_resource_name)]
"""A resource as Kubernetes names it, or `MetricResource`."""

_Share = Annotated[float, Field(ge=0, le=100), BeforeValidator(_number)]
Thresholds = Annotated[dict[ResourceName, _Share], AfterValidator(_not_empty)]
"""A percentage between 0 and 100 for at least one resource."""


#: For JSON schemas; says which arguments are durations.
DURATION_PATTERN = r"^(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+)$"
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
#: Go's longest duration, 292 years, in whole seconds; clocks and locks cannot count further either.
_LONGEST_SECONDS = 2**63 // 10**9


def parse_duration(text: object) -> timedelta:
    """Read a duration such as `90s`, `1h30m` or `0`; raise ValueError if it is none, or too long."""
    parts = _DURATION.findall(text) if isinstance(text, str) else []
    if text != "0" and (not parts or "".join(map("".join, parts)) != text):
        raise ValueError(f"{shown(text)} is not a duration: write a number with a unit, {_as_duration(text)}")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if seconds > _LONGEST_SECONDS:
        raise ValueError(f"{shown(text)} is too long a duration")
    return timedelta(seconds=seconds)


def shown(value: object) -> str:
    """Return a value of a policy as a message shows it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."


def _as_duration(value: object) -> str:
    """Return how the duration is written that a value seems to mean: days and weeks have no unit of their own."""
    if isinstance(value, str) and (long := re.fullmatch(r"(\d{1,6})([dw])", value, re.ASCII)):
        return f"here {int(long[1]) * _SECONDS_OF[long[2]] // 3_600}h; the units are h, m and s"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**9:
        return f"like {value}s or {value}m"
    return "like 90s, 10m or 1h30m"


def duration_text(duration: timedelta) -> str:
    """Return a duration as a policy has it, like `1h30m`; of fractions of a second only the milliseconds."""
    seconds, milliseconds = divmod(round(duration.total_seconds() * 1000), 1000)
    counts = (("h", seconds // 3600), ("m", seconds // 60 % 60), ("s", seconds % 60), ("ms", milliseconds))
    return "".join(f"{count}{unit}" for unit, count in counts if count) or "0s"


Duration = Annotated[
    timedelta,
    BeforeValidator(lambda value: value if isinstance(value, timedelta) else parse_duration(value)),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN}),
]
"""A time such as `90s`, `10m` or `1h30m`."""


def between(shortest: timedelta, longest: timedelta, otherwise: str) -> Callable[[timedelta], timedelta]:
    """Return a validator that a duration is not shorter and not longer; `otherwise` is the message."""

    def checked(given: timedelta) -> timedelta:
        if not shortest <= given <= longest:
            raise ValueError(otherwise)
        return given

    return checked


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a policy may name: a strategy or the evictor, its arguments, and the extension points where it belongs."""

    name: str
    args: type[Args]
    points: frozenset[str]


class PodArgs(Args):
    """The arguments by which most strategies narrow the pods they look at."""

    namespaces: Namespaces = Field(Namespaces(), description="Namespaces to look at: include or exclude.")
    label_selector: Selector | None = Field(None, description="Only pods with matching labels.")

    def selects(self, pod: Pod) -> bool:
        """Return whether namespace and labels of the pod are among those to look at."""
        return pod.namespace in self.namespaces and (
            self.label_selector is None or self.label_selector.matches(pod.labels)
        )
