"""The files of `rebalancer record`: one for each day (UTC), `recorded-20230511.txt.gz`, a row of packed sheets.

Each sheet is packed by gzip for itself, so that `zcat` shows them all.  Its first line has its time, and then comes
what `kubectl top pods -A --containers` prints:

    # rebalancer record 2023-05-11T10:30:00Z
    NAMESPACE POD NAME CPU(cores) MEMORY(bytes)
    shop web-5d8f7b9c64-x2x7k app 120m 524288Ki

A writer that is killed leaves half a sheet, and the next one writes behind it.  Whoever reads finds the next sheet by
its first bytes, and tells of the half.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from rebalancer.untrusted.documents import LARGEST_PAGE

#: The names of the files; the group is the day.
NAME = re.compile(r"recorded-(\d{8})\.txt\.gz")
_HEADING = "NAMESPACE POD NAME CPU(cores) MEMORY(bytes)"
_FIRST_LINE = re.compile(rb"# rebalancer record (\S{20})\n")
#: How each sheet begins: gzip's signature, no name, no time.
_BEGIN = re.compile(rb"\x1f\x8b\x08\x00\x00{4}[\x00\x02\x04][\x03\xff]")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def packed_sheet(time: datetime, lines: Iterable[str]) -> bytes:
    """Return a sheet; a line is a namespace, a pod, a container, CPU and memory."""
    text = "\n".join([f"# rebalancer record {time.strftime(_TIME)}", _HEADING, *lines, ""])
    packer = zlib.compressobj(wbits=31)  # gzip, without a time in its head
    return packer.compress(text.encode()) + packer.flush()


def sheets(content: bytes, torn: list[int]) -> Iterator[tuple[int, str]]:
    """Yield the sheets of a file, each with its time in seconds since 1970.

    Args:
        content: of the file.
        torn: takes the place, in bytes, of each sheet that is not whole.
    """
    begins = [match.start() for match in _BEGIN.finditer(content)]
    if begins[:1] != [0]:
        torn.append(0)
    for begin, end in zip(begins, [*begins[1:], len(content)], strict=True):
        unpacker = zlib.decompressobj(wbits=31)
        try:
            text = unpacker.decompress(content[begin:end], LARGEST_PAGE)
            head = _FIRST_LINE.match(text)
            time = datetime.strptime(head[1].decode(), _TIME).replace(tzinfo=UTC) if head and unpacker.eof else None
            found = text[head.end() :].decode() if head else ""
        except (zlib.error, ValueError):
            time, found = None, ""
        if time is None:
            torn.append(begin)
            continue
        yield int(time.timestamp()), found
        if unpacker.unused_data:  # a sheet of which not even the beginning is whole
            torn.append(end - len(unpacker.unused_data))
