"""What `mark` is asked to do, and the policy and rules that say so."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from rebalancer.errors import UsageError
from rebalancer.marking.rules import MarkingRules, load_marking_rules
from rebalancer.policy.values import Policy
from rebalancer.run.options import MARKING_LEASE, LeaseOptions, Options
from rebalancer.run.policies import parse_sources, policy_text, settings_text
from rebalancer.run.settings_files import Watched

#: A mark must outlive this many intervals, since it is renewed when half of its time is over.
_INTERVALS = 3


@dataclass(frozen=True, slots=True)
class MarkOptions:
    """What `mark` is asked to do.

    Attributes:
        rules: the file with the rules, `-` for standard input.
        run: the policy, the way to the cluster, how often, and what is served.
    """

    rules: str
    run: Options

    @classmethod
    def of(cls, rules: str, run: Options) -> "MarkOptions":
        """Return the options, with marking's own Lease unless another one is named.

        Raises:
            UsageError: they do not go together.
        """
        if run.policy == rules == "-":
            raise UsageError("--policy and --rules cannot both be standard input")
        if run.lease.leader_elect and not run.interval:
            raise UsageError("--leader-elect goes with --interval: a single evaluation holds the Lease by itself")
        is_usual = run.lease.resource_name == LeaseOptions().resource_name
        lease = replace(run.lease, resource_name=MARKING_LEASE) if is_usual else run.lease
        return cls(rules, replace(run, lease=lease))


def rules_text(name: str) -> str:
    """Return the text of a file with rules, `-` for standard input.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return settings_text(name, "marking rules")
    except FileNotFoundError:
        raise UsageError(f"there is no file {name} with marking rules") from None


def check_expiry(rules: MarkingRules, interval: float) -> None:
    """Check that marks outlive the time between two evaluations.

    Raises:
        UsageError: they would expire in between.
    """
    seconds = rules.expiry.total_seconds()
    if seconds < _INTERVALS * interval:
        raise UsageError(
            f"marks would expire between two evaluations: expiry is {seconds:g} s in the rules, and has to be "
            f"three times --interval ({interval:g} s) at least"
        )


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

    @property
    def policy(self) -> Policy:
        """The policy in force: where usage comes from, and which nodes take part."""
        return self._policy.value.policy

    @property
    def rules(self) -> MarkingRules:
        """The rules in force."""
        return self._rules.value

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
