"""The policy and the rules of `mark`, read again when they change."""

import logging
from collections.abc import Callable

from rebalancer.marking.rules import MarkingRules
from rebalancer.marking.rules_file import load_marking_rules
from rebalancer.run.marking.work import MarkOptions, MarkWork, check_expiry, rules_text
from rebalancer.run.policies import parse_sources, policy_text
from rebalancer.run.watched import Watched

_LOG = logging.getLogger(__name__)


class MarkingSettings:
    """The policy and the rules, each read again when its content changes.

    Args:
        asked: names both.
        report: called with what is wrong with them; an empty text if nothing is.

    Raises:
        UsageError: one of them cannot be used.
    """

    def __init__(self, asked: MarkOptions, report: Callable[[str], None] = lambda _: None) -> None:
        self._interval = asked.run.interval
        self._problems = {"policy": "", "rules": ""}
        self._report = report
        name, strict = asked.run.policy, asked.run.strict
        self._policy = Watched(
            "policy", name, policy_text, lambda text: parse_sources(text, name, strict=strict), self._heard("policy")
        )
        self._rules = Watched("rules file", asked.rules, rules_text, self._parse(asked.rules), self._heard("rules"))
        for warning in self._policy.value.warnings:
            _LOG.warning("policy %s: %s", name, warning)

    def work(self) -> MarkWork:
        """Return what is in force."""
        return MarkWork(self._policy.value.policy, self._rules.value)

    def refresh(self) -> None:
        """Read what has changed; what is bad leaves the last good one in force."""
        self._policy.refresh()
        self._rules.refresh()

    def _parse(self, source: str) -> Callable[[str], MarkingRules]:
        def parse(text: str) -> MarkingRules:
            rules = load_marking_rules(text, self._policy.value.policy, source=source)
            check_expiry(rules, self._interval)
            return rules

        return parse

    def _heard(self, which: str) -> Callable[[str], None]:
        def hear(problem: str) -> None:
            self._problems[which] = problem
            self._report("\n".join(filter(None, self._problems.values())))

        return hear
