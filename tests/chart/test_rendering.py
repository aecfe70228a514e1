"""The chart renders, whatever its values: checked by helm itself; so do the manifests in examples/kubernetes."""

import json
import re
import shlex
import tarfile

import pytest
import yaml
from jsonschema import Draft202012Validator

from rebalancer import __version__
from rebalancer.policy.scheduler_configuration import load_scheduler_configuration
from tests.chart.described import FOLDER, examples
from tests.chart.helm import (
    CHART,
    CI,
    KUBERNETES,
    ROOT,
    Object,
    container,
    every,
    helm,
    kinds,
    needed,
    objects,
    one,
    pod_spec,
    policy_text,
    template,
    workloads,
)
from tests.fake_api_server import FakeApiServer
from tests.fake_http import Reply

pytestmark = needed
#: The two commands by which the main README installs.
INSTALLATION = re.compile(r"^\$ (make image .*)\n\$ (helm install .*)$", re.MULTILINE)
EACH = pytest.mark.parametrize("file", CI, ids=lambda file: file.name)


def _map(**properties):
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _list(items):
    return {"type": "array", "items": items}


_TEXT: Object = {"type": "string"}
_FLAG: Object = {"type": "boolean"}
_TEXTS: Object = {"type": "object", "additionalProperties": _TEXT}
_RELABELING = _map(
    action=_TEXT, regex=_TEXT, replacement=_TEXT, separator=_TEXT, sourceLabels=_list(_TEXT), targetLabel=_TEXT
)
_ENDPOINT: Object = {
    "scheme": _TEXT,
    "interval": _TEXT,
    "honorLabels": _FLAG,
    "tlsConfig": _map(insecureSkipVerify=_FLAG, serverName=_TEXT),
    "metricRelabelings": _list(_RELABELING),
    "relabelings": _list(_RELABELING),
}
_TARGETS: Object = {
    "jobLabel": _TEXT,
    "namespaceSelector": _map(matchNames=_list(_TEXT)),
    "selector": _map(matchLabels=_TEXTS),
}
_NUMBER_OR_NAME: Object = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
_RULE = _map(alert=_TEXT, expr=_NUMBER_OR_NAME, labels=_TEXTS, annotations=_TEXTS, **{"for": _TEXT})

#: By kind of the Prometheus operator, as far as the chart uses it, the schema of its `spec`.
SPECS = {
    "ServiceMonitor": _map(**_TARGETS, endpoints=_list(_map(port=_TEXT, **_ENDPOINT))),
    "PodMonitor": _map(**_TARGETS, podMetricsEndpoints=_list(_map(targetPort=_NUMBER_OR_NAME, **_ENDPOINT))),
    "PrometheusRule": _map(groups=_list(_map(name=_TEXT, rules=_list(_RULE)))),
}


@EACH
def test_helm_lint_finds_nothing(file):
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART, "--values", file, "--kube-version", "1.36.0").stdout


@EACH
@pytest.mark.parametrize("kubernetes", ["1.25.0", "1.36.0"])
def test_every_file_renders(file, kubernetes):
    """For old clusters as for new ones: one workload of the kind that was asked for, with its policy."""
    found = template(file.read_text(), kubernetes=kubernetes)

    assert kinds(workloads(found)) == [(yaml.safe_load(file.read_text()) or {}).get("kind", "CronJob")]
    assert {"ConfigMap", "ClusterRole", "ClusterRoleBinding"} <= {*kinds(found)}


@EACH
def test_the_operator_of_prometheus_knows_every_field(file):
    """No unknown field, no wrong type."""
    for each in every(template(file.read_text()), *SPECS):
        assert list(Draft202012Validator(SPECS[each["kind"]]).iter_errors(each["spec"])) == []


