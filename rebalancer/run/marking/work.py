"""What `mark` is asked to do, and the policy and rules that say so."""

from dataclasses import dataclass, replace

from rebalancer.errors import UsageError
from rebalancer.marking.rules import MarkingRules
from rebalancer.policy.values import Policy
from rebalancer.run.options import LeaseOptions, Options
from rebalancer.run.policies import settings_text

#: The Lease of marking, so that it takes turns with other marking and not with runs that evict.
LEASE = "rebalancer-mark"
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
        lease = replace(run.lease, resource_name=LEASE) if is_usual else run.lease
        return cls(rules, replace(run, lease=lease))


@dataclass(frozen=True, slots=True)
class MarkWork:
    """What an evaluation goes by: where usage comes from, and the rules."""

    policy: Policy
    rules: MarkingRules


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
