"""YAML or JSON text, read into values that know their place in it; also the text inside a ConfigMap.

Scalars follow YAML 1.1 as the descheduler reads it (framework.md 2.1): `yes` and `off` are booleans, `010` is octal,
`1e3` is a number; dates and `1:30` are text.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType
from typing import Any, TypeAlias

import yaml

from rebalancer.policy.findings import Findings, Place
from rebalancer.untrusted.documents import DEEPEST, Unreadable, check_yaml

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML without libyaml: the same result, but slower
    from yaml import SafeLoader  # type: ignore[assignment]  # the two have no common type in the stubs

Scalar: TypeAlias = bool | int | float | str | None
_TAG = "tag:yaml.org,2002:"  # what YAML's own tags begin with
_BOOLEANS: Mapping[str, bool] = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_INTEGERS = range(-(2**63), 2**64)

#: The tags of plain scalars, with the pattern of each.
_PLAIN_SCALARS = {
    "merge": r"<<",
    "null": r"|~|null|Null|NULL",
    "bool": "|".join(f"{each}|{each.capitalize()}|{each.upper()}" for each in _BOOLEANS),
    "int": r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}


def _scalar(node: yaml.ScalarNode) -> Scalar:
    """Return the value of a scalar; raises ValueError if it has none: an unknown tag, a number out of range."""
    text: str = node.value
    match node.tag.removeprefix(_TAG):
        case "null":
            return None
        case "bool" if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        case "int":
            return _integer(text)
        case "float":
            return _float(text)
        case "str" | "merge":  # `<<` means a merge only as a key
            return text
    raise ValueError(node.tag)


def _integer(text: str) -> int:
    digits = text.replace("_", "") if text.isascii() else ""  # Python's `int` accepts the digits of all scripts
    octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
    value = int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)
    if value not in _INTEGERS:
        raise ValueError(text)
    return value


def _float(text: str) -> float:
    if not text.isascii():
        raise ValueError(text)
    value = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(value):
        raise ValueError(text)
    return value


_QUOTED = 40  # characters of a bad value that a message repeats
_MOST_NODES = 100_000  # aliases multiply: a few lines can stand for billions of nodes


class _Loader(SafeLoader):
    """Composes nodes, and knows the plain scalars that this reader understands."""

    # Under the key None: tried for every scalar, whatever its first character.
    yaml_implicit_resolvers = {  # noqa: RUF012  PyYAML's name and type
        None: [(_TAG + name, re.compile(rf"(?:{pattern})\Z")) for name, pattern in _PLAIN_SCALARS.items()]
    }


class Dumper(yaml.SafeDumper):
    """Writes what this reader reads back: it quotes each text that stands for something else."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value of the document, and where its author wrote it."""

    value: "Scalar | Mapping[str, DocumentNode] | tuple[DocumentNode, ...]"
    place: Place

    def entries(self) -> "Mapping[str, DocumentNode]":
        """Return the entries of a map; empty if this is not a map."""
        return self.value if isinstance(self.value, Mapping) else MappingProxyType({})

    def items(self) -> "tuple[DocumentNode, ...]":
        """Return the items of a list; empty if this is not a list."""
        return self.value if isinstance(self.value, tuple) else ()

    def at(self, *keys: str) -> "DocumentNode | None":
        """Return the value under these keys; None if it is absent or null."""
        node: DocumentNode | None = self
        for key in keys:
            node = node.entries().get(key) if node else None
        return node if node and node.value is not None else None

    def plain(self, *, nulls: bool = True) -> Any:
        """Return the value as fresh dicts and lists; nulls of maps, which mean absence, may be left out."""
        if isinstance(self.value, Mapping):
            found = self.value.items()
            return {key: each.plain(nulls=nulls) for key, each in found if nulls or each.value is not None}
        if isinstance(self.value, tuple):
            return [each.plain(nulls=nulls) for each in self.value]
        return self.value


