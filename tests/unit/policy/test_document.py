"""YAML and JSON become values that know their place; the one policy in a ConfigMap is taken."""

from itertools import pairwise
from textwrap import indent

import pytest
import yaml

from rebalancer.errors import PolicyError
from rebalancer.policy.document import DocumentNode, read_document
from rebalancer.policy.findings import Findings
from tests.unit.policy.reading import HEAD, load, problems


def parsed(text: str) -> tuple[DocumentNode, Findings]:
    findings = Findings()
    return read_document(text, findings), findings


def read(text: str) -> DocumentNode:
    """A document without any error."""
    node, findings = parsed(text)
    findings.settle("x", strict=False)
    return node


def errors(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        parsed(text)[1].settle("x", strict=False)
    return [str(problem) for problem in caught.value.problems]


def warnings(text: str) -> list[str]:
    return [str(problem) for problem in parsed(text)[1].settle("x", strict=False)]


def test_scalars_follow_yaml_1_1_without_dates_and_sexagesimals():
    words = ["yes", "off", "True", "tRue", "y", "~", "1:30", "2024-01-01", '"5"', "'yes'", "!!str 5", "<<"]
    numbers = ["010", "0o10", "0x1F", "-0b11", "1_000", "1.0", ".5", "1e3", '!!int "5"', str(2**64 - 1)]
    found = read(f"words: [{', '.join(words)}]\nnumbers: [{', '.join(numbers)}]\nyes:\n1.5: a").plain()

    assert found == {
        "words": [True, False, True, "tRue", "y", None, "1:30", "2024-01-01", "5", "yes", "5", "<<"],
        "numbers": [8, 8, 31, -3, 1000, 1.0, 0.5, 1000.0, 5, 2**64 - 1],
        "true": None,
        "1.5": "a",
    }
    assert [type(each) for each in found["numbers"]] == [int] * 5 + [float] * 3 + [int] * 2


def test_json_is_read_too():
    assert read('{\n\t"a": [1, null, true, "x\\/y"],\n\t"b": {}\n}').plain() == {"a": [1, None, True, "x/y"], "b": {}}


def test_a_node_knows_its_path_and_line():
    node = read("a:\n  - b: 1\n    example.com/gpu:\n      2\n")
    item = node.entries()["a"].items()[0]

    assert (item.place.path, item.place.line) == ("a[0]", 2)
    gpu = item.entries()["example.com/gpu"].place
    assert (gpu.path, gpu.line) == ('a[0]["example.com/gpu"]', 3)


def test_an_alias_and_a_merge_stand_for_the_anchor():
    """Aliases and merge keys are followed; a map's own key wins, then the first of the merged ones."""
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\nd: *a\n"

    assert read(text).plain() == {
        "a": {"x": 1, "y": 1},
        "b": {"y": 2, "z": 2},
        "c": {"x": 3, "y": 1, "z": 2},
        "d": {"x": 1, "y": 1},
    }
    assert warnings(text) == []


def test_the_last_of_two_equal_keys_counts_and_a_warning_says_so():
    assert read("a: 1\nb: 2\na: 3").plain() == {"a": 3, "b": 2}
    assert warnings("a: 1\nb: 2\na: 3") == ["line 3, a: this key is given twice (first in line 1); the last one counts"]


@pytest.mark.parametrize(
    "rest", ["---\nb: 2\n", "---\n[1, 2", "---\n" + "[" * 50_000], ids=["another", "broken", "deep"]
)
def test_only_the_first_document_counts_and_a_warning_says_so(rest):
    assert read(f"a: 1\n{rest}").plain() == {"a": 1}
    assert [each.partition(": ")[2][:43] for each in warnings(f"a: 1\n{rest}")] == [
        "only the first document of the file counts;"
    ]


@pytest.mark.parametrize("text", ["---\na: 1\n", "a: 1\n---\n", "a: 1\n...\n", "\ufeffa: 1\n", "a: 1\r\n"])
def test_one_document_with_its_marks_is_one_document(text):
    """Document marks around a single document, a byte order mark and CRLF mean nothing."""
    assert read(text).plain() == {"a": 1}
    assert warnings(text) == []


#: Nine lines that stand for billions of values.
BILLIONS = "a: &a [1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{last}'] * 9)}]\n" for last, name in pairwise("abcdefghij")
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BILLIONS, "line 7: an alias contains itself, or aliases multiply"),
        ("a: b: c", "line 1: this is neither YAML nor JSON: mapping values are not allowed"),
        ("a: 1\n\tb: 2", "line 2: this is neither YAML nor JSON"),
        ("a: \x00", "line 1: this is neither YAML nor JSON: unacceptable character"),
        ("a:\n  b: *c", "line 2: this is neither YAML nor JSON: found undefined alias"),
        ("a: !thing 3", "line 1, a: YAML takes !thing for a tag, which means nothing here; write '!thing 3' if"),
        ("a: !b", "line 1, a: YAML takes !b for a tag, which means nothing here; write '!b' if it is text"),
        ("a: !!binary b", "line 1, a: 'b' is not a binary"),
        ("a: !!set {b}", "line 1, a: the tag tag:yaml.org,2002:set means nothing here"),
        ("a: .inf", "line 1, a: '.inf' is not a finite number"),
        ("a: 08x\nb: !!int 08x", "line 2, b: '08x' is not a whole number of 64 bits"),
        ("a: 18446744073709551616", "line 1, a: '18446744073709551616' is not a whole number of 64 bits"),
        ("a: " + "9" * 5000, "line 1, a: '99999"),
        ("? [a]\n: 1", "line 1: a key is a word"),
        ("a:\n  ~: 1", "line 2, a: a key is a word"),
        ("a: {<<: 3}", "line 1, a: only a map can be merged"),
        ("a: &x [*x]", "line 1: an alias contains itself"),
        ("[" * 50_000, "line 1: it is nested deeper than 64 levels"),
        ("\n".join(" " * depth + "a:" for depth in range(200)), "line 65: it is nested deeper than 64 levels"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text, problem):
    assert errors(text)[0].startswith(problem)


