"""Asks the API server what these credentials may do (SelfSubjectAccessReview), before anything is changed."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from rebalancer.errors import Forbidden
from rebalancer.kube.answers import Rejected, decoded
from rebalancer.kube.client import Client
from rebalancer.kube.tries import Deadline

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

#: For all reviews of one purpose together.
_SECONDS = 30.0
#: The verbs that every write to nodes and rollouts needs, besides `list`.
WRITE_VERBS = ("get", "patch")


@dataclass(frozen=True, slots=True)
class WritePurpose:
    """What objects are written for, in words.

    Attributes:
        writes: who writes what.
        consequence: what was not done without the permission.
        otherwise: what to do without it.
    """

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
    kind: str = ""
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


def demand_writes(client: Client, purpose: WritePurpose) -> None:
    """Make sure that what is written may be read and patched.

    Raises:
        Forbidden: it may not; the message has the rule to add.
    """
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


def may(client: Client, deadline: Deadline, verb: str, group: str, resource: str) -> bool:
    """Return whether these credentials may do something; a resource may have a subresource, as `pods/eviction`."""
    name, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": name}
    attributes |= {"subresource": subresource} if subresource else {}
    return client.retry_policy.call(deadline, _ask, client, deadline, attributes)


def _ask(client: Client, deadline: Deadline, attributes: Mapping[str, str]) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = client.write("POST", _PATH, msgspec.json.encode(review), deadline=deadline)
    found = decoded(answer.demanded(), _Review, _PATH, "a review")
    if found.kind != "SelfSubjectAccessReview":
        raise Rejected(f"the API server does not answer {_PATH} with a review")
    return found.status.allowed
