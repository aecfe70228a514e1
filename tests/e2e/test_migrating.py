"""docs/migrating.md, command by command, on a real control plane with a release of the descheduler's chart."""

import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.chart.helm import CHART, ROOT, helm, needed
from tests.commands import run
from tests.e2e.api import ApiError
from tests.e2e.binaries import found
from tests.e2e.builders import daemonset, node
from tests.e2e.waiting import wait_for

pytestmark = needed

COMMANDS = re.findall(r"^\$ (.*)$", (ROOT / "docs/migrating.md").read_text(), re.MULTILINE)

#: What the descheduler's chart makes of its values, as far as the steps touch it.
_TEMPLATES = """
apiVersion: v1
kind: ConfigMap
metadata: {name: descheduler, namespace: kube-system}
data:
  policy.yaml: |
    apiVersion: descheduler/v1alpha2
    kind: DeschedulerPolicy
    {{- toYaml .Values.deschedulerPolicy | nindent 4 }}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: descheduler, namespace: kube-system}
spec:
  schedule: {{ .Values.schedule | quote }}
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: descheduler, image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"}]
"""
#: Its defaults, among them the policy.  Of the release they are part as much as what is set there.
_VALUES = """
kind: CronJob
image: {repository: registry.example/descheduler/descheduler, tag: v0.36.0}
schedule: "0 3 31 2 *"
cmdOptions: {v: 3}
deschedulerPolicy:
  maxNoOfPodsToEvictPerNode: 2
  profiles:
    - name: default
      pluginConfig:
        - name: DefaultEvictor
          args: {nodeFit: true}
        - name: LowNodeUtilization
          args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}
      plugins:
        balance: {enabled: [LowNodeUtilization]}
"""


@pytest.fixture
def descheduler(metrics, tmp_path):
    """A release with that name, those values and those objects."""
    chart = tmp_path / "descheduler"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: descheduler, version: 0.36.0}")
    (chart / "templates/all.yaml").write_text(_TEMPLATES)
    where = ("--namespace", "kube-system", "--kubeconfig", metrics.kubeconfig)
    (chart / "values.yaml").write_text(_VALUES)
    helm("install", "descheduler", chart, "--set", "deschedulerPolicy.maxNoOfPodsToEvictTotal=3", *where)
    yield
    for each in ("descheduler", "rebalancer"):
        helm("uninstall", each, *where, code=None)


@pytest.mark.usefixtures("descheduler")
def test_every_command_of_the_steps(metrics, namespace, tmp_path):
    """As they are printed, one after the other; then the descheduler is at work again, and rebalancer is gone."""
    work = tmp_path / "checkout"
    work.mkdir()
    (work / "chart").symlink_to(CHART)
    helm_folder = (found("helm") or Path()).parent
    path = os.pathsep.join([str(Path(sys.executable).parent), str(helm_folder), os.environ["PATH"]])
    seen = []
    # A node is measured once something runs on it.
    namespace.create(node("a"), node("b"), daemonset("agent", usage="10m"))
    wait_for(lambda: len(metrics.api.list("NodeMetrics")) == 2, "figures of both nodes")

    for command in COMMANDS:
        # Pods of this control plane have no logs: kwok plays the nodes.
        runs = f"{command} --ignore-errors=true" if command.startswith("kubectl logs") else command
        run("bash", "-c", runs, cwd=work, env={"PATH": path, "KUBECONFIG": str(metrics.kubeconfig)})
        if command.startswith("helm install"):
            maps = [metrics.api.read("ConfigMap", each, "kube-system") for each in ("descheduler", "rebalancer")]
            theirs, ours = (yaml.safe_load(each["data"]["policy.yaml"]) for each in maps)
            assert ours == theirs  # its defaults too
        seen.append((command, metrics.api.read("CronJob", "descheduler", "kube-system")["spec"]["suspend"] or False))

    assert len(COMMANDS) >= 13
    during = [suspended for command, suspended in seen if command.startswith(("helm install", "helm upgrade"))]
    assert during == [True, True]
    assert seen[-1][1] is False
    with pytest.raises(ApiError):
        metrics.api.read("CronJob", "rebalancer", "kube-system")