POLICY = f"{HEAD}maxNoOfPodsToEvictTotal: 7\nprofiles: []\n"


def config_map(**data: str) -> str:
    """As kubectl prints it: each text as a block."""
    blocks = "".join(f"  {key}: |\n{indent(text, '    ')}" for key, text in data.items())
    return f"apiVersion: v1\ndata:\n{blocks}kind: ConfigMap\nmetadata:\n  name: rebalancer\n"


@pytest.mark.parametrize(
    "text",
    [
        config_map(anything=POLICY),
        config_map(readme="Hello.\n", policy=POLICY, script="kind: Deployment\n"),
        yaml.safe_dump(yaml.safe_load(config_map(policy=POLICY))),
    ],
)
def test_the_one_policy_is_taken(text):
    """Whatever its key is called, whatever else the ConfigMap holds, and with its text in quotes, as in JSON."""
    assert load(text).policy.max_total == 7


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (config_map(readme="Hello.\n", policy=HEAD + "profile: []\n"), 8),
        (yaml.safe_dump({"kind": "ConfigMap", "data": {"policy": HEAD + "profile: []\n"}}), 3),
    ],
)
def test_lines_are_those_of_the_config_map(text, line):
    assert any(str(each).startswith(f"line {line}, profile: ") for each in load(text).warnings)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            config_map(first=POLICY, second=POLICY),
            "line 2, data: of this ConfigMap first and second are each a policy; give one of them",
        ),
        (
            config_map(first="Hello.\n", second="kind: Deployment\n"),
            "line 2, data: no text in the `data` of this ConfigMap is a policy; its keys are first, second",
        ),
        ("kind: ConfigMap", "line 1: no text in the `data` of this ConfigMap is a policy; it has no text"),
        (config_map(policy="kind: Deployment\n"), "line 1: apiVersion is missing"),
        (config_map(a=config_map(b=POLICY)), "line 4, apiVersion: apiVersion 'v1' is not known"),
    ],
)
def test_a_config_map_without_one_policy_is_an_error(text, problem):
    assert problem in problems(text)[0]
