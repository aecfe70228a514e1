"""One pod's eviction: what is known about it between the first request and the verdict.

    not asked --no answer, or one that says nothing--> in doubt --granted, or the pod is seen gone--> Granted
        |                                                 '--neither, and no time left--> Unknown
        '--a definite answer--> its verdict

Only a grant, or a look at the pod, ends a doubt.  No other answer does, not even a definite no: that answer is about
the latest request, while an earlier one may have succeeded or may still be in progress in the server.

Example: the first request gets a 504 (in doubt), the second one a 429 for a PDB.  The refusal may come from the first
request's own eviction, which used up the budget.  So the pod is looked at for up to 5 s: with a deletionTimestamp it
was evicted (Granted), without one the verdict is Unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.eviction.verdict import GRANTED, Failed, Refused, Unknown, Verdict
from rebalancer.kube.answers import Rejected, Transient, error_of, is_not_found
from rebalancer.kube.client import Client
from rebalancer.kube.halt import Deadline, RetryPolicy
from rebalancer.untrusted.documents import Unreadable, decode_json

#: Seconds for one look, and for all last looks together.  Looks are the only requests after the deadline or a signal.
LOOK_SECONDS = 5.0


class _RequestMetadata(msgspec.Struct, rename="camel"):
    uid: str
    deletion_timestamp: str | None = None


class _RequestedPod(msgspec.Struct):
    kind: str
    metadata: _RequestMetadata


@dataclass(frozen=True, slots=True)
class PodLook:
    """Looks at a pod.

    Attributes:
        uid: of the pod to evict; another UID under the same name means that this pod is gone.
    """

    client: Client
    path: str
    uid: str
    retry_policy: RetryPolicy

    def is_gone(self) -> bool:
        """Return whether the pod is gone, replaced or terminating; False also where that is not known."""
        try:
            return self.body() is None
        except ClusterError:
            return False

    def is_gone_at_last(self) -> bool:
        """Return the same, but look again for some seconds: a server may carry out an accepted request later."""
        try:
            replace(self.retry_policy, seconds=LOOK_SECONDS).call(None, self._demand_gone)
        except ClusterError:
            return False
        return True

    def _demand_gone(self) -> None:
        if self.body() is not None:
            raise Transient("the eviction is in doubt, and the pod is still there")

    def body(self) -> bytes | None:
        """Return the pod as it is now; None where it is gone, replaced or terminating."""
        answer = self.client.look(self.path, deadline=Deadline.after(LOOK_SECONDS, self.retry_policy.clock))
        if is_not_found(answer):
            return None
        if not answer.is_success:
            raise error_of(answer, "GET", self.path)
        return None if _is_leaving(answer.body, self.uid) else answer.body


def _is_leaving(body: bytes, uid: str) -> bool:
    try:
        pod = decode_json(body, _RequestedPod)
    except Unreadable as error:
        raise Rejected(f"the answer is not a pod: {error}") from error
    if pod.kind != "Pod" or not pod.metadata.uid:
        raise Rejected("the answer is not a pod")
    return pod.metadata.uid != uid or pod.metadata.deletion_timestamp is not None


class Unclear(ClusterError):  # noqa: N818  named like the rest of the tree
    """The answer does not say what the server has done, and another try would not help."""


class Modified(ClusterError):  # noqa: N818  named like the rest of the tree
    """The pod has changed since it was decided upon; nothing was done."""


class EvictionRequest:
    """The requests for one pod's eviction; the module describes the states.

    Args:
        ask: sends one request and returns the verdict of a definite answer; raises Transient if there is no definite
            answer yet, and Unclear if there will be none.
    """

    def __init__(self, ask: Callable[[], Verdict], look: PodLook) -> None:
        self._ask = ask
        self._look = look
        self._is_in_doubt = False

    def attempt(self) -> Verdict:
        """Send one request, unless a look at the pod ends an earlier doubt.

        Raises:
            Transient: another try may succeed.
            Modified: the pod has changed, and no earlier request can have changed it.
            ClusterError: another try would not help.
        """
        if self._is_in_doubt and self._look.is_gone():
            return GRANTED
        try:
            verdict = self._ask()
        except Transient as error:
            self._is_in_doubt |= error.maybe_done
            raise
        except Unclear:
            self._is_in_doubt = True
            raise
        except Modified as error:
            if self._is_in_doubt:
                raise Unclear(f"an earlier try had no clear answer, and the pod has changed: {error}") from error
            raise
        if verdict.granted or not self._is_in_doubt:
            return verdict
        if verdict.gone:
            return GRANTED
        raise Unclear(f"an earlier try had no clear answer, and this one was refused: {_words(verdict)}")

    def conclude(self, error: ClusterError) -> Verdict:
        """Return the verdict when, for this reason, no further request is sent; in doubt, look at the pod first."""
        if not self._is_in_doubt:
            return Failed(str(error))
        if self._look.is_gone_at_last():
            return GRANTED
        return Unknown(f"{error}; the pod may have been evicted all the same")


def _words(verdict: Verdict) -> str:
    match verdict:
        case Refused(cause):
            return str(cause.details.get("message", cause.code.value))
        case Failed(words) | Unknown(words):
            return words
    return "granted"
