"""Reads a folder with what `kubectl top pods` printed, one file for each time; the time is in the file's name.

A file `resource-20230511103000.txt` has lines like these, with or without a heading, in any order:

    web-5d8f7b9c64-x2x7k   120m   512Mi

With `-A` there is a namespace before, with `--containers` a container behind the pod.  Where four fields may be one or
the other, the heading tells, so it has to be in the file.  What cannot be read is left out, counted and named.
"""

import re
import zlib
from array import array
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from rebalancer.cluster.quantity import parse_milli_quantity, parse_quantity
from rebalancer.errors import UsageError
from rebalancer.recommendation.samples import ContainerOfPod, MeasuredContainers
from rebalancer.recommendation.workloads import WHOLE_POD
from rebalancer.untrusted.documents import LARGEST_PAGE, Unreadable, read_input, unpacked

_TIME = re.compile(r"(?<!\d)(20\d{12})(?!\d)")
_CPU = re.compile(r"\d+m?")
_MEMORY = re.compile(r"\d+[KMG]i")
_SUFFIXES = (".txt", ".txt.gz")
_FEWEST_FIELDS, _AMBIGUOUS, _MOST_FIELDS = 3, 4, 5


@dataclass(slots=True)
class Folder:
    """What a folder holds.

    Attributes:
        measured: the samples.
        files: how many files were read.
        skipped: what was left out, a line for each file: the place, the reason and the count.
    """

    measured: MeasuredContainers
    files: int = 0
    skipped: list[str] = field(default_factory=list)


def read_folder(path: str, namespace: str, zone: ZoneInfo) -> Folder:
    """Read all files of a folder whose names end in .txt or .txt.gz.

    Args:
        path: the folder.
        namespace: of lines that name none.
        zone: of the times in the names.

    Raises:
        UsageError: there is no such folder, or it holds no samples.
    """
    skipped: list[str] = []
    try:
        names = sorted(each.name for each in Path(path).iterdir() if each.name.endswith(_SUFFIXES))
    except OSError as error:
        raise UsageError(f"--samples {path} cannot be read: {error.strerror}") from None
    seen: dict[int, str] = {}
    for name in names:
        time = _time(name, zone)
        if time is None:
            skipped.append(f"{name}: there is no time in its name; name it like resource-20230511103000.txt")
        elif time in seen:
            skipped.append(f"{name}: {seen[time]} is of the same time, which counts once")
        else:
            seen[time] = name
    times = sorted(seen)
    folder = Folder(MeasuredContainers(times), skipped=skipped)
    for place, time in enumerate(times):
        _add_file(folder, Path(path, seen[time]), place, namespace)
    if not folder.measured.series:
        raise UsageError(f"--samples {path} holds no samples: {'; '.join(folder.skipped[:3]) or 'no .txt files'}")
    return folder


def _time(name: str, zone: ZoneInfo) -> int | None:
    match = _TIME.search(name)
    try:
        return int(datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(tzinfo=zone).timestamp()) if match else None
    except ValueError:
        return None


def _add_file(folder: Folder, path: Path, place: int, namespace: str) -> None:
    try:
        text = bytes(unpacked(read_input(str(path), LARGEST_PAGE), LARGEST_PAGE)).decode()
    except (OSError, EOFError, zlib.error, Unreadable, UnicodeDecodeError) as error:
        folder.skipped.append(f"{path.name}: it cannot be read: {error}")
        return
    bad: list[int] = []
    for name, (cpu, memory) in _lines(text, namespace, bad).items():
        folder.measured.put(name, place, array("f", [cpu]), array("f", [memory]))
    folder.files += 1
    if bad:
        lines = f"line {bad[0]}" if len(bad) == 1 else f"{len(bad)} lines from line {bad[0]} on"
        folder.skipped.append(f"{path.name}: {lines}: not what `kubectl top pods` prints, or only half of a line")


def _lines(text: str, namespace: str, bad: list[int]) -> dict[ContainerOfPod, tuple[float, float]]:
    """Return what each container used, in cores and bytes."""
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
    """Return namespace, pod and container; None if the line has another number of fields than it should."""
    if len(fields) not in range(_FEWEST_FIELDS, _MOST_FIELDS + 1) or (heading and len(heading) != len(fields)):
        return None
    if len(fields) == _FEWEST_FIELDS:
        return namespace, fields[0], WHOLE_POD
    if len(fields) == _MOST_FIELDS:
        return fields[0], fields[1], fields[2]
    if not heading:
        return None
    return (fields[0], fields[1], WHOLE_POD) if heading[0] == "NAMESPACE" else (namespace, fields[0], fields[1])
