"""Evictions: the request, and what its answers mean.

What kube-apiserver answers, and where: `pkg/registry/core/pod/storage/eviction.go`.

Definite:

    2xx with the Status of a success          granted
    429, the eviction is taken over           granted, in the background: another controller moves the pod in its time
    404 of the API server's                   gone
    409 on the UID in the precondition        gone: a new pod has the name
    403 in a namespace that is being deleted  gone: its pods are going
    429 with a DisruptionBudget cause         PDB: it allows nothing, or is not yet up to date (Retry-After 10)
    403 about a poddisruptionbudget           PDB: its numbers are out of order
    500, more than one PodDisruptionBudget    PDB
    any code, denied by an admission webhook  Webhook
    403 else                                  failed: no permission
    401, also with fresh credentials          failed
    any other 4xx but these two:              failed
    429 else, 409 else                        nothing was done; tried again, then failed
    500, a webhook could not be called        nothing was done; tried again, then failed

In doubt, since a server may answer so after the eviction went through (etcd's time-outs do that):

    5xx else, no answer, none in time         the pod is looked at, and asked for again; see `eviction_request`
    2xx with another body, 3xx, 1xx           a proxy's; the pod is looked at

Once in doubt, the definite answers settle nothing but "granted" and "gone": either means evicted by us.
"""

import json
from http import HTTPStatus

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import GRANTED, Failed, Granted, Verdict, refused
from rebalancer.kube.answers import Answer, Transient, cut, error_of
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.eviction_request import EvictionRequest, Unclear
from rebalancer.kube.halt import Halt
from rebalancer.kube.pod_look import PodLook, is_not_found
from rebalancer.kube.retry_policy import RetryPolicy

#: How long one pod's eviction is tried again.
RETRY_FOR_SECONDS = 30.0

REQUESTED_BY = "sigs.k8s.io/descheduler"

_TAKEN_OVER = "Eviction triggered evacuation"
_TWO_PDBS = "more than one PodDisruptionBudget"
_WEBHOOK_NOT_CALLED = "failed calling webhook"
_NAMESPACE_GOES = "NamespaceTerminating"
#: The words of every authorizer (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`).
_NOT_ALLOWED = " cannot create resource "


class Evictions:
    """Asks the API server to evict pods.

    Args:
        client: the API server.
        grace_period_seconds: for all pods; None leaves each pod its own.
        retry_policy: how one pod's request is tried again; for 30 s when None.
        halt: asked before every request, a second try too; one that is on its way is finished.
    """

    def __init__(
        self,
        client: Client,
        *,
        grace_period_seconds: int | None = None,
        retry_policy: RetryPolicy | None = None,
        halt: Halt | None = None,
    ) -> None:
        self._client = client
        self._grace_period_seconds = grace_period_seconds
        self._retry_policy = retry_policy or RetryPolicy(seconds=RETRY_FOR_SECONDS)
        self._halt = halt or Halt()

    def evict(self, namespace: str, name: str, uid: str, *, profile: str, strategy: str, reason: str) -> Verdict:
        """Ask to evict one pod, and no other that has since taken its name.

        Args:
            namespace: of the pod.
            name: of the pod.
            uid: of the pod; the server compares it.
            profile: on whose behalf.
            strategy: on whose behalf.
            reason: why, in words; goes into the request's annotations.

        Returns:
            Granted, also when the pod is seen to be gone after a request whose answer was lost; refused by PDB, Webhook
            or Gone; unknown when a doubt stays; else failed.  Nothing that a server does makes it raise.
        """
        path = path_of("api", "v1", "namespaces", namespace, "pods", name)
        annotations = {"requested-by": REQUESTED_BY, "reason": f"triggered by {profile}/{strategy}: {reason}"}
        body = self._body({"name": name, "namespace": namespace, "annotations": annotations}, uid)
        look = PodLook(self._client, path, uid, self._retry_policy)
        request = EvictionRequest(lambda: self._ask(f"{path}/eviction", body), look.is_gone, look.is_gone_at_last)
        try:
            return self._retry_policy.tries(self._halt.deadline)(request.attempt)
        except ClusterError as error:
            return request.conclude(error)

    def _body(self, metadata: dict[str, object], uid: str) -> bytes:
        options: dict[str, object] = {"preconditions": {"uid": uid}}
        if self._grace_period_seconds is not None:
            options["gracePeriodSeconds"] = self._grace_period_seconds
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": metadata,
            "deleteOptions": options,
        }
        return json.dumps(eviction).encode()

    def _ask(self, path: str, body: bytes) -> Verdict:
        return verdict_of(self._client.post(path, body, gate=self._halt.check), path)


