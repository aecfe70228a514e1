"""What became of a request to evict a pod.

`gone` tells whether its node can do without the pod; `leaving` whether a replacement is to be expected, now or soon.
"""

from dataclasses import dataclass
from typing import ClassVar

#: Another controller is moving the pod, by an eviction of an earlier cycle.
IN_PROGRESS = "InProgress"


@dataclass(frozen=True, slots=True)
class Granted:
    """The pod goes (live: the API server accepted the eviction).

    Attributes:
        background: another controller has taken the eviction over, and moves the pod in its own time.
    """

    background: bool = False

    granted: ClassVar[bool] = True
    gone: ClassVar[bool] = True
    leaving: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Refused:
    """The pod stays, as expected of a rule; no failure.

    Attributes:
        by: the first cause: a protection's name, NodeFit, NamespaceLabelSelector, MinReplicas, TotalLimit,
            NodeLimit, NamespaceLimit, PDB, OwnerShare, Webhook, InProgress, Gone, NoPermission or Closed; of a
            strategy's own rules NoDestination, NoUsage and YoungerThanWindow.
        reason: the cause in words, with its numbers.
    """

    by: str
    reason: str

    granted: ClassVar[bool] = False

    @property
    def gone(self) -> bool:
        """Whether the pod was gone already, or goes without us."""
        return self.by == "Gone" or self.leaving

    @property
    def leaving(self) -> bool:
        """Whether the pod goes without us; the eviction that moves it was counted as the cycle began."""
        return self.by == IN_PROGRESS


@dataclass(frozen=True, slots=True)
class Unknown:
    """The eviction was asked for, and nobody can tell whether it happened: it counts as if it had.

    Attributes:
        error: what happened, in words.
    """

    error: str

    granted: ClassVar[bool] = False
    gone: ClassVar[bool] = True
    leaving: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Failed:
    """The eviction did not happen: it could not be asked for, or the answer is a no that is no rule.

    Attributes:
        error: what happened, in words.
        forbidden: the credentials lack the permission.
    """

    error: str
    forbidden: bool = False

    granted: ClassVar[bool] = False
    gone: ClassVar[bool] = False
    leaving: ClassVar[bool] = False


Verdict = Granted | Refused | Unknown | Failed
GRANTED = Granted()
