"""The examples fit what names them, and what the documents promise of versions holds."""

import re
from pathlib import Path

import yaml

from rebalancer.cli.main import main
from rebalancer.run.doctor import _TRIED
from tests.chart.described import FOLDER
from tests.chart.helm import objects
from tests.unit.kube.wire.test_kubernetes_versions import VERSIONS

ROOT = Path(__file__).parents[2]


def test_the_preset_asks_the_load_watcher_of_the_example():
    """By the Service's name and port, behind which its pods are; and so does the example of Trimaran."""
    found = {each["kind"]: each for each in yaml.safe_load_all((ROOT / "examples/load-watcher.yaml").read_text())}
    service, template = found["Service"], found["Deployment"]["spec"]["template"]
    (port,) = service["spec"]["ports"]
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    preset = yaml.safe_load((ROOT / "policies/presets/usage-load-watcher.yaml").read_text())
    trimaran = yaml.safe_load((ROOT / "examples/trimaran-scheduler.yaml").read_text())

    assert preset["metricsProviders"][0]["loadWatcher"]["url"] == f"http://{name}.{namespace}:{port['port']}"
    asked = trimaran["profiles"][1]["pluginConfig"][0]["args"]["watcherAddress"]
    assert asked == f"http://{name}.{namespace}.svc.cluster.local:{port['port']}"
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    assert container["ports"] == [{"name": port["targetPort"], "containerPort": 2020}]
    accounts = {each["name"] for each in found["ClusterRoleBinding"]["subjects"]}
    assert template["spec"]["serviceAccountName"] in accounts


def test_the_versions_that_are_supported_are_those_that_are_read():
    """In the README, in the chart's, in `doctor`, and in the tests of what each version sends."""
    promised = f"Kubernetes 1.{VERSIONS[0]} to 1.{VERSIONS[-1]} is supported"

    assert promised in (ROOT / "README.md").read_text()
    assert promised in (ROOT / "chart/README.md").read_text()
    assert _TRIED == VERSIONS


def test_the_example_of_record_is_a_command_with_the_permission_it_takes():
    """Its arguments are the program's, and its account may list the figures of pods."""
    found = {each["kind"]: each for each in yaml.safe_load_all((ROOT / "examples/record.yaml").read_text())}
    pod = found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (command, *arguments), (role,) = container["args"], found["ClusterRole"]["rules"]
    made = main.commands[command].make_context(command, list(arguments))

    assert str(made.params["out"]) == container["volumeMounts"][0]["mountPath"]
    assert (role["apiGroups"], role["resources"], role["verbs"]) == (["metrics.k8s.io"], ["pods"], ["list"])
    (subject,) = found["ClusterRoleBinding"]["subjects"]
    assert subject["name"] == pod["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
    assert found["ClusterRoleBinding"]["roleRef"]["name"] == found["ClusterRole"]["metadata"]["name"]


def test_the_readme_names_every_file_in_the_order_of_application_and_none_speaks_of_helm() -> None:
    """Permissions and policy first, then one of the workloads."""
    texts = {path.name: path.read_text() for path in FOLDER.glob("*.yaml")}

    applied = re.findall(r"--filename (\w+\.yaml)", (FOLDER / "README.md").read_text())

    assert (applied[:2], {*applied}) == (["rbac.yaml", "policy.yaml"], {*texts})
    for name, text in texts.items():
        assert "helm" not in text.lower().replace("what the helm chart installs", ""), name
        assert all(each["metadata"]["name"].startswith(("rebalancer", "kube-rebalancer")) for each in objects(text))
