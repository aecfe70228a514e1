"""The descheduler's plain manifests, with the program in place of its image, on a real control plane.

What `kubernetes/base` and its overlay `job` hold, command and args as they are; only the image is that of the program,
which has `/bin/descheduler` too.  The chart's tests start the same in a CronJob and a Deployment.
"""

from pathlib import Path

import yaml

from tests.e2e.access import HOME, all_in_force
from tests.e2e.acts import by_node, cordon, uids
from tests.e2e.builders import deployment, node
from tests.e2e.container import IMAGE_USER, Privileges, at_work, needs_kubelet, pod_of, privileges_of
from tests.e2e.waiting import wait_for
from tests.ports import is_free

pytestmark = needs_kubelet

#: Where health is served unless told otherwise, and where the manifests' probes ask.
PORT = 10258
MANIFESTS = Path(__file__).with_name("descheduler.yaml")


def test_the_deschedulers_manifests(controlplane, namespace):
    """As they are: its probe answers at the port that it names, two duplicates move, and the log tells of it."""
    api = controlplane.api
    namespace.create(node("a", cpu="10"), node("b", cpu="10"))
    cordon(api, "b")
    namespace.create(deployment("web", replicas=4))
    before = uids(namespace.wait_ready(4, "web"))
    cordon(api, "b", on=False)
    wait_for(lambda: is_free(PORT), f"port {PORT} free")
    made = [api.create(each, HOME) for each in yaml.safe_load_all(MANIFESTS.read_text())]
    roles = [each for each in made if each["kind"] == "ClusterRole"]
    wait_for(lambda: all_in_force(api, f"{HOME}:descheduler-sa", roles), "the permissions in force")

    with at_work(controlplane, pod_of(api, "job-name=descheduler-job")) as run:
        healthy, privileges = run.container.probe("livenessProbe"), privileges_of(run.process)
        end = run.finish()
    for each in reversed(made):
        api.delete(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", ""))

    assert end.exit_code == 0, end.log
    assert healthy
    assert privileges == Privileges(user=str(IMAGE_USER), capabilities="", new_privileges=False, root_read_only=True)
    assert "2 pods evicted" in end.log
    assert len(before - uids(namespace.pods("web"))) == 2
    assert by_node(namespace.wait_ready(4, "web")) == {"a": 2, "b": 2}
