"""Evictions: the request, and what its answers mean.

Steps for one pod:

1. POST the Eviction, with the pod's UID and the resourceVersion that was seen last as preconditions.
2. A definite answer is the verdict.  Where nothing was done, try again, for 30 s at most.
3. In doubt, look at the pod before each further try, and for 5 s in the end: gone, replaced or terminating means
   granted, else the verdict is Unknown.
4. Where the pod has changed meanwhile, read it, ask every protection again, and begin anew, three times at most.

The answers of kube-apiserver come from `pkg/registry/core/pod/storage/eviction.go`.  Definite:

    2xx with the Status of a success          granted
    429, the eviction is taken over           granted, in the background: another controller moves the pod later
    404 about the pod                         unknown: it went by itself, or by this request, repeated by a proxy
    409 on the UID in the precondition        unknown for the same reason: a new pod has the name
    409 on the resourceVersion                the pod has changed: read it (step 4); unknown where it leaves or is gone
    404 about the subresource                 failed, and so would all others: the API does not offer evictions
    403 in a namespace that is being deleted  gone: its pods are being deleted
    429 with a DisruptionBudget cause         PDB: it allows no disruption, or is not yet up to date (Retry-After 10);
                                              unknown where the pod leaves all the same
    403 about a poddisruptionbudget           PDB: its status cannot be used, like a negative number
    500, more than one PodDisruptionBudget    PDB
    any code, denied by an admission webhook  Webhook
    401, also with fresh credentials          failed
    any other 429 or 409                      nothing was done; tried again, then failed
    500, a webhook could not be called        nothing was done; tried again, then failed
    any other 4xx                             failed

In doubt, since a server may answer like this after a successful eviction (for example when etcd times out):

    any other 5xx, no answer in time          look at the pod, then try again
    2xx with another body, 3xx, 1xx           from a proxy: look at the pod, do not try again

Once in doubt, only "granted" and "gone" still count: either means that we evicted the pod.  Not even a definite no
ends a doubt: that is about the latest request, while an earlier one may have succeeded, or may still be in progress.
Example: the first request gets a 504, the second one a 429 for a PDB, whose budget the first one's own eviction may
have used up.

A load balancer may send a request twice, and pass on the second answer only.  So an answer from which the pod is gone,
or leaves, never says that it went without us: that is why it is unknown above, and why it spends a limit.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Literal

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import GRANTED, Failed, Granted, Refused, Unknown, Verdict, refused
from rebalancer.kube.answers import HttpAnswer, Rejected, Transient, cut, decoded, is_not_found
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.tries import Deadline, Halt, RetryPolicy
from rebalancer.kube.wire.shared_fields import Metadata

RETRY_FOR_SECONDS = 30.0  # how long one pod's eviction is tried again
#: How often one pod's eviction is begun, where the pod changes meanwhile (a kubelet's status changes it too).
VERSIONS = 3
#: Seconds for one look, and for all last looks together.  Looks are the only requests after the deadline or a signal.
LOOK_SECONDS = 5.0
#: Given a pod as it is now: the verdict if it may not go any more, else its resourceVersion.
Recheck = Callable[[bytes], Verdict | str]
_KIND = {"apiVersion": "policy/v1", "kind": "Eviction"}
_LEAVES = "the pod is gone or leaving, by itself or by this request"
#: In the message of every authorizer (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`).
_NOT_ALLOWED = " cannot create resource "


class Unclear(ClusterError):  # noqa: N818  named like the rest of the tree
    """The answer does not say what the server has done, and another try would not help."""

    maybe_done = True


class Modified(Exception):  # noqa: N818  no error: the eviction begins anew
    """The pod has changed since it was decided upon; nothing was done."""


@dataclass(slots=True)
class Evictions:
    """Asks the API server to evict pods.

    The halt is checked before every request, retries included; a request that is already sent is finished.  A grace
    period of None leaves each pod its own.  Where several threads ask at once a 429 to one of them slows all.
    """

    client: Client
    retry_policy: RetryPolicy
    halt: Halt
    grace_period_seconds: int | None = None
    is_shared: bool = False
    _busy_until: float = -math.inf

    def evict(
        self,
        namespace: str,
        name: str,
        uid: str,
        resource_version: str,
        recheck: Recheck,
        *,
        profile: str,
        strategy: str,
        reason: str,
    ) -> Verdict:
        """Ask the API server to evict one pod, but not a newer pod with the same name, nor one that has changed.

        So the server compares its UID, and its version when it was decided upon unless that is empty.  About a pod
        that has changed `recheck` asks every protection again.  The reason goes into the request's annotations.  No
        answer of a server makes this raise.
        """
        path = path_of("api", "v1", "namespaces", namespace, "pods", name)
        annotations = {
            "requested-by": "sigs.k8s.io/descheduler",
            "reason": f"triggered by {profile}/{strategy}: {reason}",
        }
        metadata: dict[str, object] = {"name": name, "namespace": namespace, "annotations": annotations}
        grace = {} if self.grace_period_seconds is None else {"gracePeriodSeconds": self.grace_period_seconds}
        eviction = PodEviction(self.client, path, uid, self.retry_policy)
        for _ in range(VERSIONS):
            version = {"resourceVersion": resource_version} if resource_version else {}
            options = {"preconditions": {"uid": uid, **version}, **grace}
            body = json.dumps({**_KIND, "metadata": metadata, "deleteOptions": options}).encode()
            try:
                return eviction.verdict(partial(self._ask, f"{path}/eviction", body), self.halt.deadline)
            except Modified as changed:
                try:
                    pod = eviction.look()
                except ClusterError as error:
                    return Failed(f"{changed}; it cannot be read again: {error}")
                found = Unknown(f"{_LEAVES} ({changed})") if pod is None else recheck(pod)
            if not isinstance(found, str):
                return found
            resource_version = found
        return Failed(f"the pod has changed between each of {VERSIONS} looks and the request that followed")

    def _ask(self, path: str, body: bytes) -> Verdict:
        wait = min(self._busy_until - self.retry_policy.clock(), self.halt.deadline.left())
        if wait > 0:
            self.retry_policy.wait(wait)
        answer = self.client.write("POST", path, body, gate=self.halt.check)
        try:
            return verdict_of(answer)
        except Transient as error:
            if self.is_shared and answer.status == HTTPStatus.TOO_MANY_REQUESTS:
                # All threads wait as long as the server asks one of them to, but no longer than one pod is tried.
                asked = min(error.retry_after or self.retry_policy.shortest_wait, self.retry_policy.seconds)
                self._busy_until = max(self._busy_until, self.retry_policy.clock() + asked)
            raise


class _Pod(msgspec.Struct):
    kind: Literal["Pod"]
    metadata: Metadata


@dataclass(slots=True)
class PodEviction:
    """The requests for one pod's eviction, and the looks at it; in doubt an earlier request may have evicted it."""

    client: Client
    path: str
    uid: str
    retry_policy: RetryPolicy
    is_in_doubt: bool = False

    def verdict(self, ask: Callable[[], Verdict], deadline: Deadline) -> Verdict:
        """Ask until there is a verdict; where no further request is sent and a doubt remains, look at the pod.

        Raises Modified where the pod has changed, and no earlier request can have changed it.
        """
        try:
            verdict = self.retry_policy.call(deadline, lambda: self._attempt(ask))
        except ClusterError as error:
            if not self.is_in_doubt:
                return Failed(str(error))
            if self.is_gone(LOOK_SECONDS):
                return GRANTED
            return Unknown(f"{error}; the pod may have been evicted all the same")
        if isinstance(verdict, Refused) and verdict.cause.code is Code.PDB and self.is_gone():
            return Unknown(f"{_LEAVES} ({verdict.cause.details['message']})")
        return verdict

    def _attempt(self, ask: Callable[[], Verdict]) -> Verdict:
        """Send one request, unless a look at the pod ends an earlier doubt."""
        if self.is_in_doubt and self.is_gone():
            return GRANTED
        try:
            verdict = ask()
        except (Transient, Unclear) as error:
            self.is_in_doubt |= error.maybe_done
            raise
        except Modified as error:
            if self.is_in_doubt:
                raise Unclear(f"an earlier try had no clear answer, and the pod has changed: {error}") from error
            raise
        if isinstance(verdict, Granted) or not self.is_in_doubt:
            return verdict
        if verdict.gone:
            return GRANTED
        said = str(verdict.cause.details["message"]) if isinstance(verdict, Refused) else verdict.error
        raise Unclear(f"an earlier try had no clear answer, and this one was refused: {said}")

    def is_gone(self, seconds: float = 0.0) -> bool:
        """Return whether the pod is gone, replaced or terminating; False also where that is not known.

        Look again for so many seconds: a server may carry out an accepted request later.
        """

        def demand_gone() -> None:
            if self.look() is not None:
                raise Transient("the eviction is in doubt, and the pod is still there")

        try:
            replace(self.retry_policy, seconds=seconds).call(None, demand_gone)
        except ClusterError:
            return False
        return True

    def look(self) -> bytes | None:
        """Return the pod as it is now; None where it is gone, replaced or terminating."""
        answer = self.client.look(self.path, deadline=Deadline.after(LOOK_SECONDS, self.retry_policy.clock))
        if is_not_found(answer):
            return None
        body = answer.demanded()
        pod = decoded(body, _Pod, self.path, "a pod").metadata
        if not pod.uid:
            raise Rejected(f"the API server does not answer {self.path} with a pod")
        is_leaving = pod.uid != self.uid or pod.deletion_timestamp is not None
        return None if is_leaving else body


