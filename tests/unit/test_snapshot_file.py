"""Clusters from files."""

import gzip
import io
import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from rebalancer.errors import SnapshotError
from rebalancer.run.snapshot_file import SnapshotFile, read_snapshot_file
from tests.make import NOW

NODE = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}}
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "a",
        "namespace": "shop",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"on": "yes"},
    },
}
LIST = {"kind": "List", "apiVersion": "v1", "items": [NODE, POD]}
LISTS = {"kind": "List", "items": [{"kind": "NodeList", "items": [NODE]}, {"kind": "PodList", "items": [POD]}]}
TYPED = [
    {"kind": "NodeList", "items": [{"metadata": NODE["metadata"]}]},
    {"kind": "PodList", "items": [{"metadata": POD["metadata"]}]},
]
METRICS = {
    "kind": "NodeMetrics",
    "apiVersion": "metrics.k8s.io/v1beta1",
    "metadata": {"name": "n1"},
    "usage": {"cpu": 1},
}


def read(folder: Path, content: bytes | str) -> SnapshotFile:
    path = folder / "cluster"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_snapshot_file(str(path))


def names(file: SnapshotFile) -> list[str]:
    snapshot = file.collection.snapshot(NOW)
    return [node.name for node in snapshot.nodes] + [str(pod) for pod in snapshot.pods]


def stream(*documents: Any, between: str = "\n") -> str:
    return between.join(json.dumps(each) for each in documents)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(json.dumps(LIST), id="what kubectl prints as JSON"),
        pytest.param(json.dumps(LIST, indent=4), id="indented JSON"),
        pytest.param(yaml.safe_dump(LIST), id="what kubectl prints as YAML"),
        pytest.param(json.dumps(LISTS), id="lists in a list"),
        pytest.param(stream(NODE, POD), id="JSON documents line by line"),
        pytest.param(stream(NODE, POD, between=""), id="JSON documents in one line"),
        pytest.param("\n \n" + stream(NODE, POD, between="\n\n\n") + "\n\n", id="JSON documents with blank lines"),
        pytest.param(stream(*TYPED), id="typed lists whose items have no kind"),
        pytest.param(yaml.safe_dump_all([NODE, POD]), id="YAML documents"),
        pytest.param("---\n" + yaml.safe_dump(NODE) + "---\n---\n" + yaml.safe_dump(POD), id="an empty YAML document"),
        pytest.param(json.dumps(LIST | {"items": [METRICS, NODE, POD]}), id="with metrics objects in it"),
        pytest.param(gzip.compress(json.dumps(LIST).encode()), id="gzipped JSON"),
        pytest.param(gzip.compress(yaml.safe_dump(LIST).encode()), id="gzipped YAML"),
        pytest.param(json.dumps(LIST).encode("utf-8-sig"), id="JSON with a byte order mark"),
        pytest.param(json.dumps(LIST, indent=4).encode("utf-16"), id="UTF-16, as PowerShell redirects"),
    ],
)
def test_every_form_of_a_cluster_is_read(tmp_path: Path, content: bytes | str) -> None:
    assert names(read(tmp_path, content)) == ["n1", "shop/a"]


