"""`rebalancer mark` with a real Prometheus that scrapes what the kubelets of a real cluster serve."""

import json
import signal
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.chart.helm import ADMISSION, template
from tests.chart.helm import needed as helm_needed
from tests.e2e.access import HOME, NAME, account
from tests.e2e.acts import by_node
from tests.e2e.api import Api, Object
from tests.e2e.binaries import found
from tests.e2e.builders import deployment, node, pod
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Running, content
from tests.e2e.test_admission_policy import allowed, probed
from tests.e2e.waiting import wait_for
from tests.real_prometheus import RealPrometheus, needed

pytestmark = needed

NODES = ("a", "b", "c", "d", "e", "f")
HOT = ("a", "b", "c")
HIGH, LOW = "12Gi", "1Gi"
LABEL = ("status", "presure")
#: The last value of half a minute: a node whose last scrape failed, as on a busy machine, still has one.
QUERY = "last_over_time(node_memory_working_set_bytes[30s]) / 2^30"
RULES: Object = {
    "rules": {"memory": {"query": QUERY, "above": 8, "below": 4}},
    "mark": {"label": "=".join(LABEL)},
    "expiry": "6s",
}
#: The affinity in docs/marking.md.
AVOIDS: Object = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "preference": {"matchExpressions": [{"key": LABEL[0], "operator": "NotIn", "values": [LABEL[1]]}]},
                "weight": 20,
            }
        ]
    }
}


class Marking(Running):
    """A loop of evaluations, one object a line on its standard output."""

    def reports(self):
        lines = content(self._stdout).splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_evaluated(self, more=1):
        least = len(self.reports()) + more
        wait_for(lambda: len(self.reports()) >= least or not self.runs(), f"{more} more evaluations")
        assert self.runs(), self.stderr()


@dataclass
class Stage:
    """Six nodes, each with one pod whose use of memory the test sets, and a Prometheus that scrapes them."""

    controlplane: ControlPlane
    namespace: Namespace
    prometheus: RealPrometheus
    folder: Path

    def policy(self):
        provider = {"source": "Prometheus", "prometheus": {"url": self.prometheus.url, "timeout": "30s"}}
        head = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": []}
        return {**head, "metricsProviders": [provider]}

    def loop(self):
        command = self.command(self.controlplane.kubeconfig)
        return Marking([*command, "--interval", "1s", "--no-lease"], json.dumps(self.policy()))

    def command(self, kubeconfig):
        rules = self.folder / "rules.yaml"
        rules.write_text(json.dumps(RULES))
        files = ["--policy", "-", "--rules", str(rules), "--kubeconfig", str(kubeconfig)]
        return [sys.executable, "-m", "rebalancer", "mark", *files, "-o", "json"]

    def load(self, *names, usage):
        for name in names:
            change = {"metadata": {"annotations": {"usage.test/memory": usage}}}
            self.controlplane.api.patch("Pod", f"load-{name}", self.namespace.name, change)

    def measured(self):
        """What Prometheus says of the nodes at the last full second: that is the time at which an evaluation asks."""
        found = self.prometheus.query(QUERY, int(time.time()))
        return {each["metric"]["instance"]: float(each["value"][1]) for each in found}

    def wait_measured(self, hot):
        """Wait until Prometheus sees these nodes above the bound, and all others below."""
        wanted = set(hot)

        def seen():
            found = self.measured()
            return len(found) == len(NODES) and all((found[name] > 8) == (name in wanted) for name in NODES)

        wait_for(seen, f"figures with {sorted(wanted)} above")

    def marked(self):
        key, value = LABEL
        nodes = self.controlplane.api.list("Node")
        return {each["metadata"]["name"] for each in nodes if each["metadata"]["labels"].get(key) == value}


@pytest.fixture
def stage(controlplane, namespace, tmp_path):
    """Prometheus has seen all nodes, and none is under pressure."""
    namespace.create(*(node(name) for name in NODES))
    namespace.create(*(pod(f"load-{name}", node=name, memory_usage=LOW) for name in NODES))
    namespace.wait_ready(len(NODES))
    kubelets = {name: controlplane.kubelet_metrics_url(name) for name in NODES}
    with RealPrometheus(tmp_path, instances=kubelets) as prometheus:
        made = Stage(controlplane, namespace, prometheus, tmp_path)
        made.wait_measured(())
        yield made


def evaluated_since(loop, moment):
    """The marked nodes of the next two evaluations that began after a moment."""
    loop.wait_evaluated(4)
    later = [each for each in loop.reports() if datetime.fromisoformat(each["now"]) > moment]
    return [{node["name"] for node in each["nodes"] if node["rules"]} for each in later[:2]]


def test_nodes_are_marked_while_they_are_under_pressure(stage):
    """Within two evaluations, and cleared within two; meanwhile pods that prefer other nodes go there."""
    with stage.loop() as loop:
        stage.load(*HOT, usage=HIGH)
        stage.wait_measured(HOT)
        assert set(HOT) in evaluated_since(loop, datetime.now(UTC))
        assert stage.marked() == set(HOT)

        stage.namespace.create(deployment("web", replicas=3, affinity=AVOIDS))
        web = stage.namespace.wait_ready(3, "web")
        assert set(by_node(web)) == set(NODES) - set(HOT)

        stage.load(*HOT, usage=LOW)
        stage.wait_measured(())
        assert set() in evaluated_since(loop, datetime.now(UTC))
        assert stage.marked() == set()

        loop.send(signal.SIGTERM)
        wait_for(lambda: not loop.runs(), "the end of the loop")


VALUES: Object = {"marking": {"enabled": True, "rules": RULES["rules"], "label": "=".join(LABEL)}}
RENDERED = template(VALUES, *ADMISSION) if found("helm") else []


@helm_needed
def test_the_rules_of_the_chart_suffice_and_allow_no_other_label(stage):
    """Nothing that the program asks for is forbidden; its account can set the label of the values alone."""
    stage.load(*HOT, usage=HIGH)
    stage.wait_measured(HOT)
    with account(stage.controlplane, stage.namespace, RENDERED) as kubeconfig:
        admitted = Api(kubeconfig)
        wait_for(lambda: not probed(admitted, "a"), "the admission policy in force")
        offset = stage.controlplane.audit_offset()

        with Running(stage.command(kubeconfig), json.dumps(stage.policy())) as running:
            outcome = running.finish()

        requests = stage.controlplane.requests_since(offset, user=f"system:serviceaccount:{HOME}:{NAME}")
        assert outcome.exit_code == 0, outcome.stderr
        assert stage.marked() == set(HOT)
        assert {"get", "patch"} <= {each.verb for each in requests if each.resource == "nodes"}
        assert not [each for each in requests if each.status in {401, 403}]
        assert allowed(admitted, "a", {"metadata": {"labels": {LABEL[0]: None}}})
        assert not allowed(admitted, "a", {"metadata": {"labels": {"kubernetes.io/hostname": "b"}}})
