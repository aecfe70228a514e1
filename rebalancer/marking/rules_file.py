"""The rules of `rebalancer mark`: read from text and checked against the policy; all problems are reported together."""

from collections.abc import Iterator, Mapping

from rebalancer.errors import MarkingRulesError
from rebalancer.marking.rules import API_VERSION, KIND, MarkingRules
from rebalancer.policy.config_map import WantedDocument, wanted_document
from rebalancer.policy.document import DocumentNode, at
from rebalancer.policy.findings import Findings
from rebalancer.policy.steering import AVOID_KEY, HOLD_KEY, avoid_keys
from rebalancer.policy.usage import PROMETHEUS, MetricsUtilization
from rebalancer.policy.utilization import UtilizationArgs
from rebalancer.policy.validation import read_strictly
from rebalancer.policy.values import Policy

_WANTED = WantedDocument(KIND, API_VERSION.split("/")[0] + "/", "set of marking rules", "sets of marking rules")
_NO_UTILIZATION = "no strategy in the policy has metricsUtilization, which measures it; give a query instead"
_MINIMAL = "`rules: {cpu: {query: ..., above: 0.8, below: 0.7}}`"


def load_marking_rules(text: str, policy: Policy, *, source: str) -> MarkingRules:
    """Read marking rules, or those inside a ConfigMap.

    Args:
        text: YAML or JSON.
        policy: names the sources of usage, and steering's taints, which marks must not use.
        source: where the text is from, for messages.

    Raises:
        MarkingRulesError: the rules cannot be used; all their problems are in it.
    """
    findings = Findings()
    node = wanted_document(text, findings, _WANTED)
    rules = _read(node, findings)
    if rules is not None:
        _check_sources(rules, node, policy, findings)
        _check_taint(rules, node, policy, findings)
    findings.settle(source, strict=True, error=MarkingRulesError)
    assert rules is not None
    return rules


def measured_utilization(policy: Policy) -> MetricsUtilization | None:
    """Return the first `metricsUtilization` in a policy; None if it has none."""
    return next(_utilizations(policy), None)


def _utilizations(policy: Policy) -> Iterator[MetricsUtilization]:
    for profile in policy.profiles:
        for args in profile.args.values():
            if isinstance(args, UtilizationArgs) and args.metrics_utilization:
                yield args.metrics_utilization


def _read(node: DocumentNode, findings: Findings) -> MarkingRules | None:
    if not isinstance(node.value, Mapping):
        if not findings.failed:
            findings.error(node.place, f"this is not a {KIND}; a minimal one is {_MINIMAL}")
        return None
    return read_strictly(MarkingRules, node, findings)


def _check_sources(rules: MarkingRules, node: DocumentNode, policy: Policy, findings: Findings) -> None:
    measured = measured_utilization(policy)
    has_prometheus = any(each.source == PROMETHEUS for each in policy.metrics_providers)
    for name, rule in rules.rules.items():
        if rule.query and not has_prometheus:
            findings.error(
                at(node, "rules", name, "query").place,
                "a query needs Prometheus: add `- source: Prometheus` with its url to the policy's metricsProviders",
            )
        if rule.resource:
            place = at(node, "rules", name, "resource").place
            wrong = measured.mismatch({rule.resource: 0}) if measured else _NO_UTILIZATION
            if wrong:
                findings.error(place, wrong)


def _check_taint(rules: MarkingRules, node: DocumentNode, policy: Policy, findings: Findings) -> None:
    taken = {*avoid_keys(AVOID_KEY), *avoid_keys(policy.steering.key if policy.steering else AVOID_KEY)}
    for kind, sign in (("label", rules.mark.label), ("taint", rules.mark.taint)):
        if sign and sign.key in taken:
            findings.error(at(node, "mark", kind).place, f"{sign.key} is a key of steering: give marks another one")
        if sign and sign.key == HOLD_KEY:
            findings.error(at(node, "mark", kind).place, f"{sign.key} is the key of held nodes: give marks another one")