class _Said(msgspec.Struct):
    """What the body of an answer without failure says."""

    kind: str = ""
    status: str = ""


def verdict_of(answer: Answer, path: str) -> Verdict:
    """Return what a definite answer to an eviction means; the table stands at the top of this module.

    Raises:
        Transient: another try may do better; its `maybe_done` says whether this one may have gone through.
        Unclear: it says nothing of the eviction.
    """
    if answer.is_success and _is_agreed(answer):
        return GRANTED
    if answer.status < HTTPStatus.BAD_REQUEST:
        raise Unclear(f"the API server answers {answer.status} to POST {path}, but not about the eviction")
    if _is_taken_over(answer):
        return Granted(background=True)
    if refused_by := _refused_by(answer):
        return refused(refused_by, message=_words(answer))
    error = error_of(answer, "POST", path)
    if _is_undone(answer):
        raise Transient(str(error), retry_after=answer.retry_after())
    if isinstance(error, Transient):
        raise error
    return Failed(str(error), forbidden=_is_unauthorised(answer))


def _is_unauthorised(answer: Answer) -> bool:
    """Return whether the credentials lack the permission; admission says no with the same code and other words."""
    return answer.status == HTTPStatus.FORBIDDEN and _NOT_ALLOWED in answer.explanation().message


def _is_agreed(answer: Answer) -> bool:
    try:
        said = msgspec.json.decode(answer.body, type=_Said)
    except msgspec.DecodeError:
        return False
    return said.kind == "Status" and said.status == "Success"


def _is_taken_over(answer: Answer) -> bool:
    return answer.status == HTTPStatus.TOO_MANY_REQUESTS and _TAKEN_OVER in answer.explanation().message


def _is_undone(answer: Answer) -> bool:
    """Return whether nothing was done for now, and another try may do better."""
    if answer.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return _WEBHOOK_NOT_CALLED in answer.explanation().message
    return answer.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.CONFLICT)


def _refused_by(answer: Answer) -> Code | None:
    if _is_denied(answer):
        return Code.WEBHOOK
    if _is_short_of_budget(answer):
        return Code.PDB
    return Code.GONE if _is_gone(answer) else None


def _is_denied(answer: Answer) -> bool:
    message = answer.explanation().message
    by_webhook = "admission webhook " in message and "denied the request" in message
    by_policy = "ValidatingAdmissionPolicy " in message and "denied request" in message
    return by_webhook or by_policy


def _is_short_of_budget(answer: Answer) -> bool:
    status = answer.explanation()
    is_about_pdb = status.details.kind.startswith("poddisruptionbudget")
    return (
        (answer.status == HTTPStatus.TOO_MANY_REQUESTS and status.has_cause("DisruptionBudget"))
        or (answer.status == HTTPStatus.INTERNAL_SERVER_ERROR and _TWO_PDBS in status.message)
        or (answer.status == HTTPStatus.FORBIDDEN and is_about_pdb)
    )


def _is_gone(answer: Answer) -> bool:
    status = answer.explanation()
    if is_not_found(answer):
        return True
    if answer.status == HTTPStatus.CONFLICT:
        return "uid in" in status.message.lower() and "precondition" in status.message.lower()
    return answer.status == HTTPStatus.FORBIDDEN and status.has_cause(_NAMESPACE_GOES)


def _words(answer: Answer) -> str:
    status = answer.explanation()
    return cut(" ".join([status.message, *(cause.message for cause in status.details.causes)]))
