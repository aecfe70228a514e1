"""Reads one pod by name: is the pod whose eviction was asked for still there?"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.kube.answers import Answer, Rejected, Transient, error_of
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.retry_policy import RetryPolicy
from rebalancer.untrusted.documents import Unreadable, decode_json

#: Seconds for one look, and for all last looks together.  Looks are the only requests after the deadline or a signal.
LOOK_SECONDS = 5.0


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str
    deletion_timestamp: str | None = None


class _Pod(msgspec.Struct):
    kind: str
    metadata: _Metadata


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


def is_not_found(answer: Answer, plural: str = "pods") -> bool:
    """Return whether the API server says that there is no such object; a 404 from a proxy does not count."""
    return answer.status == HTTPStatus.NOT_FOUND and answer.explanation().details.kind == plural


def _is_leaving(body: bytes, uid: str) -> bool:
    try:
        pod = decode_json(body, _Pod)
    except Unreadable as error:
        raise Rejected(f"the answer is not a pod: {error}") from error
    if pod.kind != "Pod" or not pod.metadata.uid:
        raise Rejected("the answer is not a pod")
    return pod.metadata.uid != uid or pod.metadata.deletion_timestamp is not None