def verdict_of(answer: HttpAnswer) -> Verdict:
    """Return the verdict of a definite answer to an eviction, by the table at the top of this module.

    Else raise Transient where another try may succeed, Unclear, or Modified.
    """
    if answer.is_success and answer.explanation().status == "Success":
        return GRANTED
    if answer.status < HTTPStatus.BAD_REQUEST:
        raise Unclear(f"the API server answers {answer.status} to POST {answer.path}, but not about the eviction")
    said = answer.explanation()
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS and "Eviction triggered evacuation" in said.message:
        return Granted(background=True)
    if is_not_found(answer) or _is_about(answer, "uid"):
        return Unknown(f"{_LEAVES} ({_words(answer)})")
    if refused_by := _refused_by(answer):
        return refused(refused_by, message=_words(answer))
    error = answer.error()
    if _is_about(answer, "resourceversion"):
        raise Modified(str(error))
    is_not_called = answer.status == HTTPStatus.INTERNAL_SERVER_ERROR and "failed calling webhook" in said.message
    if is_not_called or answer.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.CONFLICT):  # nothing was done
        raise Transient(str(error), retry_after=answer.retry_after())
    if isinstance(error, Transient):
        raise error
    if answer.status == HTTPStatus.NOT_FOUND and said.kind:
        return Failed(f"the API server does not offer evictions: {error}", hopeless=True)
    # A refusal by admission has the same code as a missing permission, but another message.
    return Failed(str(error), forbidden=answer.status == HTTPStatus.FORBIDDEN and _NOT_ALLOWED in said.message)


