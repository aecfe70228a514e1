"""A folder of samples, for `recommend`: what `kubectl top pods` printed, or what `rebalancer record` appends to it.

A file `resource-20230511103000.txt` for each time has lines like these, with or without a heading, in any order:

    web-5d8f7b9c64-x2x7k   120m   512Mi

With `-A` there is a namespace before, with `--containers` a container behind the pod.  Where four fields may be one or
the other, the heading tells, so it has to be in the file.  What was printed at one time is a sheet.  Files are read
twice: first for the times of their sheets, then for their figures.

What cannot be read is left out, counted and named: half of a line or of a sheet, a second sheet of one time, a
time from a wrong clock.

`rebalancer record` writes one file for each day (UTC), `recorded-20230511.txt.gz`, a row of packed sheets.  Each sheet
is packed by gzip for itself, so that `zcat` shows them all.  Its first line has its time, and then comes what
`kubectl top pods -A --containers` prints:

    # rebalancer record 2023-05-11T10:30:00Z
    NAMESPACE POD NAME CPU(cores) MEMORY(bytes)
    shop web-5d8f7b9c64-x2x7k app 120m 524288Ki

Two writers wait for each other by a lock on the file, and a sheet is added in one go.  A disk that is full takes
nothing: the file is cut back to what it was.  A writer that is killed leaves half a sheet, and the next one writes
behind it.  Whoever reads finds the next sheet by its first bytes, and tells of the half.
"""

import fcntl
import os
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from rebalancer.cluster.resources import parse_milli_quantity, parse_quantity
from rebalancer.errors import ClusterError, UsageError
from rebalancer.kube.answers import NotFound
from rebalancer.kube.lists import read_list
from rebalancer.kube.wire.pages import Items, path_of_list
from rebalancer.kube.wire.shared_fields import Metadata
from rebalancer.recommendation.samples import ContainerOfPod, MeasuredContainers
from rebalancer.recommendation.workloads import WHOLE_POD
from rebalancer.report.layout import count
from rebalancer.run.live import open_cluster
from rebalancer.run.options import ClientOptions
from rebalancer.untrusted.documents import (
    LARGEST_FILE,
    LARGEST_PAGE,
    Copied,
    Unreadable,
    read_input,
    read_large,
    unpacked,
)

#: The names of the files; the group is the day.
_NAME = re.compile(r"recorded-(\d{8})\.txt\.gz")
_HEADING = "NAMESPACE POD NAME CPU(cores) MEMORY(bytes)"
_FIRST_LINE = re.compile(rb"# rebalancer record (\S{20})\n")
#: How each sheet begins: gzip's signature, no name, no time.
_BEGIN = re.compile(rb"\x1f\x8b\x08\x00\x00{4}[\x00\x02\x04][\x03\xff]")
_TIME_IN_SHEET = "%Y-%m-%dT%H:%M:%SZ"
_YEAR, _HOUR = 366 * 86_400, 3600
_LONGEST_BREAK = timedelta(days=30)  # from one recorded day to the next, after which a clock is doubted
_TIME = re.compile(r"(?<!\d)(20\d{12})(?!\d)")
_CPU = re.compile(r"[0-9]{1,18}m?")
_MEMORY = re.compile(r"[0-9]{1,18}[KMG]i")
_SUFFIXES = (".txt", ".txt.gz")


def read_folder(path: str, namespace: str, zone: ZoneInfo, now: datetime) -> tuple[MeasuredContainers, list[str]]:
    """Read all files of a folder whose names end in .txt or .txt.gz; times in names are of the zone.

    Lines that name no namespace are of the given one; samples after `now` are from a wrong clock.
    With the samples come lines about what was left out: the place, the reason and the count.
    """
    try:
        names = sorted(each.name for each in Path(path).iterdir() if each.name.endswith(_SUFFIXES))
    except OSError as error:
        raise UsageError(f"--samples {path} cannot be read: {error.strerror}") from None
    skipped: list[str] = []
    seen = [(time, name) for name in names for time, _ in _sheets(Path(path, name), zone, skipped)]
    kept = _of_right_clocks(seen, now, skipped)
    measured = MeasuredContainers(sorted({time for time, _ in kept}))
    places = {time: place for place, time in enumerate(measured.times)}
    filled: dict[int, str] = {}
    for name in names:
        for time, text in _sheets(Path(path, name), zone, []):
            if (time, name) in kept:
                skipped += _added(measured, name, text, places[time], namespace, filled)
    if not measured.series:
        raise UsageError(f"--samples {path} holds no samples: {'; '.join(skipped[:3]) or 'no .txt files'}")
    return measured, skipped


