"""`rebalancer recommend` on a folder of samples as people collect them with `kubectl top`."""

import pytest

from tests.functional.objects import pod
from tests.functional.recommending import JSON, PEAK, Recommender, resources_of


@pytest.fixture
def recommend(rebalancer):
    """Four days, at 10:30 and 20:30: web-a needs most, 100m to 400m more each day at half past ten."""
    made = Recommender(rebalancer)
    for day in range(4):
        for hour, cpu in ((10, 100 * (day + 1)), (20, 50)):
            lines = f"web-5d8f7b9c64-x2x7k {cpu}m {200 + 100 * day}Mi", f"web-5d8f7b9c64-b4b4b {cpu // 2}m 100Mi", ""
            made.write(f"resource-202305{11 + day}{hour}3000.txt", *lines)
    return made


@pytest.fixture
def web():
    """One of the pods as kubectl prints it."""
    made = pod("web-5d8f7b9c64-x2x7k", owner="web-5d8f7b9c64")
    made["metadata"]["labels"] = {"pod-template-hash": "5d8f7b9c64"}
    made["spec"]["containers"] = [{"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    return made


def test_the_method_of_peak_hours(recommend):
    """The days' peaks are 100, 200, 300 and 400m, and 500Mi is the highest memory: 250m, 187.5m of it, 575Mi."""
    web = recommend.container(*PEAK)

    assert (web["namespace"], web["kind"], web["name"], web["container"]) == ("default", "Deployment", "web", "(pod)")
    assert web["recommended"] == {
        "cpuRequest": "188m",
        "cpuLimit": "250m",
        "memoryRequest": "263Mi",
        "memoryLimit": "575Mi",
    }
    assert (web["confidence"], web["days"], web["samples"]) == ("low", 4, 16)


def test_each_rule_has_a_manual(rebalancer):
    """In short for all of them, and as a page for one."""
    short, page, unknown = (rebalancer("recommend", "rules", *name) for name in ([], ["target"], ["magic"]))

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
def test_core_workloads_are_selected_as_people_mark_them(recommend, web, selector):
    """By name, namespace, label, annotation or priority class; what selects nothing is said."""
    web["metadata"] |= {"annotations": {"team/core": "yes"}}
    web["metadata"]["labels"]["tier"] = "core"
    web["spec"]["priorityClassName"] = "high"

    outcome = recommend(*PEAK, *JSON, "--core", selector, "--core", "label:absent", beside=[web])

    (web,) = outcome.report["containers"]
    assert web["recommended"]["cpuRequest"] == web["recommended"]["cpuLimit"] == "250m"
    assert web["qosClass"]["recommended"] == "Guaranteed"
    assert "--core label:absent selects no workload that was measured" in outcome.stderr


def test_the_cluster_says_what_is_requested_now(recommend, web):
    """The sample of a pod with one container is that container's."""
    outcome = recommend(*PEAK, beside=[web])

    assert "Deployment/web" in outcome.stdout
    assert "1000m > 188m" in outcome.stdout
    assert "Requests in all: cpu 812m freed, memory 761Mi freed" in outcome.stdout
    web = recommend.container(*PEAK, beside=[web])
    assert web["change"] == {"cpuRequest": "-812m", "memoryRequest": "-761Mi"}
    assert web["qosClass"] == {"now": "Burstable", "recommended": "Burstable"}


def test_patches_have_what_should_change_and_nothing_else(recommend, web):
    """One file a workload, for kubectl apply --server-side; a name that leads out of the folder has none."""
    amounts = {"requests": {"cpu": "188m", "memory": "263Mi"}, "limits": {"cpu": "250m", "memory": "575Mi"}}

    assert recommend.written(*PEAK, "--patches", beside=[web]) == {
        "default.deployment.web.yaml": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {"template": {"spec": {"containers": [{"name": "app", "resources": amounts}]}}},
        }
    }
    web["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "../../web", "controller": True}]
    assert recommend(*PEAK, "--patches", recommend.program.folder / "other", beside=[web]).exit_code == 0
    assert list((recommend.program.folder / "other").iterdir()) == []


@pytest.mark.parametrize(
    ("rule", "resources", "limits"),
    [
        # Spelled as the server does.
        ("target", {"requests": {"cpu": "10m"}, "limits": {"cpu": "2", "memory": "2048Mi"}}, ["2", "2Gi"]),
        # Below the request, which the server refuses; the rule asks for no limit of cpu.
        ("quantile", {"limits": {"cpu": "100m"}}, ["365m", "575Mi"]),
    ],
)
def test_a_patch_has_limits_that_a_rule_leaves_alone(recommend, web, rule, resources, limits):
    """The server takes away what an earlier patch had; a limit below the new request is raised to it."""
    web["spec"]["containers"][0]["resources"] = resources

    found = resources_of(recommend.written("--rule", rule, "--patches", beside=[web]))

    assert [found["limits"][each] for each in found["requests"]] == limits


def test_a_vertical_autoscaler_that_is_off_recommends_beside(recommend, web):
    """It changes nothing, and does not go below the peaks."""
    policy = {
        "containerName": "app",
        "controlledResources": ["cpu", "memory"],
        "minAllowed": {"cpu": "188m", "memory": "263Mi"},
    }
    (found,) = recommend.written(*PEAK, "--vpa", beside=[web]).values()

    assert found == {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"namespace": "default", "name": "web"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": "Off"},
            "resourcePolicy": {"containerPolicies": [policy]},
        },
    }


def test_an_owner_of_another_group_is_no_owner_of_apps(recommend, web):
    """OpenKruise has StatefulSets, too.  A patch of one would leave it a single container without an image."""
    owner = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", "controller": True}
    web["metadata"]["ownerReferences"] = [owner]
    folder = recommend.program.folder / "patches"

    (found,) = recommend.written(*PEAK, "--vpa", beside=[web]).values()
    recommend(*PEAK, "--patches", folder, beside=[web])

    assert found["spec"]["targetRef"] == {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web"}
    assert list(folder.iterdir()) == []


def test_namesakes_of_two_kinds_have_an_autoscaler_each(recommend, web):
    """Else the second one that is applied would take the place of the first."""
    other = pod("web-5d8f7b9c64-b4b4b")
    other["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    other["spec"] = web["spec"]

    found = recommend.written(*PEAK, "--vpa", beside=[web, other]).values()

    assert {each["metadata"]["name"] for each in found} == {"web-deployment", "web-statefulset"}


def test_a_spreadsheet_takes_no_name_for_a_formula(recommend):
    """Samples have no names that Kubernetes has checked."""
    for day in range(3):
        recommend.write(f"top-2023051{day}103000.txt", "NAMESPACE NAME CPU(cores) MEMORY(bytes)", "@a =1+1 1m 1Mi", "")

    assert "\n'@a,Pod,'=1+1,(pod)," in recommend("-o", "csv").stdout


def test_a_kind_is_shown_in_visible_characters(recommend, web):
    web["metadata"]["ownerReferences"][0]["kind"] = "Job\x1b[2J"

    assert "\\x1b[2J" in recommend(*PEAK, "-o", "csv", beside=[web]).stdout


def test_pods_that_match_nothing_in_the_cluster_are_counted(recommend, web):
    """A pod of the workload that is gone joins it by its name."""
    recommend.write("resource-20230520103000.txt", "gone-7f6d5c4b2-zzzzz 1m 1Mi", "")

    outcome = recommend(*PEAK, *JSON, beside=[web])

    assert [each["name"] for each in outcome.report["containers"]] == ["web"]
    assert (
        "1 sample of 1 pod without a workload or container in the cluster: default/gone-7f6d5c4b2-zzzzz"
        in outcome.stderr
    )


def test_what_cannot_be_read_is_named_and_the_rest_counts(recommend):
    """Half a line at the end of a file, a line of something else, a name without a time, two files of one time."""
    lines = "web-5d8f7b9c64-x2x7k 10m 20Mi", "nonsense", "web-5d8f7b9c64-x2x7k 1m 2Mi"
    recommend.write("resource-20230515103000.txt", *lines)
    recommend.write("notes.txt", "hello", "")
    recommend.write("again-20230511103000.txt", "web-5d8f7b9c64-x2x7k 9999m 20Mi", "")

    outcome = recommend(*PEAK, *JSON)

    assert outcome.exit_code == 0
    assert outcome.report["containers"][0]["samples"] == 16
    assert "resource-20230515103000.txt: 2 lines from line 2 on" in outcome.stderr
    assert "notes.txt: there is no time in its name" in outcome.stderr
    assert "resource-20230511103000.txt: again-20230511103000.txt is of the same time" in outcome.stderr


@pytest.mark.parametrize(
    ("heading", "line", "namespace", "container"),
    [
        ("NAMESPACE NAME CPU(cores) MEMORY(bytes)", "shop db-0 10m 64Mi", "shop", "(pod)"),
        ("\ufeffNAMESPACE NAME CPU(cores) MEMORY(bytes)", "shop db-0 10m 64Mi", "shop", "(pod)"),
        ("POD NAME CPU(cores) MEMORY(bytes)", "db-0 app 10m 64Mi", "default", "app"),
        ("NAMESPACE POD NAME CPU(cores) MEMORY(bytes)", "shop db-0 app 10m 64Mi", "shop", "app"),
    ],
)
def test_all_shapes_of_kubectl_top_are_read(rebalancer, heading, line, namespace, container):
    """The heading may be at the end, as `sort` puts it; a PowerShell begins it with a byte order mark."""
    recommend = Recommender(rebalancer)
    for day in range(3):
        lines = (heading, line) if heading.startswith("\ufeff") else (line, heading)
        recommend.write(f"top-2023051{day}103000.txt", *lines, "")

    found = recommend.container()

    assert (found["namespace"], found["name"], found["container"]) == (namespace, "db", container)


def test_a_folder_has_to_be_empty_and_a_picture_needs_nodes(recommend, web):
    """`kubectl apply -f` would apply what else is there."""
    full, lone = (recommend(*each, beside=[web]) for each in (("--patches", recommend.program.folder), ["--what-if"]))

    assert (full.exit_code, lone.exit_code) == (2, 2)
    assert "is not empty; name a new folder" in full.stderr
    assert "--what-if needs nodes in --snapshot: `rebalancer snapshot` writes all" in lone.stderr


def test_where_nothing_uses_cpu_all_hours_are_peaks(rebalancer):
    """The memory of each hour counts then."""
    recommend = Recommender(rebalancer)
    for day in range(3):
        for hour, memory in (("09", 64), ("15", 640)):
            recommend.write(f"top-2023051{day}{hour}3000.txt", f"web-5d8f7b9c64-x2x7k 0m {memory}Mi", "")

    outcome = recommend(*JSON)

    assert "peak hours found by cpu: 09:00-10:00, 15:00-16:00;" in outcome.stderr
    assert outcome.report["containers"][0]["recommended"]["memoryRequest"] == "480Mi"
