"""Only a clear yes to what the program asks for is a permission."""

import pytest

from rebalancer.errors import Forbidden
from rebalancer.kube.permissions import RESTARTING, STEERING, demand_writes
from tests.fake_http import Reply

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize("status", [{}, {"allowed": False}, {"denied": True}])
def test_a_review_that_does_not_say_yes_says_no(client, server, status):
    """What the server leaves out is false."""
    server.on("POST", REVIEWS, lambda _: Reply(201, {"kind": "SelfSubjectAccessReview", "status": status}))

    with pytest.raises(Forbidden, match=r"no permission to get and patch nodes(?s:.)*verbs: \[get, patch\]"):
        demand_writes(client, STEERING)


def test_a_restart_needs_permissions_of_its_own(client, server):
    server.on("POST", REVIEWS, lambda _: Reply(201, {"kind": "SelfSubjectAccessReview", "status": {}}))

    with pytest.raises(Forbidden, match=r"no permission to get and patch deployments(?s:.)*resources: \[deployments\]"):
        demand_writes(client, RESTARTING)


def test_a_yes_lets_the_run_go_on(client, server):
    demand_writes(client, STEERING)

    asked = [each.body["spec"]["resourceAttributes"] for each in server.requests]
    assert asked == [{"verb": verb, "group": "", "resource": "nodes"} for verb in ("get", "patch")]
