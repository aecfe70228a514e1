"""Asks the API server what these credentials may do (SelfSubjectAccessReview), before anything is changed."""

from typing import Literal, NamedTuple

import msgspec

from rebalancer.errors import Forbidden
from rebalancer.kube.answers import decoded
from rebalancer.kube.client import Client
from rebalancer.kube.tries import Deadline

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SECONDS = 30.0  # for all reviews of one purpose together
WRITE_VERBS = ("get", "patch")  # the verbs that every write to nodes and rollouts needs, besides `list`


class WritePurpose(NamedTuple):
    """In words: who writes what, what was not done without the permission, and what to do without it."""

    writes: str
    consequence: str
    otherwise: str
    group: str = ""
    resource: str = "nodes"


STEERING = WritePurpose("steering sets soft taints", "Nothing was evicted", "run without steering")
HOLDING = WritePurpose("holding emptied nodes sets soft taints", "Nothing was evicted", "run without holding them")
MARKING = WritePurpose("marking sets labels and soft taints", "No node was changed", "use --dry-run")
RESTARTING = WritePurpose(
    "trust.restart restarts rollouts", "Nothing was evicted", "leave trust.restart out", "apps", "deployments"
)


class _ReviewStatus(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    kind: Literal["SelfSubjectAccessReview"]
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


def demand_writes(client: Client, purpose: WritePurpose) -> None:
    """Make sure that what is written may be read and patched; else raise Forbidden with the rule to add."""
    group, resource = purpose.group, purpose.resource
    deadline = Deadline.after(_SECONDS, client.retry_policy.clock)
    missing = [verb for verb in WRITE_VERBS if not may(client, deadline, verb, group, resource)]
    if missing:
        shown = group or '""'
        rule = f"  - apiGroups: [{shown}]\n    resources: [{resource}]\n    verbs: [{', '.join(WRITE_VERBS)}]"
        raise Forbidden(
            f"{purpose.writes}, and there is no permission to {' and '.join(missing)} {resource}. "
            f"{purpose.consequence}. Add this rule to the ClusterRole, or {purpose.otherwise}:\n{rule}"
        )


def may(
    client: Client, deadline: Deadline, verb: str, group: str, resource: str, namespace: str = "", name: str = ""
) -> bool:
    """Return whether these credentials may do something; a resource may have a subresource, as `pods/eviction`.

    Without a namespace it is asked about all of them, and without a name about all objects.
    """
    plural, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "namespace": namespace, "name": name}
    attributes |= {"subresource": subresource} if subresource else {}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    body = msgspec.json.encode({**kind, "spec": {"resourceAttributes": attributes}})

    def ask() -> bool:
        answer = client.write("POST", _PATH, body, deadline=deadline).demanded()
        return decoded(answer, _Review, _PATH, "a review").status.allowed

    return client.retry_policy.call(deadline, ask)