def node_of(value: Any, place: Place) -> DocumentNode:
    """Return plain values as a node, all at one place; a node among them keeps its own."""
    match value:
        case DocumentNode():
            return value
        case Mapping():
            return DocumentNode({key: node_of(each, place) for key, each in value.items()}, place)
        case list() | tuple():
            return DocumentNode(tuple(node_of(each, place) for each in value), place)
    return DocumentNode(value, place)


TOP = Place("", 1)


def read_document(text: str, findings: Findings) -> DocumentNode:
    """Read the first document of a text; an empty one, or one with an error, which goes to the findings, is a null."""
    try:
        events = yaml.parse(text, Loader=_Loader)
        check_yaml(takewhile(lambda event: not isinstance(event, yaml.DocumentEndEvent), events))
        _look_further(events, findings)
        root = next(yaml.compose_all(text, _Loader), None)
        return _Reader(findings).read(root, TOP) if root else DocumentNode(None, TOP)
    except Unreadable as error:
        findings.error(Place("", error.line), str(error))
    except yaml.YAMLError as error:
        findings.error(_mark(error), f"this is neither YAML nor JSON: {_reason(error)}")
    return DocumentNode(None, TOP)


def _look_further(events: Iterator[yaml.Event], findings: Findings) -> None:
    try:
        start, root = next(events, None), next(events, None)
    except yaml.YAMLError as error:
        findings.ignored(_mark(error), "only the first document of the file counts; the rest has no effect")
        return
    empty = isinstance(root, yaml.ScalarEvent) and not root.value
    if isinstance(start, yaml.DocumentStartEvent) and root and not empty:
        findings.ignored(Place("", _line(root)), "only the first document of the file counts; this one has no effect")


def _mark(error: yaml.YAMLError) -> Place:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return Place("", mark.line + 1 if mark else 1)


