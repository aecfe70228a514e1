"""Every error of the program, by meaning.

    RebalancerError
    ├── UsageError            bad options or environment            exit 2
    │   ├── PolicyError       the policy, or another document, cannot be used as it is    exit 2
    │   └── SnapshotError     the snapshot file cannot be read      exit 2
    ├── ClusterError          no cluster to work on                 exit 3
    │   ├── Unreachable       no answer, or none in time
    │   ├── NoCredentials     no kubeconfig, bad context, refused credentials
    │   ├── Forbidden         names the verb and the resource that is missing
    │   └── MarksLeft         our own soft taints stay on nodes     exit 4
    ├── Declined              the answer to the question is no      exit 0
    └── StrategyError         one strategy cannot run; the others do
        └── SourceError       a source of usage has no answer, or none that can be used
    Interrupted               (BaseException) a signal before the first eviction; exit 143 or 130
    CycleOver                 (BaseException) the total limit ends a strategy; not an error
    CycleStopped              (BaseException) a signal, the deadline or a pause ends the cycle

Expected refusals are verdicts (`rebalancer.eviction.verdict`), not exceptions.
"""

from dataclasses import dataclass

#: Why a document is refused.
CANNOT_BE_USED = "cannot be used"
STRICT = "is refused, since strict reading lets nothing pass that has no effect"
UNSAFE = "is not safe for a live run (a dry run warns of this)"


class RebalancerError(Exception):
    """What went wrong, in words for the person who runs the program."""

    exit_code = 1


class UsageError(RebalancerError):
    """The command line, the policy or a file cannot be used as it is."""

    exit_code = 2


class Declined(RebalancerError):  # noqa: N818  it is no error
    """The person who was asked does not want it."""

    exit_code = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a document: where it is, what it is, and what to do about it.

    Attributes:
        path: keys and indices from the top, like `profiles[0].pluginConfig[1].args.cpu`.
        message: what is wrong, and what to do about it.
        line: line in the file, counted from 1; 0 where there is none.
    """

    path: str
    message: str
    line: int = 0

    def __str__(self) -> str:
        place = ", ".join(part for part in (f"line {self.line}" if self.line else "", self.path) if part)
        return f"{place}: {self.message}" if place else self.message


class PolicyError(UsageError):
    """The policy, or another document, has problems; all of them are in `problems`.

    Args:
        source: where the document is from.
        problems: in the order of the file.
        why: why it is refused.
        what: what it is.
    """

    def __init__(
        self, source: str, problems: tuple[Problem, ...], *, why: str = CANNOT_BE_USED, what: str = "policy"
    ) -> None:
        self.source = source
        self.problems = problems
        super().__init__("\n".join([f"{what} {source} {why}:", *(f"  {each}" for each in problems)]))


class SnapshotError(UsageError):
    """The snapshot file cannot be read; the message names the place."""


class ClusterError(RebalancerError):
    """There is no cluster to work on."""

    exit_code = 3


class Unreachable(ClusterError):  # noqa: N818  the field's word
    """The API server gave no answer, or none in time."""


class NoCredentials(ClusterError):  # noqa: N818  the field's word
    """No usable kubeconfig, context or credentials."""


class Forbidden(ClusterError):  # noqa: N818  the field's word
    """The credentials lack a permission; the message names verb and resource."""


class MarksLeft(ClusterError):  # noqa: N818  it names what stays on nodes
    """Our own soft taints stay on nodes that could not be changed; the next run takes them off."""

    exit_code = 4


class StrategyError(RebalancerError):
    """A strategy cannot run on this cluster or with these arguments; the next one still does."""


class SourceError(StrategyError):
    """A source of usage has no answer, or none that can be used."""


class Interrupted(BaseException):
    """A signal ended the program before it evicted anything; the message names it.

    Derives from BaseException so that no strategy takes it for an error of its own.

    Attributes:
        exit_code: 128 plus the number of the signal, as shells have it.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(message)


class CycleOver(BaseException):
    """The limit for the whole cycle is used up: the running strategy ends.

    Derives from BaseException because it is not an error.
    """


class CycleStopped(BaseException):
    """A signal, the deadline, a pause or trouble ends the cycle after the request in flight; `reason` says which.

    Derives from BaseException so that no strategy takes it for an error of its own.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)
