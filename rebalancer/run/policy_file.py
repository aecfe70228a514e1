"""The policy of a loop: when its content changes it is read again; if the new one is bad, the old one is kept."""

from collections.abc import Callable

from rebalancer.policy.values import LoadedPolicy
from rebalancer.run.policies import parse_policy, policy_text
from rebalancer.run.watched import Report, Watched
from rebalancer.run.work import Work


class PolicyFile:
    """The policy of that name, and what it asks for now.

    Args:
        name: a file, `-` for standard input, which is read once, or a preset's name.
        report: see `rebalancer.run.watched`.
        strict: whether warnings count as errors.
        make: makes the policy in force ready to run.

    Raises:
        UsageError: there is no such policy, or it has problems.
    """

    def __init__(self, name: str, report: Report, make: Callable[[LoadedPolicy], Work], *, strict: bool) -> None:
        self._make = make
        self._file = Watched("policy", name, policy_text, lambda text: parse_policy(text, name, strict=strict), report)

    def work(self) -> Work:
        """Return what the policy in force asks for, with new strategies: these keep nothing from cycle to cycle."""
        return self._make(self._file.value)

    def refresh(self) -> None:
        """Read the policy again if its content has changed; warn once of a bad one."""
        self._file.refresh()
