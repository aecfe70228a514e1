"""What became of a request to evict a pod.

`gone` says whether the pod leaves its node; `leaving` whether a replacement is to be expected, now or soon.
"""

from typing import Any, ClassVar

import msgspec

from rebalancer.eviction.causes import Cause, Code, cause


class Granted(msgspec.Struct, frozen=True):
    """The pod goes (live: the API server accepted the eviction)."""

    background: bool = False  # another controller has taken the eviction over, and moves the pod in its own time
    restarted: str = ""  # name of the Deployment whose rollout moves the pod; empty if the pod is evicted

    granted: ClassVar[bool] = True
    gone: ClassVar[bool] = True
    leaving: ClassVar[bool] = True


class Refused(msgspec.Struct, frozen=True):
    """The pod stays because of a rule, for the first cause that keeps it; this is not a failure."""

    cause: Cause

    granted: ClassVar[bool] = False

    @property
    def by(self) -> str:
        """The cause's code, as reports spell it."""
        return self.cause.code.value

    @property
    def gone(self) -> bool:
        """Whether the pod was gone already, or is leaving without us."""
        return self.cause.code is Code.GONE or self.leaving

    @property
    def leaving(self) -> bool:
        """Whether the pod is leaving without us; its eviction was counted when the cycle began."""
        return self.cause.code is Code.IN_PROGRESS


class Unknown(msgspec.Struct, frozen=True):
    """The eviction was asked for, but it is not known whether it happened; it counts as if it had."""

    error: str

    granted: ClassVar[bool] = False
    gone: ClassVar[bool] = True
    leaving: ClassVar[bool] = True


class Failed(msgspec.Struct, frozen=True):
    """The eviction did not happen: it could not be asked for, or was rejected for a reason that no rule explains."""

    error: str
    forbidden: bool = False  # the credentials lack the permission
    hopeless: bool = False  # no other pod's would succeed either

    granted: ClassVar[bool] = False
    gone: ClassVar[bool] = False
    leaving: ClassVar[bool] = False


Verdict = Granted | Refused | Unknown | Failed
GRANTED = Granted()


def refused(code: Code, **details: Any) -> Refused:
    """Return a refusal by this cause."""
    return Refused(cause(code, **details))
