"""Reads a cluster from a file: what `kubectl get ... -o json|yaml` prints, or `rebalancer snapshot` writes."""

import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Annotated

import msgspec
import yaml

from rebalancer.errors import SnapshotError
from rebalancer.kube.wire.collect import Collection, Document, add_document
from rebalancer.untrusted import documents as untrusted

_BRACKET = re.compile(rb"\s*[{\[]")
_HOW = "kubectl get nodes,pods,namespaces,pdb,priorityclasses,pvc -A -o json"


class Recorded(msgspec.Struct, rename="camel"):
    """What `rebalancer snapshot` notes in a file; a memory of None says nothing of it.

    The memory has the keys of its ConfigMap, and what the annotations of the Lease tell of a pause and the breaker.
    """

    memory: dict[str, str] | None = None
    memory_problem: str = ""
    now: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class SnapshotFile(Collection):
    """The objects of a file, and what is noted with them."""

    recorded = Recorded()


class SnapshotDocument(Document, rename="camel"):
    """One document of a snapshot file; `rebalancer snapshot` adds a part that is not a cluster object."""

    rebalancer: Recorded | None = None


class _SnapshotLoader(yaml.CSafeLoader):
    """YAML with the scalars of JSON: times stay text."""


_SnapshotLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    if first != "="  # kubectl writes this argument of a container without quotes, and PyYAML has no value for it
}


def read_snapshot_file(path: str) -> SnapshotFile:
    """Read a file, or standard input for `-`: JSON or YAML, gzipped or not, one List or many documents."""
    file = SnapshotFile()
    try:
        for raw, document in documents(path):
            done_with = raw.done_with if isinstance(raw, untrusted.Copied) else None
            add_document(file, raw, done_with=done_with, document=document)
            file.recorded = document.rebalancer or file.recorded
        file.check()
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"snapshot {path}: {untrusted.in_words(error)}; make it anew with `{_HOW}`") from error
    if not file.collectors["Node"].items:
        raise SnapshotError(f"snapshot {path} holds no nodes; make it with `{_HOW}` or `rebalancer snapshot`")
    return file


def documents(path: str) -> Iterator[tuple[bytes | untrusted.Copied, SnapshotDocument]]:
    """Yield each document of a file as JSON, and what it says of itself."""
    try:
        content = untrusted.unpacked(untrusted.read_large(path, untrusted.LARGEST_FILE), untrusted.LARGEST_FILE)
    except (OSError, EOFError, zlib.error, untrusted.Unreadable) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SnapshotError(f"snapshot {path} cannot be read: {reason}") from error
    is_json = _BRACKET.match(content)
    document = None
    with suppress(msgspec.MsgspecError, RecursionError):  # there are several documents, or it is not JSON
        document = msgspec.json.decode(content, type=SnapshotDocument) if is_json else None
    if document:
        yield content, document
        return
    for each in _json_stream(content[:], path) if is_json else _yaml_documents(content[:], path):
        yield each, untrusted.decode_json(each, SnapshotDocument)


def _json_stream(content: bytes, path: str) -> Iterator[bytes]:
    decoder = json.JSONDecoder(parse_constant=str)  # a NaN would become a null, which looks like an absent field
    try:
        text = content.decode().strip()
        position = 0
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            yield msgspec.json.encode(value)
            while text[position : position + 1].isspace():
                position += 1
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"snapshot {path} is not JSON: {untrusted.in_words(error)}") from error


def _yaml_documents(content: bytes, path: str) -> Iterator[bytes]:
    try:
        untrusted.check_yaml(yaml.parse(content, Loader=_SnapshotLoader))
        for document in yaml.load_all(content, Loader=_SnapshotLoader):
            if document is not None:
                yield msgspec.json.encode(document)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, *untrusted.MISTAGGED) as error:
        place = " ".join(untrusted.in_words(error).split())
        raise SnapshotError(f"snapshot {path} is not YAML: {place}") from error
