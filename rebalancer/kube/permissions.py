"""Asks the API server what these credentials may do (SelfSubjectAccessReview), before anything is changed."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from rebalancer.errors import Forbidden
from rebalancer.kube.answers import Rejected, error_of
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.retry_policy import RetryPolicy
from rebalancer.untrusted.documents import Unreadable, decode_json

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

#: The verbs that marks on nodes need, besides `list nodes`, which every run needs.
NODE_WRITES = ("get", "patch")

#: The verbs that restarts of rollouts need, besides `list deployments`.
RESTART_VERBS = ("get", "patch")

_RULE = """  - apiGroups: [""]
    resources: [nodes]
    verbs: [get, patch]"""


_RESTART_RULE = """  - apiGroups: [apps]
    resources: [deployments]
    verbs: [get, patch]"""


@dataclass(frozen=True, slots=True)
class WritePurpose:
    """What nodes are written for, in words.

    Attributes:
        writes: who writes what.
        consequence: what was not done without the permission.
        otherwise: what to do without it.
    """

    writes: str
    consequence: str
    otherwise: str


STEERING = WritePurpose("steering sets soft taints", "Nothing was evicted", "run without steering")
HOLDING = WritePurpose("holding emptied nodes sets soft taints", "Nothing was evicted", "run without holding them")
MARKING = WritePurpose("marking sets labels and soft taints", "No node was changed", "use --dry-run")


class _ReviewStatus(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    kind: str = ""
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


def demand_node_writes(client: Client, retry_policy: RetryPolicy, deadline: Deadline, purpose: WritePurpose) -> None:
    """Make sure that nodes may be read and patched.

    Raises:
        Forbidden: they may not; the message has the rule to add.
        ClusterError: the API server does not say.
    """
    missing = [verb for verb in NODE_WRITES if not may(client, retry_policy, deadline, verb, "", "nodes")]
    if missing:
        raise Forbidden(
            f"{purpose.writes}, and there is no permission to {' and '.join(missing)} nodes. "
            f"{purpose.consequence}. Add this rule to the ClusterRole, or {purpose.otherwise}:\n{_RULE}"
        )


def demand_restarts(client: Client, retry_policy: RetryPolicy, deadline: Deadline) -> None:
    """Make sure that Deployments may be read and patched.

    Raises:
        Forbidden: they may not; the message has the rule to add.
        ClusterError: the API server does not say.
    """
    missing = [verb for verb in RESTART_VERBS if not may(client, retry_policy, deadline, verb, "apps", "deployments")]
    if missing:
        raise Forbidden(
            f"trust.restart restarts rollouts, and there is no permission to {' and '.join(missing)} deployments. "
            f"Nothing was evicted. Add this rule to the ClusterRole, or leave trust.restart out:\n{_RESTART_RULE}"
        )


def may(client: Client, retry_policy: RetryPolicy, deadline: Deadline, verb: str, group: str, resource: str) -> bool:
    """Return whether these credentials may do something; a resource may have a subresource, as `pods/eviction`.

    Raises:
        ClusterError: the API server does not say.
    """
    name, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": name}
    attributes |= {"subresource": subresource} if subresource else {}
    return retry_policy.tries(deadline)(_ask, client, deadline, attributes)


def _ask(client: Client, deadline: Deadline, attributes: Mapping[str, str]) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = client.post(_PATH, msgspec.json.encode(review), deadline=deadline)
    if not answer.is_success:
        raise error_of(answer, "POST", _PATH)
    try:
        decoded = decode_json(answer.body, _Review)
    except Unreadable as error:
        raise Rejected(f"the API server does not answer {_PATH} with a review: {error}") from error
    if decoded.kind != "SelfSubjectAccessReview":
        raise Rejected(f"the API server does not answer {_PATH} with a review")
    return decoded.status.allowed
