"""Arguments are decoded as the descheduler decodes them."""

from typing import Any

import pytest
from pydantic import ValidationError

from rebalancer.policy.arguments import Args, Int, Names, Part, PodArgs, Selector, Thresholds
from tests.make import pod


class Inner(Part):
    some_number: Int = 0


class Sample(Args):
    some_flag: bool = False
    some_names: Names = ()
    some_selector: Selector | None = None
    some_thresholds: Thresholds | None = None
    inner: Inner = Inner()


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"someFlag": "true"}, "valid boolean"),
        ({"someFlag": 1}, "valid boolean"),
        ({"someNames": [1]}, "valid string"),
        ({"inner": {"other": 1}}, "other"),
        ({"inner": {"kind": "x"}}, "kind"),  # which is tolerated at the top alone
        ({"someSelector": {"matchLabels": {"a b": "c"}}}, "not a label key"),
        ({"someThresholds": {}}, "at least one resource"),
        ({"someThresholds": {"cpus": 5}}, "is not a resource"),
        ({"someThresholds": {"cpu": 101}}, "less than or equal to 100"),
    ],
)
def test_no_type_is_guessed_from_another(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Sample.model_validate(args)


def test_null_counts_as_absent() -> None:
    nulls = dict.fromkeys(("someFlag", "someNames", "someSelector", "inner"))

    assert Sample.model_validate(nulls) == Sample.model_validate({"inner": {"someNumber": None}}) == Sample()


@pytest.mark.parametrize("name", ["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"])
def test_resources_that_thresholds_may_name(name: str) -> None:
    assert Sample.model_validate({"someThresholds": {name: 20.5}}).some_thresholds == {name: 20.5}


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
