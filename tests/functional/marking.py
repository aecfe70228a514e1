"""What tests of `rebalancer mark` share: nodes, a Prometheus, rules, and what is on nodes."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rebalancer.kube.pressure_marks import PressureMark, Shown
from rebalancer.policy.moving import PRESSURE_KEY
from tests.fake_api_server import FakeApiServer
from tests.fake_http import Reply, Request
from tests.fake_servers import FakePrometheus, sample
from tests.functional.objects import node
from tests.functional.program import Outcome, Program

Object = dict[str, Any]

NODES = ("n1", "n2", "n3", "n4", "n5", "n6")
LABEL = "kube-rebalancer/pressure"
CALM = dict.fromkeys(NODES, 10.0)
RULES: Object = {"rules": {"cpu": {"query": "load", "above": 80, "below": 70}}, "maxNodes": "50%"}


def loads(server: FakePrometheus, values: Mapping[str, float], **others: Mapping[str, float]) -> None:
    """Let a Prometheus answer `load`, and other queries by their text."""
    by_query = {"load": values, **others}

    def answer(request: Request) -> Reply:
        found = [sample(name, value) for name, value in by_query[request.query["query"]].items()]
        return Reply(200, {"status": "success", "data": {"resultType": "vector", "result": found}})

    server.answers = answer


def fill(server: FakeApiServer, *names: str) -> None:
    """Add nodes with a UID, a label and a soft taint of others."""
    for name in names or NODES:
        found = node(name, taints=[{"key": "spot", "effect": "PreferNoSchedule"}])
        server.add({**found, "metadata": {**found["metadata"], "uid": name}})


def marked(
    server: FakeApiServer, name: str, *rules: str, left: timedelta = timedelta(minutes=10), **signs: str
) -> None:
    """Let a node carry a mark of pressure by an earlier run."""
    now = datetime.now(UTC)
    found = server.node(name)
    shown = {rule: Shown(now - timedelta(hours=1), now + left, 85.0) for rule in rules}
    label, taint = signs.get("label", f"{LABEL}={rules[0]}"), signs.get("taint", "")
    note = PressureMark("run-0", shown, label, taint).text()
    labels = {**found["metadata"]["labels"], **dict([label.split("=")] if label else [])}
    taints = [*found["spec"].get("taints", []), *([_taint(taint)] if taint else [])]
    metadata = {**found["metadata"], "labels": labels, "annotations": {PRESSURE_KEY: note}}
    server.add({**found, "metadata": metadata, "spec": {**found["spec"], "taints": taints}})


def _taint(text: str) -> Object:
    key, _, value = text.partition("=")
    return {"key": key, "value": value, "effect": "PreferNoSchedule"}


def labels_on(server: FakeApiServer, key: str = LABEL) -> dict[str, str]:
    nodes = {name: server.node(name)["metadata"] for name in NODES}
    return {name: each["labels"][key] for name, each in nodes.items() if key in each.get("labels", {})}


def notes_on(server: FakeApiServer) -> dict[str, Object]:
    """Return what the annotation of each marked node says."""
    nodes = {name: server.node(name)["metadata"].get("annotations", {}) for name in NODES}
    return {name: json.loads(each[PRESSURE_KEY]) for name, each in nodes.items() if PRESSURE_KEY in each}


def policy_for(url: str, **more: Any) -> Object:
    provider = {"source": "Prometheus", "prometheus": {"url": url, "timeout": "60s"}}
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [],
        "metricsProviders": [provider],
        **more,
    }


class Marker:
    """Runs `rebalancer mark` against fakes."""

    def __init__(self, program: Program, server: FakeApiServer, prometheus: FakePrometheus) -> None:
        self.program = program
        self.server = server
        self.prometheus = prometheus
        self.rules: Path = program.folder / "rules.yaml"  # the file with the rules
        self.write(RULES)

    def write(self, rules: Object) -> None:
        self.rules.write_text(json.dumps(rules))

    def arguments(self, *options: object, policy: Object | None = None) -> list[object]:
        file = self.program.policy(policy or policy_for(self.prometheus.url))
        kubeconfig = self.server.kubeconfig(self.program.folder)
        return ["mark", "--policy", file, "--rules", self.rules, "--kubeconfig", kubeconfig, *options]

    def __call__(self, *options: object, policy: Object | None = None) -> Outcome:
        """Evaluate once, without the Lease, with a JSON report."""
        return self.program(*self.arguments("--no-lease", "-o", "json", *options, policy=policy))
