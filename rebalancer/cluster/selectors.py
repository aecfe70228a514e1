"""Label selectors, node selector terms and their string forms, by Kubernetes' own rules.

Sources: the Kubernetes documentation (Labels and Selectors; Assigning Pods to Nodes) and the API's validation.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_MAX_INTEGER = 2**63 - 1
_MAX_NAME = 63
_MAX_PREFIX = 253

Labels = Mapping[str, str]


class Requirement(msgspec.Struct, frozen=True, gc=False, order=True):
    """One condition on one key: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Return whether it holds: `NotIn` and `DoesNotExist` do without the key, `Gt` and `Lt` only for numbers."""
        return _OPERATORS[self.operator](labels.get(self.key), self.values)


def _greater(values: tuple[str | None, ...], others: tuple[str | None, ...]) -> bool:
    here, there = _integer(*values), _integer(*others)
    return here is not None and there is not None and here > there


def _integer(*texts: str | None) -> int | None:
    """Return the only text as a 64-bit integer; None if it is not one, or if there is not exactly one text."""
    text = texts[0] if len(texts) == 1 else None
    number = int(text) if text is not None and _INTEGER.fullmatch(text) else None
    return number if number is not None and -_MAX_INTEGER - 1 <= number <= _MAX_INTEGER else None


_OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _greater((value,), values),
    "Lt": lambda value, values: _greater(values, (value,)),
}


class LabelSelector(msgspec.Struct, frozen=True, gc=False):
    """Requirements that must all hold, sorted by key; a selector without any matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Return whether these labels satisfy every requirement."""
        for each in self.requirements:  # noqa: SIM110  all() takes twice as long
            if not _OPERATORS[each.operator](labels.get(each.key), each.values):
                return False
        return True

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def narrowed(self, labels: Labels, equal: Iterable[str], apart: Iterable[str] = ()) -> "LabelSelector":
        """Return this selector narrowed by `matchLabelKeys` and `mismatchLabelKeys` of a pod with these labels."""
        keys = (*((key, "In") for key in equal), *((key, "NotIn") for key in apart))
        extra = {Requirement(key, operator, (labels[key],)) for key, operator in keys if key in labels}
        return LabelSelector(tuple(sorted({*self.requirements, *extra}))) if extra else self


EVERYTHING = LabelSelector()


def check_label_key(key: str) -> None:
    """Raise ValueError unless `key` is a qualified name such as `app` or `example.com/app`."""
    if fault := key_fault(key):
        raise ValueError(f"{key!r} is not a label key: {fault}")


def key_fault(key: str, longest: int = _MAX_NAME) -> str:
    """Return why this cannot be a key like `app` or `example.com/app`, of which app is `longest`; empty if it can."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= _MAX_PREFIX):
        return f"{prefix!r}, before the slash, is not a DNS name"
    if not _NAME.fullmatch(name) or len(name) > longest:
        return (
            f"a name has at most {longest} letters, digits, '-', '_' and '.', "
            "and begins and ends with a letter or digit; PREFIX/ may stand before it"
        )
    return ""


def check_label_value(value: str) -> None:
    """Raise ValueError unless `value` is a label value: empty, or like a label key's name."""
    if value and (not _NAME.fullmatch(value) or len(value) > _MAX_NAME):
        raise ValueError(f"{value!r} is not a label value")


_FORM = "a label selector has matchLabels and matchExpressions: key, operator (In, NotIn, Exists, DoesNotExist), values"


class _Expression(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class _Selector(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Expression] | None = None


def parse_label_selector(value: Mapping[str, Any]) -> LabelSelector:
    """Read a LabelSelector object; raises ValueError for an unknown key or operator, or bad keys or values."""
    try:
        asked = msgspec.convert(value, _Selector)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}; {_FORM}") from None
    requirements = [_label_requirement(key, "In", (text,)) for key, text in (asked.match_labels or {}).items()]
    requirements += [
        _label_requirement(each.key, each.operator, each.values or ()) for each in asked.match_expressions or ()
    ]
    return LabelSelector(tuple(sorted(requirements)))


def _label_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if (operator in ("In", "NotIn")) != bool(values):
        raise ValueError(f"{operator} for {key!r} {'takes no' if values else 'needs'} values")
    check_label_key(key)
    for each in values:
        check_label_value(each)
    return Requirement(key, operator, values)


_TERM = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[^\s!=,()<>]+)
      | (?P<key>[^\s!=,()<>]+)\s*(?:
            (?P<set>notin|in)\s*\((?P<values>[^()]*)\)
          | (?P<equal>==|=|!=)\s*(?P<value>[^\s!=,()<>]*)
          | (?P<compare>[<>])\s*(?P<number>[+-]?\d+)
        )?
    )\s*""",
    re.VERBOSE,
)


def parse_selector_text(text: str) -> LabelSelector:
    """Read what `kubectl --selector` takes: `a=b,c in (d,e),!f,g>1`; raises ValueError, which quotes the wrong part."""
    requirements = []
    position = 0
    while position < len(text) and text.strip():
        match = _TERM.match(text, position)
        ended = match is not None and (match.end() == len(text) or text[match.end()] == ",")
        if match is None or not ended or (match.end() == len(text) - 1):
            raise ValueError(f"{text!r} is not a label selector (at {text[position:]!r}): try a=b,c in (d,e),!f")
        requirements.append(_text_requirement(match))
        position = match.end() + 1
    return LabelSelector(tuple(sorted(requirements)))


def _text_requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return _label_requirement(match["absent_key"], "DoesNotExist", ())
    key = match["key"]
    if match["set"]:
        values = tuple(each.strip() for each in match["values"].split(","))
        return _label_requirement(key, "In" if match["set"] == "in" else "NotIn", values)
    if match["equal"]:
        return _label_requirement(key, "NotIn" if match["equal"] == "!=" else "In", (match["value"],))
    if match["compare"]:
        check_label_key(key)
        return Requirement(key, "Gt" if match["compare"] == ">" else "Lt", (match["number"],))
    return _label_requirement(key, "Exists", ())


class NodeSelectorTerm(
    msgspec.Struct, frozen=True, gc=False, rename={"expressions": "matchExpressions", "fields": "matchFields"}
):
    """Conditions on a node's labels and fields, all of which must hold; an empty term matches no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels, name: str) -> bool:
        """Return whether a node satisfies the term; fields but `metadata.name`, and unknown operators, never do."""
        if not self.expressions and not self.fields:
            return False
        return all(_holds(each, labels) for each in self.expressions) and all(
            each.key == "metadata.name" and each.operator in ("In", "NotIn") and _holds(each, {each.key: name})
            for each in self.fields
        )


def _holds(requirement: Requirement, labels: Labels) -> bool:
    return requirement.operator in _OPERATORS and requirement.matches(labels)


def any_term_matches(terms: Iterable[NodeSelectorTerm], labels: Labels, name: str) -> bool:
    """Return whether some term matches the node; terms are alternatives."""
    return any(term.matches(labels, name) for term in terms)