def _reason(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        cure = "; indent with spaces, not tabs" if "cannot start any token" in error.problem else ""
        return ", ".join(part for part in (error.context, error.problem) if part) + cure
    return str(error).splitlines()[0]


class _Reader:
    """Turns PyYAML's nodes into ours, and notes errors and duplicate keys."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._count = 0

    def read(self, node: yaml.Node, place: Place, depth: int = 0) -> DocumentNode:
        """Read a node and all nodes below it; a part that cannot be read becomes a null."""
        self._count += 1
        if depth > DEEPEST or self._count > _MOST_NODES:
            raise Unreadable("it is nested too deep, or has too many values, by its aliases", place.line)
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return DocumentNode(self._map(node, place, depth), place)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            items = enumerate(node.value)
            read = tuple(self.read(each, place.item(i, _line(each)), depth + 1) for i, each in items)
            return DocumentNode(read, place)
        if isinstance(node, yaml.ScalarNode):
            return DocumentNode(self._scalar(node, place), place)
        self._findings.error(place, f"the tag {node.tag} means nothing here")
        return DocumentNode(None, place)

    def _map(self, node: yaml.MappingNode, place: Place, depth: int) -> Mapping[str, DocumentNode]:
        merged: dict[str, DocumentNode] = {}
        own: dict[str, DocumentNode] = {}
        for key_node, value in node.value:
            line = _line(key_node)
            if key_node.tag == f"{_TAG}merge":
                for each in self._merged(value, place, depth):
                    merged = {**each, **merged}
                continue
            key = self._key(key_node, place)
            if key is None:
                continue
            if key in own:
                first = own[key].place.line
                message = f"this key is given twice (first in line {first}); the last one counts"
                self._findings.ignored(place.key(key, line), message)
            own[key] = self.read(value, place.key(key, line), depth + 1)
        return merged | own

    def _merged(self, value: yaml.Node, place: Place, depth: int) -> Iterator[Mapping[str, DocumentNode]]:
        sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for each in sources:
            if isinstance(each, yaml.MappingNode) and depth < DEEPEST:
                yield self.read(each, place, depth + 1).entries()
            else:
                self._findings.error(Place(place.path, _line(each)), "only a map can be merged with <<")

    def _key(self, node: yaml.Node, place: Place) -> str | None:
        if isinstance(node, yaml.ScalarNode):
            value = self._scalar(node, Place(place.path, _line(node)))
            if value is not None:
                return str(value).lower() if isinstance(value, bool) else str(value)
        self._findings.error(Place(place.path, _line(node)), "a key is a word, not a list, a map or nothing")
        return None

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Scalar:
        try:
            return _scalar(node)
        except ValueError:
            self._findings.error(place, _unusable(node))
            return None


def _unusable(node: yaml.ScalarNode) -> str:
    kind = node.tag.removeprefix(_TAG)
    if kind.startswith("!"):
        text = f"{kind} {node.value}".strip()[:_QUOTED]
        return f"YAML takes {kind[:_QUOTED]} for a tag, which means nothing here; write {text!r} if it is text"
    kinds = {"int": "whole number of 64 bits", "float": "finite number"}
    return f"{node.value[:_QUOTED]!r} is not a {kinds.get(kind, kind)}"


def _line(node: yaml.Node | yaml.Event) -> int:
    mark: Any = node.start_mark  # the C parser always gives one
    return int(mark.line) + 1


def at(node: DocumentNode, *steps: str | int) -> DocumentNode:
    """Return the node at these steps, or the nearest one above it."""
    for step in steps:
        children = node.items()
        if isinstance(step, str):
            node = node.entries().get(step, node)
        elif step < len(children):
            node = children[step]
    return node


def items(node: DocumentNode, key: str) -> tuple[DocumentNode, ...]:
    """Return the items of the list under this key; empty if the key is absent or not a list."""
    found = node.at(key)
    return found.items() if found else ()


@dataclass(frozen=True, slots=True)
class WantedDocument:
    """What is looked for in a ConfigMap: a `kind`, or the group of an apiVersion with its slash; and its noun."""

    kind: str
    group: str
    noun: str

    def matches(self, text: str) -> bool:
        """Return whether the text is such a document, by its kind or its apiVersion."""
        document = read_document(text, Findings())
        kind, version = document.at("kind"), document.at("apiVersion")
        named = kind is not None and kind.value == self.kind
        return named or (version is not None and str(version.value).startswith(self.group))


def wanted_document(text: str, findings: Findings, wanted: WantedDocument) -> DocumentNode:
    """Return a YAML document, or the wanted one in a ConfigMap; an empty node, and an error in the findings, for none.

    The only text of a ConfigMap is always taken.  Of a block, as kubectl writes it, lines keep their own numbers.
    """
    document = read_document(text, findings)
    kind, data = document.at("kind"), document.at("data")
    if kind is None or kind.value != "ConfigMap":
        return document
    entries = {key: each for key, each in data.entries().items() if isinstance(each.value, str)} if data else {}
    several = len(entries) != 1
    found = {key: each for key, each in entries.items() if wanted.matches(str(each.value))} if several else entries
    if len(found) == 1:
        return read_document(_as_numbered_outside(next(iter(found.values())), text), findings)
    if found:
        problem = f"of this ConfigMap {' and '.join(found)} are each a {wanted.noun}; give one of them"
    else:
        keys = f"its keys are {', '.join(entries)}" if entries else "it has no text"
        problem = f"no text in the `data` of this ConfigMap is a {wanted.noun}; {keys}"
    findings.error((data or document).place, problem)
    return DocumentNode(None, document.place)


def _as_numbered_outside(entry: DocumentNode, text: str) -> str:
    inside = str(entry.value)
    lines, start = text.splitlines(), entry.place.line
    shown = [line.strip() for line in inside.splitlines()]
    is_block = [line.strip() for line in lines[start : start + len(shown)]] == shown
    return "\n" * start + inside if is_block else inside
