"""Pods of a scheduler that knows load, evicted by the figures that it scores by: the real plugin and load-watcher.

It takes two minutes and an executable of its own, so it runs only when REBALANCER_E2E_TRIMARAN is set
(`make trimaran`).
"""

import json
import os
from collections import Counter
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from tests.e2e.access import all_in_force
from tests.e2e.acts import by_node, cordon, wait_older
from tests.e2e.binaries import provide_trimaran
from tests.e2e.builders import deployment, node
from tests.e2e.load_aware import LoadAware
from tests.e2e.program import policy
from tests.e2e.waiting import wait_for

pytestmark = pytest.mark.skipif(
    not os.environ.get("REBALANCER_E2E_TRIMARAN"), reason="takes minutes: REBALANCER_E2E_TRIMARAN is not set"
)

EXAMPLE = Path(__file__).parents[2] / "examples/trimaran-scheduler.yaml"
WATCHER = Path(__file__).parents[2] / "examples/load-watcher.yaml"
#: How long the plugin counts a new pod by what it is expected to use, in seconds, and a little more.
NEW = 65


def relief(url):
    """Takes pods off nodes above 60 % of cpu, as load-watcher has them."""
    args = {
        "thresholds": {"cpu": 55},
        "targetThresholds": {"cpu": 60},
        "metricsUtilization": {"source": "LoadWatcher", "selection": "relief"},
    }
    providers = [{"source": "LoadWatcher", "loadWatcher": {"url": url}}, {"source": "KubernetesMetrics"}]
    return policy({"LowNodeUtilization": args}, {"nodeFit": True}, metricsProviders=providers)


def test_replacements_land_where_the_plugin_puts_them(metrics, namespace, program, tell):
    """Nodes at 84 %, 45 % and 30 %: what leaves the first fills the third up to 40 %, as foreseen; the rest goes on."""
    namespace.create(*(node(name, cpu="8") for name in "abc"))
    _, _, role, _, deployed, _ = made = list(yaml.safe_load_all(WATCHER.read_text()))
    for each in made:
        metrics.api.create(each, each["metadata"].get("namespace", ""))
    wait_for(lambda: all_in_force(metrics.api, "loadwatcher:load-watcher", [role]), "the role of load-watcher")
    with LoadAware(metrics, provide_trimaran(), yaml.safe_load(EXAMPLE.read_text())) as second:
        cordon(metrics.api, "b", "c")
        template = {"cpu": "100m", "usage": "280m", "schedulerName": "trimaran"}
        namespace.create(deployment("crowded", replicas=24, **template))
        namespace.wait_ready(24, "crowded")
        cordon(metrics.api, "b", "c", on=False)
        # Much is requested on c: the default scheduler would take b.
        namespace.create(
            deployment("steady", on="b", usage="3600m"), deployment("idle", on="c", cpu="3", usage="2400m")
        )
        pods = namespace.wait_ready(26)
        wait_older(pods, NEW)
        for kind, count in (("NodeMetrics", 3), ("PodMetrics", len(pods))):
            wait_for(lambda kind=kind, count=count: len(metrics.api.list(kind)) >= count, f"{count} {kind}")
        second.watch(metrics.kubeconfig_for("load-watcher", metrics.api.token("load-watcher", "loadwatcher")))
        probe = deployed["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"]
        assert urlopen(second.url + probe, timeout=30).status == 200
        path = metrics.directory / "trimaran-for-the-program.json"
        path.write_text(json.dumps(second.configuration))

        outcome = program.run(relief(second.url), "--scheduler-config", str(path))
        after = namespace.wait_ready(24, "crowded")

    assert outcome.exit_code == 0, outcome.stderr
    foreseen = [each["destination"]["nodes"] for each in outcome.report["evictions"]]
    landed = by_node(after) - Counter(a=by_node(after)["a"])
    tell(f"Trimaran: {len(foreseen)} evicted, foreseen {foreseen}, landed {dict(landed)}")
    assert all(len(nodes) == 1 for nodes in foreseen)
    assert Counter(name for (name,) in foreseen) == landed
    assert landed["c"] > landed["b"] > 0
