"""`rebalancer recommend` on a folder of samples as people collect them with `kubectl top`."""

import json
from datetime import date, timedelta

import pytest
import yaml
from click.testing import CliRunner

from rebalancer.cli.main import main
from tests.functional.objects import pod

FIRST = date(2023, 5, 11)
SMALL = ("--min-days", "3", "--min-samples", "3")


@pytest.fixture
def folder(tmp_path):
    """Four days, at 10:30 and 20:30: web-a needs most, 100m to 400m more each day at half past ten."""
    for day in range(4):
        for hour, cpu in ((10, 100 * (day + 1)), (20, 50)):
            lines = [f"web-5d8f7b9c64-x2x7k {cpu}m {200 + 100 * day}Mi", f"web-5d8f7b9c64-b4b4b {cpu // 2}m 100Mi"]
            name = f"resource-{FIRST + timedelta(days=day):%Y%m%d}{hour}3000.txt"
            (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def pods(tmp_path_factory):
    """The pods of the cluster as kubectl prints them, one of them."""
    made = pod("web-5d8f7b9c64-x2x7k", owner="web-5d8f7b9c64")
    made["metadata"]["labels"] = {"pod-template-hash": "5d8f7b9c64"}
    made["spec"]["containers"] = [{"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    path = tmp_path_factory.mktemp("cluster") / "pods.json"
    path.write_text(json.dumps({"kind": "List", "items": [made]}))
    return path


def recommend(folder, *arguments):
    return CliRunner().invoke(main, ["recommend", "--samples", str(folder), *SMALL, *arguments])


@pytest.fixture
def patched(folder, pods, tmp_path):
    """Recommend for the pod of the cluster, with other resources or metadata; return the patches by file."""

    def call(*arguments, resources=None, **metadata):
        document = json.loads(pods.read_text())
        (made,) = document["items"]
        made["metadata"] |= metadata
        made["spec"]["containers"][0] |= {"resources": resources} if resources else {}
        pods.write_text(json.dumps(document))
        out = tmp_path / "patches"
        outcome = recommend(folder, *arguments, "--snapshot", str(pods), "--patches", str(out))
        found = {each.name: yaml.safe_load(each.read_text()) for each in out.iterdir()}
        assert not found or f"1 file written to {out}" in outcome.stderr
        return found

    return call


def resources_of(patches):
    (patch,) = patches.values()
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    return container["resources"]


def test_the_method_of_peak_hours(folder):
    """The days' peaks are 100, 200, 300 and 400m, and 500Mi is the highest memory: 250m, 187.5m of it, 575Mi."""
    outcome = recommend(folder, "--peak", "10:00-11:00", "-o", "json")

    (web,) = json.loads(outcome.stdout)["containers"]
    assert (web["namespace"], web["kind"], web["name"], web["container"]) == ("default", "Deployment", "web", "(pod)")
    assert web["recommended"] == {
        "cpuRequest": "188m",
        "cpuLimit": "250m",
        "memoryRequest": "263Mi",
        "memoryLimit": "575Mi",
    }
    assert (web["confidence"], web["days"], web["samples"]) == ("low", 4, 16)


def test_each_rule_has_a_manual():
    """In short for all of them, and as a page for one."""
    short, page, unknown = (
        CliRunner().invoke(main, ["recommend", "rules", *name]) for name in ([], ["target"], ["magic"])
    )

    names = ["peak-mean", "seed-literal", "quantile", "target"]
    assert [line.partition(":")[0] for line in short.stdout.splitlines()] == names
    assert "halves every" in page.stdout
    assert (unknown.exit_code, "magic is not a rule; there are peak-mean" in unknown.stderr) == (2, True)


@pytest.mark.parametrize(
    "selector",
    [
        *("web", "default/web", "namespace:default"),
        *("label:tier=core", "label:tier", "annotation:team/core=yes", "priority-class:high"),
    ],
)
def test_core_workloads_are_selected_as_people_mark_them(folder, pods, selector):
    """By name, namespace, label, annotation or priority class; what selects nothing is said."""
    document = json.loads(pods.read_text())
    (made,) = document["items"]
    made["metadata"] |= {"annotations": {"team/core": "yes"}}
    made["metadata"]["labels"]["tier"] = "core"
    made["spec"]["priorityClassName"] = "high"
    pods.write_text(json.dumps(document))
    asked = ("--peak", "10:00-11:00", "--snapshot", str(pods), "-o", "json")

    outcome = recommend(folder, *asked, "--core", selector, "--core", "label:absent")

    (web,) = json.loads(outcome.stdout)["containers"]
    assert web["recommended"]["cpuRequest"] == web["recommended"]["cpuLimit"] == "250m"
    assert web["qosClass"]["recommended"] == "Guaranteed"
    assert "--core label:absent selects no workload that was measured" in outcome.stderr


def test_the_cluster_says_what_is_requested_now(folder, pods):
    """The sample of a pod with one container is that container's."""
    arguments = ("--peak", "10:00-11:00", "--snapshot", str(pods))

    outcome = recommend(folder, *arguments)

    assert "Deployment/web" in outcome.stdout
    assert "1000m > 188m" in outcome.stdout
    assert "Requests in all: cpu 812m freed, memory 761Mi freed" in outcome.stdout
    (web,) = json.loads(recommend(folder, *arguments, "-o", "json").stdout)["containers"]
    assert web["change"] == {"cpuRequest": "-812m", "memoryRequest": "-761Mi"}
    assert web["qosClass"] == {"now": "Burstable", "recommended": "Burstable"}


def test_patches_have_what_should_change_and_nothing_else(patched):
    """One file a workload, for kubectl apply --server-side."""
    amounts = {"requests": {"cpu": "188m", "memory": "263Mi"}, "limits": {"cpu": "250m", "memory": "575Mi"}}

    assert patched("--peak", "10:00-11:00") == {
        "default.deployment.web.yaml": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {"template": {"spec": {"containers": [{"name": "app", "resources": amounts}]}}},
        }
    }


def test_a_patch_has_what_stays_too(patched):
    """The server takes away what an earlier patch had: a limit that the rule leaves alone, a container that is fine."""
    limits = {"cpu": "2", "memory": "2048Mi"}

    found = resources_of(patched("--rule", "target", resources={"requests": {"cpu": "10m"}, "limits": limits}))

    assert found["limits"] == {"cpu": "2", "memory": "2Gi"}  # spelled as the server does
    assert {*found["requests"]} == {"cpu", "memory"}


def test_a_vertical_autoscaler_that_is_off_recommends_beside(folder, pods, tmp_path):
    """It changes nothing, and does not go below the peaks."""
    out = tmp_path / "vpa"

    recommend(folder, "--peak", "10:00-11:00", "--snapshot", str(pods), "--vpa", str(out))

    (file,) = out.iterdir()
    assert '"Off"' in file.read_text() or "'Off'" in file.read_text()  # plain, YAML reads it as false
    policy = {
        "containerName": "app",
        "controlledResources": ["cpu", "memory"],
        "minAllowed": {"cpu": "188m", "memory": "263Mi"},
    }
    assert yaml.safe_load(file.read_text()) == {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"namespace": "default", "name": "web"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": "Off"},
            "resourcePolicy": {"containerPolicies": [policy]},
        },
    }


def test_patches_are_written_into_an_empty_folder_only(folder, pods):
    """`kubectl apply -f` would apply what else is there."""
    outcome = recommend(folder, "--snapshot", str(pods), "--patches", str(folder))

    assert outcome.exit_code == 2
    assert "is not empty; name a new folder" in outcome.stderr


def test_a_name_that_leads_out_of_the_folder_has_no_patch(patched):
    owner = {"kind": "StatefulSet", "name": "../../web", "controller": True}

    assert patched("--peak", "10:00-11:00", ownerReferences=[owner]) == {}


def test_a_limit_below_the_new_request_is_raised_to_it(patched):
    """The API server refuses a request above the limit; the rule `quantile` asks for no limit of cpu."""
    found = resources_of(patched("--rule", "quantile", resources={"limits": {"cpu": "100m"}}))

    assert found["limits"]["cpu"] == found["requests"]["cpu"] == "365m"


def test_pods_that_match_nothing_in_the_cluster_are_counted(folder, pods):
    """A pod of the workload that is gone joins it by its name."""
    (folder / "resource-20230520103000.txt").write_text("gone-7f6d5c4b2-zzzzz 1m 1Mi\n")

    outcome = recommend(folder, "--peak", "10:00-11:00", "--snapshot", str(pods), "-o", "json")

    assert [each["name"] for each in json.loads(outcome.stdout)["containers"]] == ["web"]
    assert "1 sample of 1 pod without a workload in the cluster: default/gone-7f6d5c4b2-zzzzz" in outcome.stderr


def test_what_cannot_be_read_is_named_and_the_rest_counts(folder):
    """Half a line at the end of a file, a line of something else, a name without a time, two files of one time."""
    (folder / "resource-20230515103000.txt").write_text(
        "web-5d8f7b9c64-x2x7k 10m 20Mi\nnonsense\nweb-5d8f7b9c64-x2x7k 1m 2Mi"
    )
    (folder / "notes.txt").write_text("hello\n")
    (folder / "again-20230511103000.txt").write_text("web-5d8f7b9c64-x2x7k 9999m 20Mi\n")

    outcome = recommend(folder, "--peak", "10:00-11:00", "-o", "json")

    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["containers"][0]["samples"] == 16
    assert "resource-20230515103000.txt: 2 lines from line 2 on" in outcome.stderr
    assert "notes.txt: there is no time in its name" in outcome.stderr
    assert "resource-20230511103000.txt: again-20230511103000.txt is of the same time" in outcome.stderr


@pytest.mark.parametrize(
    ("heading", "line", "namespace", "container"),
    [
        ("NAMESPACE NAME CPU(cores) MEMORY(bytes)", "shop db-0 10m 64Mi", "shop", "(pod)"),
        ("POD NAME CPU(cores) MEMORY(bytes)", "db-0 app 10m 64Mi", "default", "app"),
        ("NAMESPACE POD NAME CPU(cores) MEMORY(bytes)", "shop db-0 app 10m 64Mi", "shop", "app"),
    ],
)
def test_all_shapes_of_kubectl_top_are_read(tmp_path, heading, line, namespace, container):
    """The heading may be at the end, as `sort` puts it."""
    for day in range(3):
        (tmp_path / f"top-2023051{day}103000.txt").write_text(f"{line}\n{heading}\n")

    (found,) = json.loads(recommend(tmp_path, "-o", "json").stdout)["containers"]

    assert (found["namespace"], found["name"], found["container"]) == (namespace, "db", container)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rule", "magic"), "--rule magic is not a rule; there are peak-mean, seed-literal, quantile, target"),
        (("--timezone", "Mars"), "--timezone Mars is not a time zone"),
        (("--peak", "noon"), "'noon' is not a window"),
        (("--patches", "p"), "--patches needs --snapshot"),
        (("--snapshot", "absent.json"), "--snapshot absent.json cannot be read"),
    ],
)
def test_bad_usage_is_named(folder, arguments, message):
    outcome = recommend(folder, *arguments)

    assert outcome.exit_code == 2
    assert message in outcome.stderr
