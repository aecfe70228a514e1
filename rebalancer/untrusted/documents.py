"""Documents read within limits, so that none of them can exhaust the memory or the stack of this process.

msgspec and `json` limit the depth themselves; libyaml does not, and composing 100,000 levels crashes the process.  So
YAML is checked first, event by event and without recursion.
"""

import gzip
import io
import math
import mmap
import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
import yaml

T = TypeVar("T")
C = TypeVar("C", bound="bytes | Copied")

#: Bytes of a cluster file, both as it is and unpacked.
LARGEST_FILE = 4 << 30
#: Bytes of one answer of a server, unpacked.
LARGEST_PAGE = 256 << 20
#: Bytes of a policy or a kubeconfig, which people write.
LARGEST_SETTINGS = 64 << 20
#: Levels of a YAML document.
DEEPEST = 64
#: Nodes and characters that a YAML document may repeat through aliases: a few lines can stand for billions.
MOST_REPEATED = 1_000_000
#: What PyYAML raises besides its own errors for `!!bool x` and `!!int ''`.
MISTAGGED = (LookupError, AttributeError)

_CHUNK = 1 << 20
_GIVEN_BACK = 16 << 20


class Unreadable(ValueError):  # noqa: N818  said of a document
    """A document exceeds a limit, or does not have the expected form."""

    def __init__(self, message: str, line: int = 0) -> None:
        self.line = line  # in the document, counted from 1; 0 where it is unknown
        super().__init__(message)


def read_input(path: str, largest: int) -> bytes:
    """Read a file, or standard input for `-`; raises OSError, or Unreadable if it is too large or closed."""
    if path != "-":
        with Path(path).open("rb") as file:
            return read_bounded(file, largest)
    if sys.stdin is None or sys.stdin.closed:
        raise Unreadable("standard input is closed")
    return (read_bounded if largest > LARGEST_SETTINGS else _read_once)(sys.stdin.buffer, largest)


def read_bounded(stream: BinaryIO, largest: int) -> bytes:
    """Read a stream to its end; raise `Unreadable` if it is larger than `largest` bytes."""
    content = io.BytesIO()  # it grows without a second copy
    while chunk := stream.read(_CHUNK):
        check_size(content.tell() + len(chunk), largest)
        content.write(chunk)
    return content.getvalue()


_read_once = cache(read_bounded)  # a command may ask for its settings twice, and standard input gives them once


class Copied(mmap.mmap):
    """A copy of a large file, which others may cut short; its memory can be given back while it is read."""

    _done = 0
    _given_back = 0

    def done_with(self, size: int) -> None:
        """Give back the memory of the next `size` bytes, which nobody reads again; some MB at a time."""
        self._done += size
        length = (self._done - self._given_back) // _CHUNK * _CHUNK
        if length >= _GIVEN_BACK:
            self.madvise(mmap.MADV_DONTNEED, self._given_back, length)
            self._given_back += length


def read_large(path: str, largest: int) -> bytes | Copied:
    """Read as `read_input` does; a file takes its own size in memory and no more."""
    if path == "-":
        return read_input(path, largest)
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size  # 0 of a pipe
        check_size(size, largest)
        if size:
            content = Copied(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if file.readinto(content) == size and not file.read(1):
                return content
            file.seek(0)  # its size is changing
        return read_bounded(file, largest)


def check_size(size: int, largest: int) -> None:
    """Raise Unreadable for more bytes than are allowed."""
    if size > largest:
        raise Unreadable(f"it is larger than {_in_units(largest)}")


def unpacked(content: C, largest: int) -> C | bytes:
    """Return the content, unpacked if gzipped; raises Unreadable if too large, OSError, EOFError or zlib.error."""
    if content[:2] != b"\x1f\x8b":
        return content
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        return read_bounded(file, largest)  # type: ignore[arg-type]  # it reads like any binary file


def decode_json(content: bytes | Copied | msgspec.Raw, kind: type[T]) -> T:
    """Decode JSON; raises Unreadable if it is not JSON, not of that shape, or nested too deep."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(in_words(error)) from error


def in_words(error: Exception) -> str:
    """Return what is wrong with a document that could not be decoded."""
    if isinstance(error, MISTAGGED):
        return "a value is not what its tag says"
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def check_yaml(events: Iterable[yaml.Event]) -> None:
    """Check YAML before it is composed; raises Unreadable if too deep or too often repeated, or yaml.YAMLError.

    Each part weighs as much as it has nodes and characters, with aliases written out: the list in `a: &a [x, x]` weighs
    1 + 2 + 2, and each `*a` adds that to what is repeated, and to the part that contains it.
    """
    parts: list[tuple[str, float]] = [("", 0.0)]  # what is not closed yet: its anchor, and its weight so far
    anchored: dict[str, float] = {}
    repeated = 0.0
    for event in events:
        anchor, weight = getattr(event, "anchor", None) or "", 0.0
        match event:
            case yaml.DocumentStartEvent():
                anchored, repeated = {}, 0.0
            case yaml.CollectionStartEvent():
                if len(parts) > DEEPEST:
                    raise Unreadable(f"it is nested deeper than {DEEPEST} levels", _line(event))
                anchored[anchor] = math.inf  # until it is closed: an alias inside it would never end
                parts.append((anchor, 1.0))
                continue
            case yaml.CollectionEndEvent():
                anchor, weight = parts.pop()
            case yaml.ScalarEvent():
                weight = 1.0 + len(event.value)
            case yaml.AliasEvent():
                anchor, weight = "", anchored.get(anchor, 0.0)  # the YAML library itself rejects an unknown anchor
                repeated += weight
                if repeated > MOST_REPEATED:
                    raise Unreadable("an alias contains itself, or aliases multiply", _line(event))
        anchored[anchor] = weight
        parts[-1] = (parts[-1][0], parts[-1][1] + weight)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _in_units(size: int) -> str:
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} bytes"
