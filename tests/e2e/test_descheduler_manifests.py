"""The descheduler's plain manifests, with the program in place of its image, on a real control plane."""

import pytest

from tests.e2e.acts import by_node, cordon, uids
from tests.e2e.api import Api, Object
from tests.e2e.at_work import at_work
from tests.e2e.builders import deployment, node
from tests.e2e.container import IMAGE_USER, Privileges, can_play_kubelet, privileges_of
from tests.e2e.descheduler_manifests import OVERLAYS, applied
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.waiting import wait_for
from tests.e2e.workloads import pod_of, run_now
from tests.ports import is_free

pytestmark = pytest.mark.skipif(
    not can_play_kubelet(), reason="playing the kubelet takes root, unshare, setpriv and overlayfs"
)

#: Where health is served unless told otherwise, and where the manifests' probes ask.
PORT = 10258


@pytest.fixture
def doubled(controlplane: ControlPlane, namespace: Namespace) -> Namespace:
    """Two nodes, all four replicas of a Deployment on one of them."""
    namespace.create(node("a", cpu="10"), node("b", cpu="10"))
    cordon(controlplane.api, "b")
    namespace.create(deployment("web", replicas=4))
    namespace.wait_ready(4, "web")
    cordon(controlplane.api, "b", on=False)
    return namespace


def made_by(api: Api, kind: str) -> Object:
    """The pod that the controller of a workload makes."""
    match kind:
        case "Job":
            return pod_of(api, "descheduler-job")
        case "CronJob":
            return pod_of(api, run_now(api, "descheduler-cronjob"))
        case _:
            return pod_of(api, selector="app=descheduler")


@pytest.mark.parametrize("kind", OVERLAYS)
def test_the_deschedulers_manifests(controlplane: ControlPlane, doubled: Namespace, kind: str) -> None:
    """As they are: its probe answers at the port that it names, two duplicates move, and the log tells of it."""
    api = controlplane.api
    before = uids(doubled.pods("web"))
    wait_for(lambda: is_free(PORT), f"port {PORT} free")

    with applied(api, OVERLAYS[kind]()), at_work(controlplane, made_by(api, kind)) as run:
        healthy, privileges = run.container.probe("livenessProbe"), privileges_of(run.process)
        run.go_on()
        wait_for(lambda: len(before - uids(doubled.pods("web"))) == 2, "the evictions of both duplicates")
        end = run.stop() if kind == "Deployment" else run.finish()

    assert end.exit_code == 0, end.log
    assert healthy
    assert privileges == Privileges(user=str(IMAGE_USER), capabilities="", new_privileges=False, root_read_only=True)
    assert "2 pods evicted" in end.log
    assert by_node(doubled.wait_ready(4, "web")) == {"a": 2, "b": 2}
