"""The policy of a loop: when its content changes it is read again; if the new one is bad, the old one is kept."""

import logging
from collections.abc import Callable

from rebalancer.app.policies import parse_policy, policy_text
from rebalancer.app.work import Work
from rebalancer.errors import UsageError
from rebalancer.policy import LoadedPolicy

_LOG = logging.getLogger(__name__)

#: Called after each reading with what is wrong with the policy; an empty text if nothing is wrong.
Report = Callable[[str], None]


class PolicyFile:
    """The policy of that name, and what it asks for now.

    A change is seen by the content, not by the time of the file: a ConfigMap's file is a symbolic link that is swapped.

    Args:
        name: a file, `-` for standard input, which is read once, or a preset's name.
        report: see `Report`.
        strict: whether warnings count as errors.
        make: makes the policy in force ready to run.

    Raises:
        UsageError: there is no such policy, or it has problems.
    """

    def __init__(self, name: str, report: Report, make: Callable[[LoadedPolicy], Work], *, strict: bool) -> None:
        self._name = name
        self._strict = strict
        self._report = report
        self._make = make
        self._text = policy_text(name)
        self._loaded: LoadedPolicy = parse_policy(self._text, name, strict=strict)
        self._problem = ""
        report("")

    def work(self) -> Work:
        """Return what the policy in force asks for, with new strategies: these keep nothing from cycle to cycle."""
        return self._make(self._loaded)

    def refresh(self) -> None:
        """Read the policy again if its content has changed; warn once of a bad one."""
        if self._name == "-":
            return
        try:
            text = policy_text(self._name)
            if text == self._text and not self._problem:
                return
            self._loaded = parse_policy(text, self._name, strict=self._strict)
        except UsageError as error:
            self._keep_last_good(str(error))
            return
        if text != self._text:
            _LOG.warning("the policy %s has changed: the new one is in force", self._name)
        self._text = text
        self._problem = ""
        self._report("")

    def _keep_last_good(self, problem: str) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        _LOG.warning("the last good policy stays in force: %s", problem)
        self._report(problem)
