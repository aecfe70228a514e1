"""The chart's pre-delete hook, run by the real helm: no mark is left when the release goes."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from rebalancer.kube.marks import ANNOTATION, HoldMark, Mark
from rebalancer.kube.pressure_marks import PressureMark, Shown
from rebalancer.kube.run_marks import RUNS
from rebalancer.policy.moving import HOLD_KEY
from rebalancer.policy.moving import PRESSURE_KEY as PRESSURE
from tests.chart.helm import needed
from tests.e2e.access import HOME, Release
from tests.e2e.api import Object
from tests.e2e.builders import node
from tests.e2e.container import Container, needs_kubelet, pod_of

pytestmark = [needed, needs_kubelet]

#: No node has this label, so kwok takes none of the release's pods: the test plays the kubelet of the one that counts.
VALUES: Object = {
    "suspend": True,
    "nodeSelector": {"kubelet": "played"},
    "policy": {"preset": "usage-prometheus"},
    "steering": {"enabled": True},
    "cmdOptions": {"hold": "15m", "secure-port": 0},
    "marking": {
        "enabled": True,
        "rules": {"cpu": {"query": "load", "above": 80, "below": 70}},
        "label": "status=presure",
        "taint": "example.com/hot",
    },
}
SPOT = {"key": "spot", "effect": "PreferNoSchedule"}
LATER = datetime.now(UTC) + timedelta(hours=1)


def soft(key, value=""):
    return {"key": key, "effect": "PreferNoSchedule"} | ({"value": value} if value else {})


STEERED: Object = {
    "metadata": {"annotations": {ANNOTATION: Mark("run-1", ("kube-rebalancer/avoid",), LATER).text()}},
    "spec": {"taints": [SPOT, soft("kube-rebalancer/avoid", "run-1")]},
}
HELD: Object = {
    "metadata": {"annotations": {HOLD_KEY: HoldMark("run-1", LATER).text()}},
    "spec": {"taints": [SPOT, soft(HOLD_KEY)]},
}
PRESSED: Object = {
    "metadata": {
        "labels": {"status": "presure"},
        "annotations": {
            PRESSURE: PressureMark(
                "run-1", {"cpu": Shown(LATER, LATER, 90.0)}, "status=presure", "example.com/hot=cpu"
            ).text()
        },
    },
    "spec": {"taints": [SPOT, soft("example.com/hot", "cpu")]},
}


#: What `rebalancer mark` notes where a kubelet cannot write: labels and taints of other keys go by that.
RECORD: Object = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {
        "name": "rebalancer-mark",
        "annotations": {RUNS: f"[{Mark('mark', ('status=presure', 'example.com/hot=cpu'), LATER).text()}]"},
    },
}


def played(controlplane):
    """Run the hook's pod as a kubelet would, and tell the API server what became of it."""
    pod = pod_of(controlplane.api, "job-name=rebalancer-unmark")
    phase = "Failed"
    try:
        end = Container(controlplane, pod).run()
        phase = "Failed" if end.exit_code else "Succeeded"
    finally:  # helm waits for it
        controlplane.api.patch("Pod", pod["metadata"]["name"], HOME, {"status": {"phase": phase}}, "status")
    return end


def test_no_mark_outlives_the_release(controlplane, namespace):
    """Of all three kinds, though none has expired; by the account of the release, under its admission policy."""
    api = controlplane.api
    namespace.create(node("a"), node("b"), node("c"))
    api.delete("Lease", "rebalancer-mark", HOME)
    api.create(RECORD, HOME)

    with ThreadPoolExecutor(1) as kubelet:
        with Release(controlplane, json.dumps(VALUES)):
            for name, mark in (("a", STEERED), ("b", HELD), ("c", PRESSED)):
                api.patch("Node", name, "", mark)
            hook = kubelet.submit(played, controlplane)
        end = hook.result()

    assert end.exit_code == 0, end.log
    assert end.log.count(": unmarked") == 3, end.log
    for name in ("a", "b", "c"):
        found = api.read("Node", name)
        assert found["spec"]["taints"] == [SPOT]
        assert not {ANNOTATION, HOLD_KEY, PRESSURE} & set(found["metadata"].get("annotations", {}))
        assert "status" not in found["metadata"]["labels"]
    assert api.list("Job", HOME, labelSelector="app.kubernetes.io/instance=rebalancer") == []
    assert "rebalancer" not in [each["metadata"]["name"] for each in api.list("ServiceAccount", HOME)]
