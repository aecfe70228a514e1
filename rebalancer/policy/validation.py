"""Turns pydantic's errors about a part of the document into messages of this program, with line and key."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import getitem
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from rebalancer.policy.arguments import Args, shown
from rebalancer.policy.document import DocumentNode, at
from rebalancer.policy.findings import Findings, did_you_mean

Model = TypeVar("Model", bound=Args)
Location = tuple[int | str, ...]

_KINDS = {
    "text": ("string_type", "string_too_short"),
    "true or false": ("bool_type",),
    "a whole number": ("int_type", "int_from_float"),
    "a number": ("float_type", "finite_number"),
    "a list": ("tuple_type", "list_type"),
    "a map (key: value)": ("dict_type", "model_type", "is_instance_of"),
}
_EXPECTED = {kind: words for words, kinds in _KINDS.items() for kind in kinds}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}
_ELSEWHERE = {
    "tracing": "; traces are asked for by flags, like --otel-collector-endpoint",
    "strategies": "; it is a key of descheduler/v1alpha1",
    **dict.fromkeys(("profiles", "maxNoOfPodsToEvictTotal"), "; it is a key of descheduler/v1alpha2"),
}
_QUOTED_BOOLEANS = ("'true'", "'false'")


def read(model: type[Model], node: DocumentNode, findings: Findings, *, lenient: bool = False) -> Model | None:
    """Read a part of the document; None if there is any error.

    If it is lenient, unknown keys have no effect, and values with an error count as absent, if the rest can be read.
    """
    document = node.plain()
    for _ in range(1 + lenient):
        try:
            return model.model_validate(document, by_alias=True, by_name=False)
        except ValidationError as error:
            for each in error.errors(include_url=False):
                _note(model, node, each, findings, lenient=lenient)
                # An object that lacks a required key counts as absent, unless it is an item of a list.
                lacks = each["type"] == "missing" and isinstance((0, *each["loc"])[-2], str)
                document = _without(document, each["loc"][:-1] if lacks else each["loc"])
    return None


def _note(model: type[Args], node: DocumentNode, error: ErrorDetails, findings: Findings, *, lenient: bool) -> None:
    place, kind = at(node, *error["loc"]).place, error["type"]
    if kind == "extra_forbidden" and lenient:
        findings.unsafe(place, _unknown_key(model, error["loc"], " has no effect"))
    elif kind == "extra_forbidden":
        findings.error(place, _unknown_key(model, error["loc"]))
    elif kind == "missing":
        findings.error(place, f"{str(error['loc'][-1])!r} is missing")
    elif kind in ("value_error", "assertion_error"):
        for line in str(error["ctx"]["error"]).splitlines():
            findings.error(place, line)
    else:
        findings.error(place, _about_value(error))


def _without(document: Any, location: Location) -> Any:
    """Return the document without the value at this location; None if the location cannot be found."""
    try:
        *above, last = location
        parent = reduce(getitem, above, document)
        if isinstance(parent, dict):
            parent.pop(last, None)
        else:
            parent[last] = None
    except (LookupError, TypeError, ValueError):
        return None
    return document


def _unknown_key(model: type[Args], location: Location, effect: str = "") -> str:
    key = str(location[-1])
    here = tuple(_models_at(model, location[:-1]))
    homes = [field.alias for field in _fields(here) if key in _aliases(_models(field.annotation)) and field.alias]
    hint = f"; it belongs under {' or '.join(homes)}" if homes else did_you_mean(key, _aliases(here))
    return f"unknown key {key!r}{effect}{_ELSEWHERE.get(key, hint)}"


def _about_value(error: ErrorDetails) -> str:
    kind, given = error["type"], shown(error["input"])
    if kind in _EXPECTED:
        cure = f"; write {error['input']} without quotes" if kind == "bool_type" and given in _QUOTED_BOOLEANS else ""
        return f"{_EXPECTED[kind]} is expected, not {given}{cure}"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        return f"{given} is out of range: {words} {error['ctx'][bound]}"
    if kind in ("literal_error", "enum"):
        known = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        return f"{given} is not known here{did_you_mean(str(error['input']), known)}"
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, not {given}"


def _models_at(model: type[BaseModel], location: Location) -> Iterable[type[BaseModel]]:
    models: Iterable[type[BaseModel]] = (model,)
    for step in location:
        found = [each for field in _fields(models) if field.alias == step for each in _models(field.annotation)]
        models = found or models
    return models


def _fields(models: Iterable[type[BaseModel]]) -> Iterator[FieldInfo]:
    return (field for each in models for field in each.model_fields.values())


def _aliases(models: Iterable[type[BaseModel]]) -> Sequence[str]:
    return [field.alias for field in _fields(models) if field.alias]


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models inside an annotation such as `tuple[Model, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _models(each)
