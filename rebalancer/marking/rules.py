"""The rules by which nodes are marked: their file (docs/marking.md), read and checked against the policy."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from rebalancer.cluster.selectors import check_label_value, key_fault
from rebalancer.policy.arguments import Duration, Part, Percent, ResourceName, between
from rebalancer.policy.document import DocumentNode, WantedDocument, at, wanted_document
from rebalancer.policy.findings import Findings
from rebalancer.policy.moving import AVOID_KEY, HOLD_KEY, PRESSURE_KEY, avoid_keys
from rebalancer.policy.usage import PROMETHEUS, MetricsUtilization, NodeLabel, UtilizationArgs
from rebalancer.policy.validation import read
from rebalancer.policy.values import Policy

API_VERSION = "rebalancer/v1"
KIND = "MarkingRules"

_WHOLE = 100
_SHORTEST_FOR = timedelta(minutes=1)
#: Domains whose labels and taints belong to Kubernetes.
_RESERVED = ("kubernetes.io", "k8s.io")
_WANTED = WantedDocument(KIND, "rebalancer/", "set of marking rules")
_NO_UTILIZATION = "no strategy in the policy has metricsUtilization, which measures it; give a query instead"
_NO_PROMETHEUS = "a query needs Prometheus: add `- source: Prometheus` with its url to the policy's metricsProviders"
_MINIMAL = "`rules: {cpu: {query: ..., above: 0.8, below: 0.7}}`"


def _share(value: object) -> int:
    found = re.fullmatch(r"(\d{1,3})\s*%", value, re.ASCII) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[1]) <= _WHOLE:
        shown = repr(value)[:40]
        raise ValueError(f"{shown} is not a share: write a whole percentage between 1% and 100%, like 50%")
    return int(found[1])


Share = Annotated[int, BeforeValidator(_share), WithJsonSchema({"type": "string", "pattern": r"^\d{1,3}%$"})]
"""A share of the nodes such as `50%`, as a whole number of percent."""


def _rule_name(name: str) -> str:
    if "/" in name or key_fault(name):
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
            raise ValueError(f"below ({self.below:g}) is more than above ({self.above:g}): values between do both")
        return self


@dataclass(frozen=True, slots=True)
class Sign:
    """A label or a soft taint that shows pressure; without a value each node gets the name of its first rule."""

    key: str
    value: str = ""

    def on(self, rule: str) -> "Sign":
        """Return the sign as a node carries it that is marked by this rule."""
        return Sign(self.key, self.value or rule)

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key

    def covers(self, key: str, value: str) -> bool:
        """Return whether a label or taint with this key and value is one of ours."""
        return key == self.key and self.value in ("", value)


def read_sign(text: str) -> Sign:
    """Read KEY or KEY=VALUE; raises ValueError if the API server would refuse it, or the key is one of Kubernetes."""
    key, equals, value = text.partition("=")
    if fault := key_fault(key):
        raise ValueError(f"{key!r} cannot be the key of a mark: {fault}")
    prefix = key.rpartition("/")[0]
    if any(prefix == domain or prefix.endswith(f".{domain}") for domain in _RESERVED):
        raise ValueError(f"{key!r} cannot be the key of a mark: keys under {prefix} belong to Kubernetes")
    if equals and not value:
        raise ValueError(f"{text!r} has no value: leave out the =, and the value is the name of the rule")
    check_label_value(value)
    return Sign(key, value)


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


_expiring = between(timedelta(seconds=5), timedelta(days=1), "expiry has to be between 5s and 24h")
Expiry = Annotated[Duration, AfterValidator(_expiring)]


class MarkingRules(Part):
    """The rules, what marked nodes carry, how many may be marked, and for how long."""

    api_version: Literal["rebalancer/v1"] = Field("rebalancer/v1", description="rebalancer/v1")
    kind: Literal["MarkingRules"] = Field("MarkingRules", description="MarkingRules")
    rules: dict[RuleName, PressureRule] = Field(description="By name; the first that marks a node names its label.")
    mark: Signs = Field(Signs(label=Sign(PRESSURE_KEY)), description="What marked nodes carry.")
    max_nodes: Share = Field(50, description="The largest share of nodes that may be marked at a time.")
    expiry: Expiry = Field(timedelta(minutes=15), description="How long a mark stays without a sample.")

    @field_validator("rules")
    @classmethod
    def _some(cls, rules: dict[str, PressureRule]) -> dict[str, PressureRule]:
        if not rules:
            raise ValueError("give at least one rule, like `cpu: {query: ..., above: 0.8, below: 0.7}`")
        return rules


def load_marking_rules(text: str, policy: Policy, *, source: str) -> MarkingRules:
    """Read marking rules, also in a ConfigMap, beside this policy; raises PolicyError with all their problems."""
    findings = Findings()
    node = wanted_document(text, findings, _WANTED)
    rules = None
    if isinstance(node.value, Mapping):
        rules = read(MarkingRules, node, findings)
    elif not findings.failed:
        findings.error(node.place, f"this is not a {KIND}; a minimal one is {_MINIMAL}")
    if rules is not None:
        _check_sources(rules, node, policy, findings)
        _check_taint(rules, node, policy, findings)
    findings.settle(source, strict=True, what="marking rules")
    assert rules is not None
    return rules


def measured_utilization(policy: Policy) -> MetricsUtilization | None:
    """Return the first `metricsUtilization` in a policy; None if it has none."""
    args = (each for profile in policy.profiles for each in profile.args.values() if isinstance(each, UtilizationArgs))
    return next((each.metrics_utilization for each in args if each.metrics_utilization), None)


def _check_sources(rules: MarkingRules, node: DocumentNode, policy: Policy, findings: Findings) -> None:
    measured = measured_utilization(policy)
    has_prometheus = any(each.source == PROMETHEUS for each in policy.metrics_providers)
    for name, rule in rules.rules.items():
        if rule.query and not has_prometheus:
            findings.error(at(node, "rules", name, "query").place, _NO_PROMETHEUS)
        if rule.resource and (wrong := measured.mismatch({rule.resource: 0}) if measured else _NO_UTILIZATION):
            findings.error(at(node, "rules", name, "resource").place, wrong)


def _check_taint(rules: MarkingRules, node: DocumentNode, policy: Policy, findings: Findings) -> None:
    taken = {*avoid_keys(AVOID_KEY), *avoid_keys(policy.steering.key if policy.steering else AVOID_KEY)}
    owners = {HOLD_KEY: "the key of held nodes", **dict.fromkeys(taken, "a key of steering")}
    for kind, sign in (("label", rules.mark.label), ("taint", rules.mark.taint)):
        if sign and sign.key in owners:
            findings.error(at(node, "mark", kind).place, f"{sign.key} is {owners[sign.key]}: give marks another one")


if __name__ == "__main__":  # for `make schema`
    print(json.dumps(MarkingRules.model_json_schema(by_alias=True), indent=2))  # noqa: T201
