"""The rules by which nodes are marked, as their file has them (docs/marking.md)."""

import json
import re
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from rebalancer.cluster.selectors import check_label_value
from rebalancer.marking.sign import PRESSURE_KEY, Sign, read_sign
from rebalancer.policy.arguments import Duration, Part, Percent, ResourceName
from rebalancer.policy.usage import NodeLabel

API_VERSION = "rebalancer/v1"
KIND = "MarkingRules"

_WHOLE = 100
_SHORTEST_FOR = timedelta(minutes=1)
_SHORTEST_EXPIRY = timedelta(seconds=5)
_LONGEST_EXPIRY = timedelta(days=1)


def _share(value: object) -> int:
    found = re.fullmatch(r"(\d{1,3})\s*%", value, re.ASCII) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[1]) <= _WHOLE:
        shown = repr(value)[:40]
        raise ValueError(f"{shown} is not a share: write a whole percentage between 1% and 100%, like 50%")
    return int(found[1])


Share = Annotated[int, BeforeValidator(_share), WithJsonSchema({"type": "string", "pattern": r"^\d{1,3}%$"})]
"""A share of the nodes such as `50%`, as a whole number of percent."""


def _rule_name(name: str) -> str:
    try:
        check_label_value(name)
    except ValueError:
        name = ""
    if not name:
        raise ValueError(
            "a rule's name is the value of a label: write at most 63 letters, digits, '-', '_' and '.', "
            "with a letter or digit at both ends"
        )
    return name


RuleName = Annotated[str, AfterValidator(_rule_name)]


class PressureRule(Part):
    """When a node is under pressure: above one bound until it is below another."""

    query: str = Field("", description="In PromQL; its result is an instant vector with a value for each node.")
    node: NodeLabel = Field(NodeLabel(), description="How a series of the query names its node.")
    resource: ResourceName | None = Field(
        None, description="Instead of a query: this resource in percent, by the policy's metricsUtilization."
    )
    above: Percent = Field(gt=0, description="A node whose value is above this is marked.")
    below: Percent = Field(gt=0, description="A marked node whose value is below this is cleared.")
    lasting: Duration = Field(
        timedelta(0), alias="for", description="For how long a value has to be above or below; at least 1m, or absent."
    )

    @field_validator("query")
    @classmethod
    def _stripped(cls, query: str) -> str:
        return query.strip()

    @field_validator("lasting")
    @classmethod
    def _long_enough(cls, lasting: timedelta) -> timedelta:
        if lasting and lasting < _SHORTEST_FOR:
            raise ValueError("for is at least 1m; leave it out for the value of the moment")
        return lasting

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.query) == bool(self.resource):
            raise ValueError("give either query (PromQL) or resource (measured by the policy's metricsUtilization)")
        if self.resource and self.model_fields_set & {"node", "lasting"}:
            raise ValueError("node and for go with query only; for a resource the policy says them (window)")
        if self.below > self.above:
            raise ValueError(f"below ({self.below:g}) is more than above ({self.above:g}): no value clears a mark")
        return self


class Signs(Part):
    """What a marked node carries: a label, a soft taint, or both."""

    label: Sign | None = Field(None, description="KEY or KEY=VALUE; with the key alone the value is the rule's name.")
    taint: Sign | None = Field(None, description="The same for a taint with the effect PreferNoSchedule.")

    @field_validator("label", "taint", mode="before")
    @classmethod
    def _parsed(cls, value: Any) -> Any:
        return read_sign(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.label is None and self.taint is None:
            raise ValueError(f"a mark is a label, a taint, or both: write `label: {PRESSURE_KEY}`")
        return self


class MarkingRules(Part):
    """The rules, what marked nodes carry, how many may be marked, and for how long."""

    api_version: Literal["rebalancer/v1"] = Field("rebalancer/v1", description="rebalancer/v1")
    kind: Literal["MarkingRules"] = Field("MarkingRules", description="MarkingRules")
    rules: dict[RuleName, PressureRule] = Field(description="By name; the first that marks a node names its label.")
    mark: Signs = Field(Signs(label=Sign(PRESSURE_KEY)), description="What marked nodes carry.")
    max_nodes: Share = Field(50, description="The largest share of nodes that may be marked at a time.")
    expiry: Duration = Field(timedelta(minutes=15), description="How long a mark stays without a sample.")

    @field_validator("rules")
    @classmethod
    def _some(cls, rules: dict[str, PressureRule]) -> dict[str, PressureRule]:
        if not rules:
            raise ValueError("give at least one rule, like `cpu: {query: ..., above: 0.8, below: 0.7}`")
        return rules

    @field_validator("expiry")
    @classmethod
    def _sensible(cls, expiry: timedelta) -> timedelta:
        if not _SHORTEST_EXPIRY <= expiry <= _LONGEST_EXPIRY:
            raise ValueError("expiry has to be between 5s and 24h")
        return expiry


if __name__ == "__main__":  # for `make schema`
    print(json.dumps(MarkingRules.model_json_schema(by_alias=True), indent=2))  # noqa: T201
