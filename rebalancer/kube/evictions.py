"""Evictions: the request, and what its answers mean.

What kube-apiserver answers, and where: `pkg/registry/core/pod/storage/eviction.go`.

    2xx                                       granted
    404                                       gone
    409 on the UID in the precondition        gone: a new pod has the name
    403 in a namespace that is being deleted  gone: its pods are going
    429 with a DisruptionBudget cause         PDB: it allows nothing, or is not yet up to date (Retry-After 10)
    403 about a poddisruptionbudget           PDB: its numbers are out of order
    500, more than one PodDisruptionBudget    PDB
    any code, denied by an admission webhook  Webhook
    429, the eviction is taken over           Webhook: another controller moves the pod in its own time
    403 else                                  failed: no permission
    429, 5xx, 409 else, no answer             tried again, then failed
"""

import json
from http import HTTPStatus

from rebalancer.errors import ClusterError
from rebalancer.eviction.verdict import GRANTED, Failed, Refused, Verdict
from rebalancer.kube.answers import Answer, Transient, cut, error_of
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.patience import Deadline, Patience

#: How long one pod's eviction is tried again.
RETRY_FOR_SECONDS = 30.0

REQUESTED_BY = "sigs.k8s.io/descheduler"

_TAKEN_OVER = "Eviction triggered evacuation"
_TWO_PDBS = "more than one PodDisruptionBudget"
_NAMESPACE_GOES = "NamespaceTerminating"


class Evictions:
    """Asks the API server to evict pods.

    Args:
        client: the API server.
        grace_period_seconds: for all pods; None leaves each pod its own.
        patience: how one pod's request is tried again; for 30 s when None.
        deadline: no request is sent after it, a second try neither; one that is on its way is finished.
    """

    def __init__(
        self,
        client: Client,
        *,
        grace_period_seconds: int | None = None,
        patience: Patience | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self._client = client
        self._grace_period_seconds = grace_period_seconds
        self._patience = patience or Patience(seconds=RETRY_FOR_SECONDS)
        self._deadline = deadline

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
            Granted, also when the pod is gone after a request whose answer was lost; refused by PDB, Webhook
            or Gone; else failed.  Nothing that a server does makes it raise.
        """
        path = path_of("api", "v1", "namespaces", namespace, "pods", name, "eviction")
        annotations = {"requested-by": REQUESTED_BY, "reason": f"triggered by {profile}/{strategy}: {reason}"}
        metadata: dict[str, object] = {"name": name, "namespace": namespace, "annotations": annotations}
        request = _Request(self._client, path, self._body(metadata, uid), self._deadline)
        try:
            return self._patience.tries(self._deadline)(request.send)
        except ClusterError as error:
            doubt = "; the pod may have been evicted all the same" if request.in_doubt else ""
            return Failed(f"{error}{doubt}", unknown=request.in_doubt)

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


class _Request:
    """One pod's request; `in_doubt` once a try may have succeeded without our knowing."""

    def __init__(self, client: Client, path: str, body: bytes, deadline: Deadline | None) -> None:
        self._client = client
        self._path = path
        self._body = body
        self._deadline = deadline
        self.in_doubt = False

    def send(self) -> Verdict:
        """Try once; raise Transient when another try may do better."""
        if self._deadline is not None and not self._deadline.left():
            raise Transient("no time left to ask for the eviction", connected=False)
        try:
            answer = self._client.post(self._path, self._body)
            verdict = verdict_of(answer, self._path)
        except Transient as error:
            self.in_doubt = self.in_doubt or error.maybe_done
            raise
        gone = isinstance(verdict, Refused) and verdict.by == "Gone"
        return GRANTED if gone and self.in_doubt else verdict


def verdict_of(answer: Answer, path: str) -> Verdict:
    """Return what an answer to an eviction means; the table stands at the top of this module.

    Raises:
        Transient: another try may do better.
    """
    if answer.is_success:
        return GRANTED
    refused_by = _refused_by(answer)
    if refused_by:
        return Refused(refused_by, _words(answer))
    error = error_of(answer, "POST", path)
    if isinstance(error, Transient):
        raise error
    if answer.status == HTTPStatus.CONFLICT:
        raise Transient(str(error))
    return Failed(str(error), forbidden=answer.status == HTTPStatus.FORBIDDEN)


def _refused_by(answer: Answer) -> str:
    if _is_denied(answer):
        return "Webhook"
    if _is_short_of_budget(answer):
        return "PDB"
    return "Gone" if _is_gone(answer) else ""


def _is_denied(answer: Answer) -> bool:
    message = answer.explanation().message
    by_webhook = "admission webhook " in message and "denied the request" in message
    by_policy = "ValidatingAdmissionPolicy " in message and "denied request" in message
    return by_webhook or by_policy or _TAKEN_OVER in message


def _is_short_of_budget(answer: Answer) -> bool:
    status = answer.explanation()
    is_about_pdb = status.details.kind.startswith("poddisruptionbudget")
    return (
        status.has_cause("DisruptionBudget")
        or _TWO_PDBS in status.message
        or (answer.status == HTTPStatus.FORBIDDEN and is_about_pdb)
    )


def _is_gone(answer: Answer) -> bool:
    status = answer.explanation()
    if answer.status == HTTPStatus.NOT_FOUND:
        return bool(status.kind)  # a 404 that is no Status comes from a proxy that knows no pods
    if answer.status == HTTPStatus.CONFLICT:
        return "uid in" in status.message.lower() and "precondition" in status.message.lower()
    return answer.status == HTTPStatus.FORBIDDEN and status.has_cause(_NAMESPACE_GOES)


def _words(answer: Answer) -> str:
    status = answer.explanation()
    return cut(" ".join([status.message, *(cause.message for cause in status.details.causes)]))
