"""`rebalancer mark` on the real control plane: a process beside the test, and the load that its nodes show."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.api import Object
from tests.e2e.builders import node, pod
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Outcome, Running, content
from tests.e2e.waiting import wait_for
from tests.real_prometheus import RealPrometheus

NODES = ("a", "b", "c", "d", "e", "f")
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

    def reports(self) -> list[Object]:
        """All reports that are complete so far."""
        lines = content(self._stdout).splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_evaluated(self, more: int = 1) -> None:
        """Wait for further evaluations."""
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
    program: tuple[str, ...] = (sys.executable, "-m", "rebalancer")

    @classmethod
    def build(cls, controlplane: ControlPlane, namespace: Namespace, folder: Path) -> "Stage":
        namespace.create(*(node(name) for name in NODES))
        namespace.create(*(pod(f"load-{name}", node=name, memory_usage=LOW) for name in NODES))
        namespace.wait_ready(len(NODES))
        kubelets = {name: controlplane.kubelet_metrics_url(name) for name in NODES}
        return cls(controlplane, namespace, RealPrometheus(folder, instances=kubelets), folder)

    def policy(self) -> Object:
        provider = {"source": "Prometheus", "prometheus": {"url": self.prometheus.url, "timeout": "30s"}}
        head = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": []}
        return {**head, "metricsProviders": [provider]}

    def loop(self) -> Marking:
        """Return a loop; it begins when it is entered."""
        command = self.command(self.controlplane.kubeconfig)
        return Marking([*command, "--interval", "1s", "--no-lease"], json.dumps(self.policy()))

    def mark_once(self, kubeconfig: Path) -> Outcome:
        """Evaluate once, as the user of a kubeconfig, with the Lease."""
        with Running(self.command(kubeconfig), json.dumps(self.policy())) as running:
            return running.finish()

    def command(self, kubeconfig: Path) -> list[str]:
        rules = self.folder / "rules.yaml"
        rules.write_text(json.dumps(RULES))
        files = ["--policy", "-", "--rules", str(rules), "--kubeconfig", str(kubeconfig)]
        return [*self.program, "mark", *files, "-o", "json"]

    def load(self, *names: str, usage: str) -> None:
        """Let these nodes use so much memory."""
        for name in names:
            change = {"metadata": {"annotations": {"usage.test/memory": usage}}}
            self.controlplane.api.patch("Pod", f"load-{name}", self.namespace.name, change)

    def measured(self) -> Mapping[str, float]:
        """What Prometheus says of the nodes at the last full second: that is the time at which an evaluation asks."""
        found = self.prometheus.query(QUERY, int(time.time()))
        return {each["metric"]["instance"]: float(each["value"][1]) for each in found}

    def wait_measured(self, hot: Iterable[str]) -> None:
        """Wait until Prometheus sees these nodes above the bound, and all others below."""
        wanted = set(hot)

        def seen() -> bool:
            found = self.measured()
            return len(found) == len(NODES) and all((found[name] > 8) == (name in wanted) for name in NODES)

        wait_for(seen, f"figures with {sorted(wanted)} above")

    def marked(self) -> set[str]:
        """Nodes with the label."""
        key, value = LABEL
        nodes = self.controlplane.api.list("Node")
        return {each["metadata"]["name"] for each in nodes if each["metadata"]["labels"].get(key) == value}

    def wait_marked(self, *names: str) -> None:
        wait_for(lambda: self.marked() == set(names), f"marks on {names}")


@contextmanager
def staged(controlplane: ControlPlane, namespace: Namespace, folder: Path) -> Iterator[Stage]:
    """Yield a stage whose Prometheus has seen all nodes, of which none is under pressure."""
    made = Stage.build(controlplane, namespace, folder)
    with made.prometheus:
        made.wait_measured(())
        yield made
