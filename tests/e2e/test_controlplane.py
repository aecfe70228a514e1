"""The ground that the scenarios stand on: the control plane behaves like a real one, and leaves nothing."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.api import Api
from tests.e2e.binaries import provide
from tests.e2e.builders import daemonset, deployment, node, secret, service_account
from tests.e2e.figures import figures
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace, refusal
from tests.e2e.waiting import wait_for


def test_usage_reaches_the_metrics_api(metrics: ControlPlane, namespace: Namespace) -> None:
    """What a pod is said to use is what the metrics API tells, of it and of its node."""
    namespace.create(node("a"), daemonset("agent", usage="10m"), deployment("web", usage="900m", memory_usage="1Gi"))
    pod = namespace.wait_ready(1, "web")[0]["metadata"]["name"]

    def settled() -> dict[str, str] | None:
        """What metrics-server says of the pod, once it has seen it for a while."""
        found = figures(metrics.api, "PodMetrics", namespace.name)
        seen: dict[str, dict[str, str]] = {name: item["containers"][0]["usage"] for name, item in found.items()}
        known = pod in seen and "a" in figures(metrics.api, "NodeMetrics")
        return seen[pod] if known and 850 <= millicores(seen[pod]["cpu"]) <= 950 else None

    usage = wait_for(settled, "figures of the pod and its node")
    assert usage["memory"] in {"1Gi", "1048576Ki"}


def test_audit_tells_what_a_user_asked(controlplane: ControlPlane, namespace: Namespace) -> None:
    """The audit log holds the program's requests alone, in order, and tells reads from writes."""
    program = Api(controlplane.kubeconfig)
    start = controlplane.audit_offset()
    program.list("Pod", namespace.name)
    program.create(secret("left-behind"), namespace.name)

    requests = controlplane.requests_since(start)

    assert [(request.verb, request.resource) for request in requests] == [("list", "pods"), ("create", "secrets")]
    assert [request.reads_only for request in requests] == [True, False]


def test_service_account_has_no_rights_until_bound(controlplane: ControlPlane, namespace: Namespace) -> None:
    """A token from the TokenRequest API is known, and RBAC refuses it what nobody granted."""
    namespace.create(service_account("robot"))
    token = controlplane.api.token("robot", namespace.name)
    robot = Api(controlplane.kubeconfig_for("robot", token))

    refused = refusal(robot, "any", namespace.name)

    assert refused is not None
    assert refused.status == 403
    assert f"system:serviceaccount:{namespace.name}:robot" in refused.message
    assert 'cannot create resource "pods/eviction"' in refused.message


def test_apiserver_comes_back_with_its_data(controlplane: ControlPlane, namespace: Namespace) -> None:
    """A killed API server is started again on the same address, and the controllers go on."""
    namespace.create(node("a"), deployment("web", replicas=2))
    before = {pod["metadata"]["uid"] for pod in namespace.wait_ready(2, "web")}

    controlplane.restart_apiserver()

    assert {pod["metadata"]["uid"] for pod in namespace.pods("web")} == before
    namespace.create(deployment("later", replicas=2))
    namespace.wait_ready(2, "later")


def test_nothing_is_left(controlplane: ControlPlane) -> None:
    """After a control plane is stopped none of its processes runs and its directory is gone."""
    with ControlPlane(provide()) as second:
        pids = second.processes.pids()
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        assert second.api.ready()

    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not second.directory.exists()
    assert controlplane.api.ready(), "the other one is not touched"


def test_nothing_is_left_of_a_run_that_is_killed(controlplane: ControlPlane) -> None:
    """A test run that is killed with SIGKILL leaves no process and no directory either."""
    script = (
        "from tests.e2e.harness import ControlPlane; from tests.e2e.binaries import provide; import os, sys\n"
        "plane = ControlPlane(provide()); plane.start()\n"
        "print(plane.directory, *plane.processes.pids(), flush=True); os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    directory, *pids = killed.stdout.split()
    assert len(pids) == 6

    wait_for(lambda: not any(runs(pid) for pid in pids), "all processes gone")
    wait_for(lambda: not Path(directory).exists(), "its directory gone")


def runs(pid: str) -> bool:
    """Whether a process runs; a zombie that nobody has collected yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def millicores(quantity: str) -> float:
    """The CPU quantities that metrics-server prints, as millicores."""
    for suffix, size in (("n", 1e-6), ("u", 1e-3), ("m", 1.0)):
        if quantity.endswith(suffix):
            return float(quantity[:-1]) * size
    return float(quantity) * 1000