def _sheets(path: Path, zone: ZoneInfo, skipped: list[str]) -> Iterator[tuple[int, str]]:
    try:
        if _NAME.fullmatch(path.name):
            torn: list[int] = []
            yield from sheets(read_large(str(path), LARGEST_FILE), torn)  # all of a day
            if torn:
                skipped.append(f"{path.name}: {count(len(torn), 'sheet')} not whole, the first at byte {torn[0]}")
            return
        content = read_input(str(path), LARGEST_PAGE)
        time_in_name = None
        with suppress(ValueError):
            if match := _TIME.search(path.name):
                time_in_name = datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(tzinfo=zone)
        if time_in_name is None:
            skipped.append(f"{path.name}: there is no time in its name; name it like resource-20230511103000.txt")
        else:
            yield int(time_in_name.timestamp()), bytes(unpacked(content, LARGEST_PAGE)).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, Unreadable, UnicodeDecodeError) as error:
        skipped.append(f"{path.name}: it cannot be read: {error}")


def _of_right_clocks(seen: list[tuple[int, str]], now: datetime, skipped: list[str]) -> set[tuple[int, str]]:
    """Return the times and files of sheets, but those of the future, and of more than a year before the newest."""
    latest = now.timestamp() + _HOUR
    newest = max((time for time, _ in seen if time <= latest), default=0)
    wrong = [each for each in seen if not newest - _YEAR <= each[0] <= latest]
    if wrong:
        time, name = wrong[0]
        at = f"{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%MZ}"
        skipped.append(f"{count(len(wrong), 'sheet')} from a wrong clock, the first in {name}: {at}")
    return {*seen}.difference(wrong)


def _added(
    measured: MeasuredContainers, sheet: str, text: str, place: int, namespace: str, filled: dict[int, str]
) -> Iterator[str]:
    bad: list[int] = []
    found = _lines(text, namespace, bad)
    if any(measured.has(name, place) for name in found):
        yield f"{sheet}: {filled[place]} is of the same time, which counts once"
        return
    filled[place] = sheet
    for name, (cpu, memory) in found.items():
        measured.put(name, place, array("f", [cpu]), array("f", [memory]))
    if bad:
        lines = f"line {bad[0]}" if len(bad) == 1 else f"{len(bad)} lines from line {bad[0]} on"
        yield f"{sheet}: {lines}: not what `kubectl top pods` prints, or only half of a line"


def _lines(text: str, namespace: str, bad: list[int]) -> dict[ContainerOfPod, tuple[float, float]]:
    found: dict[ContainerOfPod, tuple[float, float]] = {}
    lines = text.split("\n")
    heading = next((line.split() for line in lines if "CPU(cores)" in line), [])
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or fields == heading:
            continue
        torn = number == len(lines)  # a whole file ends with a line feed
        names = None if torn else _names(fields, heading, namespace)
        if names is None or not (_CPU.fullmatch(fields[-2]) and _MEMORY.fullmatch(fields[-1])):
            bad.append(number)
        else:
            found[ContainerOfPod(*names)] = parse_milli_quantity(fields[-2]) / 1000, float(parse_quantity(fields[-1]))
    return found


def _names(fields: list[str], heading: list[str], namespace: str) -> tuple[str, str, str] | None:
    if heading and len(heading) != len(fields):
        return None
    match fields[:-2]:
        case [pod]:
            return namespace, pod, WHOLE_POD
        case [first, second] if heading:
            return (first, second, WHOLE_POD) if heading[0] == "NAMESPACE" else (namespace, first, second)
        case [first, second, third]:
            return first, second, third
    return None