def _refused_by(answer: HttpAnswer) -> Code | None:
    said = answer.explanation()
    by_webhook = "admission webhook " in said.message and "denied the request" in said.message
    if by_webhook or ("ValidatingAdmissionPolicy " in said.message and "denied request" in said.message):
        return Code.WEBHOOK
    if (
        (answer.status == HTTPStatus.TOO_MANY_REQUESTS and said.has_cause("DisruptionBudget"))
        or (answer.status == HTTPStatus.INTERNAL_SERVER_ERROR and "more than one PodDisruptionBudget" in said.message)
        or (answer.status == HTTPStatus.FORBIDDEN and said.details.kind.startswith("poddisruptionbudget"))
    ):
        return Code.PDB
    is_in_ending_namespace = answer.status == HTTPStatus.FORBIDDEN and said.has_cause("NamespaceTerminating")
    return Code.GONE if is_in_ending_namespace else None


def _is_about(answer: HttpAnswer, field: str) -> bool:
    """Return whether a precondition on this field, in lower case, was not met."""
    message = answer.explanation().message.lower()
    return answer.status == HTTPStatus.CONFLICT and f"{field} in" in message and "precondition" in message


def _words(answer: HttpAnswer) -> str:
    status = answer.explanation()
    return cut(" ".join([status.message, *(cause.message for cause in status.details.causes)]))
