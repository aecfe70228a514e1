"""The objects of one kind, collected page by page; one that cannot be read becomes a stand-in that protects."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from rebalancer.kube.wire.pages import ListPage, items_of
from rebalancer.kube.wire.parts import NamedObject, Naming
from rebalancer.untrusted.documents import Copied, Unreadable, decode_json, in_words

W = TypeVar("W")
T = TypeVar("T")

#: What decoding and converting an object may raise.
_MOST_NAMES = 3
_MALFORMED = (ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


@dataclass(frozen=True, slots=True)
class Kind(Generic[W, T]):
    """What is needed to collect the objects of a kind.

    Attributes:
        name: as documents spell it.
        wire: what an object is decoded as.
        convert: makes the model of it; raises ValueError where it cannot.
        key: what identifies an object among its kind; None for a stand-in of unknown identity.
        stand_in: makes what stands for an object that cannot be read, from its bytes and the problem; raises
            ValueError where nothing can stand for it.
        meaning: text that says what becomes of an object with a stand-in; empty where the stand-in itself says so.
        otherwise: text that says what becomes of an object without one.
    """

    name: str
    wire: type[W]
    convert: Callable[[W], T]
    key: Callable[[T], Hashable]
    stand_in: Callable[[bytes, str], T] | None = None
    meaning: str = ""
    otherwise: str = "ignored"


class ListCollector(Generic[W, T]):
    """Collects the objects of one kind; a malformed one becomes a stand-in or is left out, with a warning.

    Attributes:
        items: the objects.
        lost: how many were left out.
        more: how many are on the pages to come; None where the server does not say.
    """

    def __init__(self, kind: Kind[W, T]) -> None:
        self.items: list[T] = []
        self.lost = 0
        self.more: int | None = None
        self._kind = kind
        self._page = msgspec.json.Decoder(ListPage[kind.wire])  # type: ignore[name-defined]  # a type at run time
        self._item = msgspec.json.Decoder(kind.wire)
        self._malformed_ones: list[tuple[str, str]] = []

    @property
    def warnings(self) -> list[str]:
        """About malformed ones; those of which the same is to be said are in one line."""
        return grouped(self._kind.name, self._malformed_ones)

    def add_page(self, page: bytes) -> str:
        """Add one page of a list and return its continue token, empty at the end.

        Raises:
            ValueError: it is not a page of a list of this kind.
        """
        try:
            decoded = self._page.decode(page)
            converted = [self._kind.convert(each) for each in items_of(decoded, self._kind.name)]
        except _MALFORMED:
            return self._add_one_by_one(page)
        self.items.extend(converted)
        self.more = decoded.metadata.remaining_item_count
        return decoded.token

    def add(self, raw: bytes | Copied | msgspec.Raw) -> None:
        """Add one object.

        Raises:
            Unreadable: it is nested too deep.
        """
        try:
            self.items.append(self._kind.convert(self._item.decode(raw)))
        except _MALFORMED as error:
            self._add_malformed(raw, in_words(error))

    def unique(self) -> tuple[T, ...]:
        """Return the objects; one that occurs twice and is the same both times counts once.

        Raises:
            ValueError: an object occurs twice, and the two differ in something that is read.
        """
        found: dict[Hashable, T] = {}
        for number, item in enumerate(self.items):
            key = self._kind.key(item)
            first = found.setdefault(number if key is None else key, item)
            if first is not item and _fields(first) != _fields(item):
                name = "/".join(key) if isinstance(key, tuple) else key
                raise ValueError(f"{self._kind.name} {name} occurs twice, and the two differ")
        return tuple(found.values())

    def _add_one_by_one(self, page: bytes) -> str:
        decoded = decode_json(page, ListPage[msgspec.Raw])
        for raw in items_of(decoded, self._kind.name):
            self.add(raw)
        self.more = decoded.metadata.remaining_item_count
        return decoded.token

    def _add_malformed(self, raw: bytes | Copied | msgspec.Raw, problem: str) -> None:
        stands = self._stand_in(raw, problem)
        self.lost += not stands
        meaning = self._kind.meaning if stands else self._kind.otherwise
        if meaning:
            self._malformed_ones.append((_name(raw), f"is malformed and {meaning}: {problem}"))

    def _stand_in(self, raw: bytes | Copied | msgspec.Raw, problem: str) -> bool:
        if self._kind.stand_in is None:
            return False
        try:
            self.items.append(self._kind.stand_in(bytes(raw), problem))
        except RecursionError as error:  # not even its name can be read, and without it nothing would be protected
            raise Unreadable(in_words(error)) from error
        except _MALFORMED:
            return False
        return True


def grouped(kind: str, remarks: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for what is said of objects, with their names: `12 Pod objects (a, b, c and 9 more): each ...`.

    Args:
        kind: of all of them.
        remarks: name of an object, and what is said of it.
    """
    names: dict[str, list[str]] = {}
    for name, says in sorted(remarks):
        names.setdefault(says, []).append(name)
    return [_line(kind, who, says) for says, who in sorted(names.items(), key=lambda each: each[1])]


def _line(kind: str, names: Sequence[str], says: str) -> str:
    if len(names) == 1:
        return f"{kind} {names[0]} {says}"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{len(names)} {kind} objects ({', '.join(names[:_MOST_NAMES])}{more}): each {says}"


def _fields(item: object) -> object:
    """Return what to compare two objects by: their fields, since `==` finds a pod equal to itself only.

    No decision hangs on the version: two that differ in it alone differ in something that is not read.
    """
    if not isinstance(item, msgspec.Struct):
        return item
    return {name: value for name, value in msgspec.structs.asdict(item).items() if name != "resource_version"}


def _name(raw: bytes | Copied | msgspec.Raw) -> str:
    try:
        identity = msgspec.json.decode(raw, type=NamedObject).metadata
    except _MALFORMED:
        identity = Naming()
    return "/".join(str(part) for part in (identity.namespace, identity.name) if part) or "without a name"
