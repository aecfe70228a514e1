"""Arguments are decoded as the descheduler decodes them."""

from typing import Any

import pytest
from pydantic import Field, ValidationError

from rebalancer.policy.arguments import Args, Count, Int, Names, Part, Percent, PodArgs, Selector, Thresholds
from tests.make import pod


class Inner(Part):
    some_number: Int = 0


class Sample(Args):
    whole_number: Int = 0
    some_count: Count = 0
    some_percent: Percent = 0
    some_flag: bool = False
    some_names: Names = ()
    some_selector: Selector | None = None
    some_thresholds: Thresholds | None = None
    inner: Inner = Inner()
    required_list: Names = Field(("a",), alias="PascalList")


def read(**args: Any) -> Sample:
    return Sample.model_validate(args)


@pytest.mark.parametrize(
    ("key", "value", "read_as"),
    [
        pytest.param("wholeNumber", 5, 5, id="a whole number"),
        pytest.param("wholeNumber", 5.0, 5, id="a whole number with a point"),
        pytest.param("wholeNumber", -5, -5, id="a negative one"),
        pytest.param("somePercent", 20.5, 20.5, id="a fraction of a percentage"),
        pytest.param("somePercent", 20, 20, id="a whole percentage"),
        pytest.param("someFlag", True, True, id="a flag"),
        pytest.param("someNames", ["a", "b"], ("a", "b"), id="a list"),
        pytest.param("inner", {"someNumber": 1.0}, Inner(some_number=1), id="an object"),
        pytest.param("PascalList", [], (), id="a key with a spelling of its own"),
    ],
)
def test_values_are_taken_as_they_stand(key: str, value: object, read_as: object) -> None:
    assert getattr(read(**{key: value}), next(n for n, f in Sample.model_fields.items() if f.alias == key)) == read_as


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param({"someFlag": "true"}, "valid boolean", id="a text for a flag"),
        pytest.param({"someFlag": 1}, "valid boolean", id="a number for a flag"),
        pytest.param({"someNames": [1]}, "valid string", id="a number in a list of words"),
        pytest.param({"inner": {"other": 1}}, "other", id="an unknown key inside"),
        pytest.param({"inner": {"kind": "x"}}, "kind", id="kind is tolerated at the top alone"),
        pytest.param({"someSelector": {"matchLabels": {"a b": "c"}}}, "not a label key", id="a bad selector"),
        pytest.param({"someThresholds": {}}, "at least one resource", id="no thresholds"),
        pytest.param({"someThresholds": {"cpus": 5}}, "is not a resource", id="an unknown resource"),
        pytest.param({"someThresholds": {"cpu": 101}}, "less than or equal to 100", id="more than all"),
    ],
)
def test_no_type_is_guessed_from_another(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        read(**args)


def test_null_counts_as_absent() -> None:
    nulls = dict.fromkeys(("wholeNumber", "someFlag", "someNames", "someSelector", "PascalList"))

    assert read(**nulls, inner={"someNumber": None}) == Sample()
    assert Sample.model_validate(None) == Sample()


def test_version_and_kind_are_tolerated() -> None:
    assert read(apiVersion="x", kind=5) == Sample()


@pytest.mark.parametrize("name", ["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"])
def test_resources_that_thresholds_may_name(name: str) -> None:
    assert read(someThresholds={name: 20.5}).some_thresholds == {name: 20.5}


@pytest.mark.parametrize(
    ("args", "selects"),
    [
        ({}, True),
        ({"namespaces": {"include": ["a"]}}, True),
        ({"namespaces": {"include": ["b"]}}, False),
        ({"namespaces": {"exclude": ["a"]}}, False),
        ({"namespaces": {"exclude": ["b"]}}, True),
        ({"labelSelector": {}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "other", "operator": "Exists"}]}}, False),
    ],
)
def test_pods_are_narrowed_by_namespace_and_labels(args: dict[str, Any], selects: bool) -> None:
    """Only some namespaces, or all but some; an empty selector matches everything."""
    assert PodArgs.model_validate(args).selects(pod("p", namespace="a", labels={"app": ""})) is selects