def test_texts_in_yaml_stay_texts(tmp_path: Path) -> None:
    """Times are not turned into something that no label or timestamp is, and no date has to be a good one."""
    metadata = "{name: a, creationTimestamp: 2026-01-01T00:00:00Z, labels: {release: 2026-02-30}}"
    text = yaml.safe_dump(NODE) + f"---\nkind: Pod\nmetadata: {metadata}\n"

    (pod,) = read(tmp_path, text).collection.snapshot(NOW).pods

    assert pod.created == datetime(2026, 1, 1, tzinfo=UTC)
    assert pod.labels == {"release": "2026-02-30"}


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (json.dumps(LIST).encode(), gzip.compress(json.dumps(LIST).encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

        assert names(read_snapshot_file("-")) == ["n1", "shop/a"]


def test_the_recorded_time_is_found_in_any_document(tmp_path: Path) -> None:
    recorded = {"kind": "List", "rebalancer": {"now": "2026-01-15T12:00:00Z", "context": "x"}, "items": []}

    assert read(tmp_path, stream(recorded, LIST)).recorded.now == NOW
    assert read(tmp_path, stream(LIST, recorded)).recorded.now == NOW
    assert read(tmp_path, stream(LIST)).recorded.now is None


def test_what_the_file_does_not_hold_is_unknown(tmp_path: Path) -> None:
    assert read(tmp_path, json.dumps(LIST)).collection.snapshot(NOW).budgets is None


def test_objects_of_other_groups_are_left_out(tmp_path: Path) -> None:
    metadata = {"name": "n1", "labels": {"longhornvolume": "yes"}}
    foreign = {"kind": "Node", "apiVersion": "longhorn.io/v1beta2", "metadata": metadata, "spec": {"disks": {}}}

    for content in (json.dumps(LIST | {"items": [NODE, POD, foreign]}), yaml.safe_dump_all([NODE, foreign, POD])):
        file = read(tmp_path, content)
        assert names(file) == ["n1", "shop/a"]
        assert file.collection.snapshot(NOW).nodes[0].labels == {}


def test_objects_that_occur_twice_are_the_same_or_an_error(tmp_path: Path) -> None:
    """The message says which; what no decision looks at may differ."""
    again = {**NODE, "metadata": {"name": "n1", "resourceVersion": "8"}}
    cordoned = {**NODE, "spec": {"unschedulable": True}}

    assert names(read(tmp_path, stream(NODE, POD, again, POD))) == ["n1", "shop/a"]
    with pytest.raises(SnapshotError, match="Node n1 occurs twice, and the two differ; make it anew with"):
        read(tmp_path, stream(NODE, POD, cordoned))


@pytest.mark.parametrize(
    ("written", "number"),
    [
        *((json.dumps, each) for each in ("NaN", "Infinity", "-Infinity", "1e999")),
        *((yaml.safe_dump, each) for each in (".nan", ".inf", "-.INF", "1.0e+999")),
    ],
)
def test_a_number_that_is_none_does_not_pass_for_absent(tmp_path: Path, written: Any, number: str) -> None:
    """Python reads it and would write it as null: a pod with such a priority is one that cannot be read."""
    critical = re.sub('"?here"?', number, written({**POD, "spec": {"priority": "here"}}))
    between = "---\n" if written is yaml.safe_dump else ""

    (pod,) = read(tmp_path, f"{written(NODE)}{between}{critical}").collection.snapshot(NOW).pods

    assert "Expected `int | null`, got `str`" in pod.problem


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("", "holds no nodes", id="nothing"),
        pytest.param("\n\n", "holds no nodes", id="blank lines"),
        pytest.param("{}", "holds no nodes", id="an empty object"),
        pytest.param(json.dumps(LIST | {"items": [POD]}), "holds no nodes", id="pods alone"),
        pytest.param(
            stream(LIST, {"kind": "PodList", "items": [], "metadata": {"continue": "x"}}),
            "the PodList is not complete",
            id="the first of several pages",
        ),
        pytest.param(stream(LIST, {"kind": "PodList"}), "a PodList without items", id="a list without items"),
        pytest.param("hello", "Expected `object`, got `str`", id="a text"),
        pytest.param(json.dumps([NODE]), "Expected `object`, got `array`", id="a bare array"),
        pytest.param('{"kind": "List", "items": 5}', "items", id="items that are not a list"),
        pytest.param('{"kind": "List", "items": [5]}', "Expected `object`, got `int`", id="items that are not objects"),
        pytest.param('{"kind": "List"', "is not JSON", id="JSON that ends early"),
        pytest.param(stream(NODE) + "garbage", "is not JSON", id="garbage after JSON"),
        pytest.param("kind: [", "is not YAML", id="YAML that ends early"),
        pytest.param("? [a]\n: b", "is not YAML", id="YAML with keys that JSON does not have"),
        pytest.param("a: " + "9" * 5000, "is not YAML", id="a number beyond all limits"),
        pytest.param(b"\xff\x00\xff", "is not YAML", id="bytes that are not text"),
        pytest.param(b'{"kind": "\xff"}', "utf-8", id="JSON that is not text"),
        pytest.param(gzip.compress(json.dumps(LIST).encode())[:-20], "cannot be read", id="gzip that ends early"),
        pytest.param(b"\x1f\x8bgarbage", "cannot be read", id="gzip that is none"),
        pytest.param("[" * 100_000, "is not JSON", id="brackets without end"),
        pytest.param('{"kind":"List","items":[' * 3000 + "]}" * 3000, "nested too deep", id="lists without end"),
        pytest.param(
            json.dumps(LIST | {"rebalancer": {"now": "2026-01-15T12:00:00"}}), "timezone", id="a time without a zone"
        ),
    ],
)
def test_other_files_are_refused_in_words(tmp_path: Path, content: bytes | str, problem: str) -> None:
    """The message names the file, the problem and, where it helps, the command that makes a good one."""
    with pytest.raises(SnapshotError, match=problem) as error:
        read(tmp_path, content)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"nothing cannot be read: No such file"):
        read_snapshot_file(str(tmp_path / "nothing"))
    with pytest.raises(SnapshotError, match="cannot be read: Is a directory"):
        read_snapshot_file(str(tmp_path))