def test_all_names_are_of_the_release():
    """Two releases in one cluster do not get in each other's way."""
    for file in CI:
        first, second = (
            {
                (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"])
                for each in template(file.read_text(), "--set", f"fullnameOverride={name},serviceAccount.name={name}")
            }
            for name in ("first", "second")
        )

        assert not first & second, file.name


#: What helm asks a cluster before it upgrades.
DISCOVERY: Object = {
    "/version": {"major": "1", "minor": "36", "gitVersion": f"v{KUBERNETES}"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
}


def test_a_job_has_a_name_that_its_pods_can_carry(tmp_path):
    """As a label, of 63 characters at most; also after an upgrade, and as the notes name one."""
    name = "a" * 53
    deployed = {"name": name, "version": 99, "namespace": "default", "info": {"status": "deployed"}, "manifest": ""}
    releases = tmp_path / "releases"
    releases.write_text(json.dumps([{**deployed, "chart": {"metadata": {"name": "rebalancer", "version": "0.0.1"}}}]))
    with FakeApiServer(tls=True) as server:
        for path in DISCOVERY:
            server.on("GET", path, lambda request: Reply(200, DISCOVERY[request.path]))
        cluster = server.kubeconfig(tmp_path, **{"insecure-skip-tls-verify": True})
        where = {"HELM_DRIVER": "memory", "HELM_MEMORY_DRIVER_DATA": str(releases), "KUBECONFIG": str(cluster)}
        upgrade = ("upgrade", name, CHART, "--namespace", "default", "--dry-run=client", "--set")
        job, cronjob = (helm(*upgrade, f"kind={kind}", **where).stdout for kind in ("Job", "CronJob"))

    (upgraded,) = re.findall(r"kind: Job\nmetadata:\n  #.*\n  name: (.*)", job)
    (noted,) = re.findall(r"kubectl create job --from=\S+ (\S+)", cronjob)
    assert (len(upgraded) <= 63, upgraded[-4:]) == (True, "-100")
    assert (len(noted) <= 63, noted[-4:]) == (True, "-now")


def test_the_package_holds_what_is_needed(tmp_path):
    """Presets, dashboard and alerts too, and no values of tests."""
    helm("package", CHART, "--destination", tmp_path)

    (package,) = tmp_path.glob("rebalancer-*.tgz")
    with tarfile.open(package) as archive:
        names = {name.removeprefix("rebalancer/") for name in archive.getnames()}
    assert {"values.schema.json", "README.md", "presets/safe.yaml", "rules/alerts.yaml"} <= names
    assert "dashboards/rebalancer.json" in names
    assert not [name for name in names if name.startswith("ci/")]


def test_what_is_built_is_what_is_installed():
    """The image that the first command pushes is the one that the second command's chart asks for."""
    found = INSTALLATION.search((ROOT / "README.md").read_text())
    assert found is not None
    image = dict(each.split("=") for each in shlex.split(found[1])[2:])["IMAGE"]
    _, _, release, chart, *options = shlex.split(found[2])

    rendered = helm("template", release, ROOT / chart, *options, "--kube-version", KUBERNETES).stdout

    assert container(list(objects(rendered)))["image"] == f"{image}:{__version__}"


HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def options(found):
    return [each for each in container(found)["args"] if each.startswith("--scheduler-config")]


def test_a_text_stands_beside_the_policy():
    """Where the program looks for it; the program takes it, and still finds the policy in the ConfigMap."""
    found = template({"schedulerConfig": {"text": HEAD + "percentageOfNodesToScore: 30\n"}})

    assert options(found) == ["--scheduler-config=/policy-dir/scheduler.yaml"]
    text = one(found, "ConfigMap", "rebalancer")["data"]["scheduler.yaml"]
    assert load_scheduler_configuration(text, source="chart").document["percentageOfNodesToScore"] == 30
    assert policy_text(found)
    assert options(template()) == []
    assert set(one(template(), "ConfigMap", "rebalancer")["data"]) == {"policy.yaml"}


def test_a_config_map_that_is_there_is_mounted():
    found = template({"schedulerConfig": {"configMapName": "scheduler", "key": "config.yaml"}})

    assert options(found) == ["--scheduler-config=/scheduler-dir/config.yaml"]
    assert {"name": "scheduler-volume", "configMap": {"name": "scheduler"}} in pod_spec(found)["volumes"]
    mounts = {each["name"]: each["mountPath"] for each in container(found)["volumeMounts"]}
    assert mounts["scheduler-volume"] == "/scheduler-dir"


def test_examples_are_rendered_from_the_chart():
    """`make chart` writes them."""
    assert {path.name: path.read_text() for path in FOLDER.glob("*.yaml")} == examples()
