"""Only a clear yes to what the program asks for is a permission."""

import pytest

from rebalancer.errors import Forbidden
from rebalancer.kube.permissions import RESTARTING, STEERING, demand_writes
from tests.fake_http import Reply

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize("status", [{}, {"allowed": False}, {"denied": True}])
@pytest.mark.parametrize(("purpose", "resource"), [(STEERING, "nodes"), (RESTARTING, "deployments")])
def test_a_review_that_does_not_say_yes_says_no(client, server, status, purpose, resource):
    """What the server leaves out is false."""
    server.on("POST", REVIEWS, lambda _: Reply(201, {"kind": "SelfSubjectAccessReview", "status": status}))

    rule = rf"resources: \[{resource}\]\n.*verbs: \[get, patch\]"
    with pytest.raises(Forbidden, match=rf"no permission to get and patch {resource}(?s:.)*{rule}"):
        demand_writes(client, purpose)
