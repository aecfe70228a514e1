"""What became of a request to evict a pod; `gone` tells whether its node can do without it."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Granted:
    """The pod goes (live: the API server accepted the eviction)."""

    granted: ClassVar[bool] = True
    gone: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Refused:
    """The pod stays, as expected of a rule; no failure.

    Attributes:
        by: the first cause: a protection's name, NodeFit, NamespaceLabelSelector, MinReplicas, TotalLimit,
            NodeLimit, NamespaceLimit, PDB, OwnerShare, Webhook or Gone; of a strategy's own rules NoDestination,
            NoUsage and YoungerThanWindow.
        reason: the cause in words, with its numbers.
    """

    by: str
    reason: str

    granted: ClassVar[bool] = False

    @property
    def gone(self) -> bool:
        """Whether the pod was gone already."""
        return self.by == "Gone"


@dataclass(frozen=True, slots=True)
class Failed:
    """The eviction could not be asked for, or its answer makes no sense.

    Attributes:
        error: what happened, in words.
        forbidden: the credentials lack the permission.
        unknown: no answer came, so the pod may be gone; it counts as evicted where that is the safe side.
    """

    error: str
    forbidden: bool = False
    unknown: bool = False

    granted: ClassVar[bool] = False

    @property
    def gone(self) -> bool:
        """Whether the pod may be gone, and so counts as gone."""
        return self.unknown


Verdict = Granted | Refused | Failed
GRANTED = Granted()
