"""One pod's eviction: what is known about it between the first request and the verdict.

    NOT_ASKED --no answer, or one that says nothing--> IN_DOUBT --granted, or the pod is seen gone--> DONE
        |                                                 '--neither, and no time left--> IN_DOUBT (verdict: Unknown)
        |--granted--> DONE
        '--a definite no--> REFUSED

Only a grant, or a look at the pod, ends a doubt.  No other answer does, not even a definite no: that answer is about
the latest request, while an earlier one may have succeeded or may still be in progress in the server.

Example: the first request gets a 504 (IN_DOUBT), the second one a 429 for a PDB.  The refusal may come from the first
request's own eviction, which used up the budget.  So the pod is looked at for up to 5 s: with a deletionTimestamp it
was evicted (DONE), without one the verdict is Unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.eviction.verdict import GRANTED, Failed, Refused, Unknown, Verdict
from rebalancer.kube.answers import HttpAnswer, Rejected, Transient, error_of
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.retry_policy import RetryPolicy
from rebalancer.untrusted.documents import Unreadable, decode_json

# Reads one pod by name: is the pod whose eviction was asked for still there?


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
        client: the API server.
        path: of the pod.
        uid: of the pod to evict; another UID under the same name means that this pod is gone.
        retry_policy: how long to wait between the last looks.
    """

    client: Client
    path: str
    uid: str
    retry_policy: RetryPolicy

    def is_gone(self) -> bool:
        """Return whether the pod is gone, replaced or terminating; False also where that is not known."""
        return self._or_false(self._look)

    def is_gone_at_last(self) -> bool:
        """Return the same, but look again for some seconds: a server may carry out an accepted request later."""
        retry_policy = replace(self.retry_policy, seconds=LOOK_SECONDS)
        return self._or_false(lambda: retry_policy.tries()(self._demand_gone))

    def _or_false(self, look: Callable[[], bool]) -> bool:
        try:
            return look()
        except ClusterError:
            return False

    def _demand_gone(self) -> bool:
        if not self._look():
            raise Transient("the eviction is in doubt, and the pod is still there")
        return True

    def body(self) -> bytes | None:
        """Return the pod as it is now; None where it is gone, replaced or terminating.

        Raises:
            ClusterError: that is not known.
        """
        answer = self.client.look(self.path, deadline=Deadline.after(LOOK_SECONDS, self.retry_policy.clock))
        if is_not_found(answer):
            return None
        if not answer.is_success:
            raise error_of(answer, "GET", self.path)
        return None if _is_leaving(answer.body, self.uid) else answer.body

    def _look(self) -> bool:
        return self.body() is None


def is_not_found(answer: HttpAnswer, plural: str = "pods") -> bool:
    """Return whether the API server says that there is no such object; a 404 from a proxy does not count."""
    return answer.status == HTTPStatus.NOT_FOUND and answer.explanation().details.kind == plural


def _is_leaving(body: bytes, uid: str) -> bool:
    try:
        pod = decode_json(body, _RequestedPod)
    except Unreadable as error:
        raise Rejected(f"the answer is not a pod: {error}") from error
    if pod.kind != "Pod" or not pod.metadata.uid:
        raise Rejected("the answer is not a pod")
    return pod.metadata.uid != uid or pod.metadata.deletion_timestamp is not None


class EvictionState(Enum):
    """What is known about an eviction."""

    NOT_ASKED = "no request can have had an effect"
    IN_DOUBT = "a request may have evicted the pod"
    DONE = "the pod goes, by our request"
    REFUSED = "the pod stays, or has gone without us"


class Unclear(ClusterError):  # noqa: N818  named like the rest of the tree
    """The answer does not say what the server has done, and another try would not help."""


class Modified(ClusterError):  # noqa: N818  named like the rest of the tree
    """The pod has changed since it was decided upon; nothing was done."""


class EvictionRequest:
    """The requests for one pod's eviction; the module describes the states.

    Args:
        ask: sends one request and returns the verdict of a definite answer; raises Transient if there is no definite
            answer yet, and Unclear if there will be none.
        is_gone: looks at the pod: is it gone, replaced or terminating?  False when that is not known.
        is_gone_at_last: the same with more tries, since it is the last look.

    Attributes:
        state: what is known about the eviction.
    """

    def __init__(
        self, ask: Callable[[], Verdict], is_gone: Callable[[], bool], is_gone_at_last: Callable[[], bool]
    ) -> None:
        self.state = EvictionState.NOT_ASKED
        self._ask = ask
        self._is_gone = is_gone
        self._is_gone_at_last = is_gone_at_last

    def attempt(self) -> Verdict:
        """Send one request, unless a look at the pod ends an earlier doubt.

        Raises:
            Transient: another try may succeed.
            Modified: the pod has changed, and no earlier request can have changed it.
            ClusterError: another try would not help.
        """
        if self.state is EvictionState.IN_DOUBT and self._is_gone():
            return self._done(GRANTED)
        try:
            verdict = self._ask()
        except Transient as error:
            if error.maybe_done:
                self.state = EvictionState.IN_DOUBT
            raise
        except Unclear:
            self.state = EvictionState.IN_DOUBT
            raise
        except Modified as error:
            if self.state is EvictionState.IN_DOUBT:
                raise Unclear(f"an earlier try had no clear answer, and the pod has changed: {error}") from error
            raise
        return self._heard(verdict)

    def conclude(self, error: ClusterError) -> Verdict:
        """Return the verdict when no further request is sent; in doubt, look at the pod for the last time first.

        Args:
            error: why no further request is sent.
        """
        if self.state is not EvictionState.IN_DOUBT:
            self.state = EvictionState.REFUSED
            return Failed(str(error))
        if self._is_gone_at_last():
            return self._done(GRANTED)
        return Unknown(f"{error}; the pod may have been evicted all the same")

    def _heard(self, verdict: Verdict) -> Verdict:
        if verdict.granted:
            return self._done(verdict)
        if self.state is not EvictionState.IN_DOUBT:
            self.state = EvictionState.IN_DOUBT if isinstance(verdict, Unknown) else EvictionState.REFUSED
            return verdict
        if verdict.gone:
            return self._done(GRANTED)
        raise Unclear(f"an earlier try had no clear answer, and this one was refused: {_words(verdict)}")

    def _done(self, verdict: Verdict) -> Verdict:
        self.state = EvictionState.DONE
        return verdict


def _words(verdict: Verdict) -> str:
    match verdict:
        case Refused(cause):
            return str(cause.figures.get("message", cause.code.value))
        case Failed(words) | Unknown(words):
            return words
    return "granted"
