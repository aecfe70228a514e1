"""A token that is only good for a while, as a ServiceAccount's is, and the file in which it is renewed."""

from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Api, ApiError, Object
from tests.e2e.builders import deployment, node, secret, service_account
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, everything_in
from tests.e2e.proxy import Hold, Proxy
from tests.e2e.waiting import wait_for


@pytest.fixture
def robot(namespace: Namespace) -> str:
    """A ServiceAccount that may do everything, in a namespace with pods that should go."""
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": namespace.name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": namespace.name},
        "subjects": [subject],
        "roleRef": role,
    }
    namespace.create(service_account("robot"), binding, node("a"), node("b"), deployment("web", replicas=4))
    namespace.wait_ready(4, "web")
    return "robot"


def test_token_that_expires_is_read_again(controlplane: ControlPlane, namespace: Namespace, robot: str) -> None:
    """The token in the kubeconfig's file expires between plan and evictions; with the new one all pods go."""
    namespace.create(secret("first"))
    token = controlplane.api.token(robot, namespace.name, bound_secret="first")
    file = controlplane.directory / f"{namespace.name}.token"
    file.write_text(token)
    hold = Hold("POST", "/eviction")

    with Proxy(controlplane, hold) as proxy:
        kubeconfig = proxy.kubeconfig(controlplane.kubeconfig_for(namespace.name, ""))
        read_from_file(kubeconfig, str(file))
        wait_for(lambda: status_with(controlplane, token) == 200, "the token at work")
        with Program(kubeconfig).start(everything_in(namespace.name)) as running:
            hold.wait()
            file.write_text(controlplane.api.token(robot, namespace.name))
            controlplane.api.delete("Secret", "first", namespace.name)
            wait_for(lambda: status_with(controlplane, token) == 401, "the token expired")
            hold.release()
            outcome = running.finish()

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 4
    assert outcome.errors() == {}
    assert [status for path, status in proxy.answers if path.endswith("/eviction")] == [401, 201, 201, 201, 201]


def test_token_that_has_expired_for_good(controlplane: ControlPlane, namespace: Namespace, robot: str) -> None:
    """Without a new token the program says that its credentials are not accepted, and evicts nothing."""
    namespace.create(secret("only"))
    token = controlplane.api.token(robot, namespace.name, bound_secret="only")
    wait_for(lambda: status_with(controlplane, token) == 200, "the token at work")
    controlplane.api.delete("Secret", "only", namespace.name)
    wait_for(lambda: status_with(controlplane, token) == 401, "the token expired")

    outcome = Program(controlplane.kubeconfig_for(namespace.name, token)).run(everything_in(namespace.name))

    assert (outcome.exit_code, outcome.report) == (3, {})
    assert "does not accept the credentials" in outcome.stderr
    assert len(namespace.ready("web")) == 4


def read_from_file(kubeconfig: Path, token_file: str) -> None:
    """Let a kubeconfig's user take its token from a file."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = {"tokenFile": token_file}
    kubeconfig.write_text(yaml.safe_dump(document))


def status_with(controlplane: ControlPlane, token: str) -> int:
    """What the API server says to the holder of a token."""
    try:
        Api(controlplane.kubeconfig_for("probe", token)).list("Node", limit=1)
    except ApiError as error:
        return error.status
    return 200
