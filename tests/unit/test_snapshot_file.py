"""Clusters from files."""

import gzip
import io
import json
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
META = {"name": "a", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"on": "yes"}}
POD = {"kind": "Pod", "apiVersion": "v1", "metadata": META}
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
    snapshot = file.snapshot(NOW)
    return [node.name for node in snapshot.nodes] + [str(pod) for pod in snapshot.pods]


def stream(*documents: Any, between: str = "\n") -> str:
    return between.join(json.dumps(each) for each in documents)


FORMS = {
    "what kubectl prints as JSON": json.dumps(LIST),
    "indented JSON": json.dumps(LIST, indent=4),
    "what kubectl prints as YAML": yaml.safe_dump(LIST),
    "lists in a list": json.dumps(LISTS),
    "JSON documents line by line": stream(NODE, POD),
    "JSON documents in one line": stream(NODE, POD, between=""),
    "JSON documents with blank lines": "\n \n" + stream(NODE, POD, between="\n\n\n") + "\n\n",
    "typed lists whose items have no kind": stream(*TYPED),
    "YAML documents": yaml.safe_dump_all([NODE, POD]),
    "an empty YAML document": "---\n" + yaml.safe_dump(NODE) + "---\n---\n" + yaml.safe_dump(POD),
    "with metrics objects in it": json.dumps(LIST | {"items": [METRICS, NODE, POD]}),
    "gzipped JSON": gzip.compress(json.dumps(LIST).encode()),
    "gzipped YAML": gzip.compress(yaml.safe_dump(LIST).encode()),
    "JSON with a byte order mark": json.dumps(LIST).encode("utf-8-sig"),
    "UTF-16, as PowerShell redirects": json.dumps(LIST, indent=4).encode("utf-16"),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_every_form_of_a_cluster_is_read(tmp_path: Path, content: bytes | str) -> None:
    assert names(read(tmp_path, content)) == ["n1", "shop/a"]


def test_texts_in_yaml_stay_texts(tmp_path: Path) -> None:
    """Times are not turned into something that no label or timestamp is, and no date has to be a good one."""
    metadata = "{name: a, creationTimestamp: 2026-01-01T00:00:00Z, labels: {release: 2026-02-30}}"
    spec = "{containers: [{name: main, args: [test, $A, =, b]}]}"  # as kubectl prints it
    text = yaml.safe_dump(NODE) + f"---\nkind: Pod\nmetadata: {metadata}\nspec: {spec}\n"

    (pod,) = read(tmp_path, text).snapshot(NOW).pods

    assert pod.created == datetime(2026, 1, 1, tzinfo=UTC)
    assert pod.labels == {"release": "2026-02-30"}


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (json.dumps(LIST).encode(), gzip.compress(json.dumps(LIST).encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

        assert names(read_snapshot_file("-")) == ["n1", "shop/a"]


def test_the_recorded_time_is_found_in_any_document_and_what_is_in_none_is_unknown(tmp_path: Path) -> None:
    recorded = {"kind": "List", "rebalancer": {"now": "2026-01-15T12:00:00Z", "context": "x"}, "items": []}

    assert read(tmp_path, stream(recorded, LIST)).recorded.now == NOW
    assert read(tmp_path, stream(LIST, recorded)).recorded.now == NOW
    file = read(tmp_path, stream(LIST))
    assert (file.recorded.now, file.snapshot(NOW).budgets) == (None, None)


def test_objects_of_other_groups_are_left_out(tmp_path: Path) -> None:
    metadata = {"name": "n1", "labels": {"longhornvolume": "yes"}}
    foreign = {"kind": "Node", "apiVersion": "longhorn.io/v1beta2", "metadata": metadata, "spec": {"disks": {}}}

    for content in (json.dumps(LIST | {"items": [NODE, POD, foreign]}), yaml.safe_dump_all([NODE, foreign, POD])):
        file = read(tmp_path, content)
        assert names(file) == ["n1", "shop/a"]
        assert file.snapshot(NOW).nodes[0].labels == {}


def test_objects_that_occur_twice_are_the_same_or_an_error(tmp_path: Path) -> None:
    """The message says which; what no decision looks at may differ."""
    again = {**NODE, "metadata": {"name": "n1", "resourceVersion": "8"}}
    cordoned = {**NODE, "spec": {"unschedulable": True}}

    assert names(read(tmp_path, stream(NODE, POD, again, POD))) == ["n1", "shop/a"]
    with pytest.raises(SnapshotError, match="Node n1 occurs twice, and the two differ; make it anew with"):
        read(tmp_path, stream(NODE, POD, cordoned))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_does_not_pass_for_absent(tmp_path: Path, number: str) -> None:
    """Python reads it and would write it as null: a pod with such a priority is one that cannot be read."""
    critical = json.dumps({**POD, "spec": {"priority": "here"}}).replace('"here"', number)

    (pod,) = read(tmp_path, f"{json.dumps(NODE)}{critical}").snapshot(NOW).pods

    assert "Expected `int | null`, got `str`" in pod.problem


FIRST_PAGE = {"kind": "PodList", "items": [], "metadata": {"continue": "x"}}
NO_ZONE = {"rebalancer": {"now": "2026-01-15T12:00:00"}}
REFUSED = {
    "nothing": ("", "holds no nodes"),
    "blank lines": ("\n\n", "holds no nodes"),
    "an empty object": ("{}", "holds no nodes"),
    "pods alone": (json.dumps(LIST | {"items": [POD]}), "holds no nodes"),
    "the first of several pages": (stream(LIST, FIRST_PAGE), "the PodList is not complete"),
    "a list without items": (stream(LIST, {"kind": "PodList"}), "a PodList without items"),
    "a text": ("hello", "Expected `object`, got `str`"),
    "a bare array": (json.dumps([NODE]), "Expected `object`, got `array`"),
    "items that are not a list": ('{"kind": "List", "items": 5}', "items"),
    "items that are not objects": ('{"kind": "List", "items": [5]}', "Expected `object`, got `int`"),
    "JSON that ends early": ('{"kind": "List"', "is not JSON"),
    "garbage after JSON": (stream(NODE) + "garbage", "is not JSON"),
    "YAML that ends early": ("kind: [", "is not YAML"),
    "YAML with keys that JSON does not have": ("? [a]\n: b", "is not YAML"),
    "a number beyond all limits": ("a: " + "9" * 5000, "is not YAML"),
    "bytes that are not text": (b"\xff\x00\xff", "is not YAML"),
    "JSON that is not text": (b'{"kind": "\xff"}', "utf-8"),
    "gzip that ends early": (gzip.compress(json.dumps(LIST).encode())[:-20], "cannot be read"),
    "gzip that is garbage": (b"\x1f\x8bgarbage", "cannot be read"),
    "brackets without end": ("[" * 100_000, "is not JSON"),
    "lists without end": ('{"kind":"List","items":[' * 3000 + "]}" * 3000, "nested too deep"),
    "a time without a zone": (json.dumps(LIST | NO_ZONE), "timezone"),
}


@pytest.mark.parametrize(("content", "problem"), REFUSED.values(), ids=REFUSED)
def test_other_files_are_refused_in_words(tmp_path: Path, content: bytes | str, problem: str) -> None:
    """The message names the file, the problem and, where it helps, the command that makes a good one."""
    with pytest.raises(SnapshotError, match=problem) as error:
        read(tmp_path, content)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)