def packed_sheet(time: datetime, lines: Iterable[str]) -> bytes:
    """Return a sheet; a line is a namespace, a pod, a container, CPU and memory."""
    text = "\n".join([f"# rebalancer record {time.strftime(_TIME_IN_SHEET)}", _HEADING, *lines, ""])
    packer = zlib.compressobj(wbits=31)  # gzip, without a time in its head
    return packer.compress(text.encode()) + packer.flush()


def sheets(content: bytes | Copied, torn: list[int]) -> Iterator[tuple[int, str]]:
    """Yield the sheets of a file, each with its time since 1970; places of those that are not whole go to `torn`."""
    begins = [match.start() for match in _BEGIN.finditer(content)]
    if begins[:1] != [0]:
        torn.append(0)
    for begin, end in zip(begins, [*begins[1:], len(content)], strict=False):
        unpacker = zlib.decompressobj(wbits=31)
        try:
            text = unpacker.decompress(content[begin:end], LARGEST_PAGE)
            head = _FIRST_LINE.match(text) if unpacker.eof else None
            time = datetime.strptime(head[1].decode(), _TIME_IN_SHEET).replace(tzinfo=UTC) if head else None
            found = text[head.end() :].decode() if head else ""
        except (zlib.error, ValueError):
            time, found = None, ""
        if time is None:
            torn.append(begin)
            continue
        yield int(time.timestamp()), found
        if unpacker.unused_data:  # a sheet of which not even the beginning is whole
            torn.append(end - len(unpacker.unused_data))


class _ContainerUsage(msgspec.Struct):
    name: str = ""
    usage: dict[str, str] = {}


class _UsageOfPod(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    containers: list[_ContainerUsage] | None = None


def record(client: ClientOptions, folder: str, keep: timedelta) -> tuple[Path, int]:
    """Append what all containers use now, and remove files of old days; return file and number of containers."""
    try:
        new = partial(Items, "PodMetrics", _UsageOfPod, _lines_of)
        found = read_list(open_cluster(client), path_of_list("PodMetrics"), new).items
    except NotFound:
        raise ClusterError("there is no metrics-server: install it, or recommend from a Prometheus") from None
    lines = sorted(line for of_pod in found for line in of_pod)
    if not lines:
        raise ClusterError("metrics-server knows no pods yet: nothing is recorded")
    now = datetime.now(UTC)
    path = Path(folder, f"recorded-{now:%Y%m%d}.txt.gz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        append(path, packed_sheet(now, lines))
        days = {each: match[1] for each in path.parent.iterdir() if (match := _NAME.fullmatch(each.name))}
        oldest, recent, today = (f"{now - age:%Y%m%d}" for age in (keep, _LONGEST_BREAK, timedelta()))
        if any(recent <= day < today for day in days.values()):  # otherwise the clock may be months ahead
            for each in (each for each, day in days.items() if day < oldest):
                each.unlink(missing_ok=True)  # another writer may be faster
    except OSError as error:
        raise UsageError(f"--out {folder} cannot be written: {error.strerror}") from error
    return path, len(lines)


def _lines_of(pod: _UsageOfPod) -> list[str]:
    """Return a line for each container; one without both amounts has none."""
    found = []
    for each in pod.containers or ():
        if "cpu" in each.usage and "memory" in each.usage:
            cpu, memory = parse_milli_quantity(each.usage["cpu"]), -(-parse_quantity(each.usage["memory"]) // 1024)
            if cpu >= 0 and memory >= 0:
                found.append(f"{pod.metadata.namespace} {pod.metadata.name} {each.name} {cpu}m {memory}Ki")
    return found


def append(path: Path, sheet: bytes) -> None:
    """Add a sheet to a file; whole, or not at all."""
    with path.open("ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = os.fstat(file.fileno()).st_size
        try:
            written = 0
            while written < len(sheet):
                written += file.write(sheet[written:])
            os.fsync(file.fileno())
        except BaseException:
            os.ftruncate(file.fileno(), before)
            raise
