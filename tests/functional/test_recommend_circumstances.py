"""What samples do not show raises what is recommended, or leaves it alone, and the reason is said."""

import json

import pytest
import yaml
from click.testing import CliRunner

from rebalancer.cli.main import main
from tests.functional.test_recommend_what_if import asked, pod
from tests.make import NOW
from tests.real_prometheus import RealPrometheus, Series, needed

NEED = {"cpuRequest": "750m", "cpuLimit": "1000m", "memoryRequest": "75Mi", "memoryLimit": "115Mi"}
RESOURCES = {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m", "memory": "512Mi"}}
HOUR, DAY = 3600, 86_400


def scaler(*metrics):
    spec = {"scaleTargetRef": {"kind": "StatefulSet", "name": "web"}, "metrics": list(metrics)}
    metadata = {"name": "by-load", "namespace": "shop"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def container_of(outcome):
    assert outcome.exit_code == 0, outcome.output
    (found,) = json.loads(outcome.stdout)["containers"]
    return found


@pytest.mark.parametrize(
    ("metrics", "left"),
    [
        ([{"type": "Resource", "resource": {"name": "cpu"}}], {"cpu"}),
        ([{"type": "Resource", "resource": {"name": "memory"}}], {"memory"}),
        ([{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app"}}], {"cpu"}),
        ([{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "other"}}], set()),
        ([{"type": "External", "external": {"metric": {"name": "queue"}}}], set()),
        ([], {"cpu"}),
    ],
)
def test_what_an_autoscaler_scales_by_is_left_alone_and_said(tmp_path, metrics, left):
    """One without metrics scales by cpu, as the API server has it; the patch says nothing of that resource."""
    patches = tmp_path / "patches"
    objects = [pod("web", "n1", RESOURCES), scaler(*metrics)]

    found = container_of(asked(tmp_path, {"web": 1000}, objects, "-o", "json", "--patches", str(patches)))

    expected = {name: None if any(name.startswith(each) for each in left) else text for name, text in NEED.items()}
    assert found["recommended"] == expected
    told = [f"{each} is left alone: HorizontalPodAutoscaler by-load scales by it" for each in left]
    assert found["remarks"] == told
    (patched,) = yaml.safe_load(next(patches.iterdir()).read_text())["spec"]["template"]["spec"]["containers"]
    assert {"cpu", "memory"} - left == {*patched["resources"]["requests"]} == {*patched["resources"]["limits"]}


def test_what_cannot_be_read_or_has_ended_does_not_count(tmp_path):
    """A pod with a malformed request is named and left out; one that has failed requests nothing any more."""
    bad, done = pod("bad", "n1", {"requests": {"cpu": "much"}}), pod("web", "n1", RESOURCES)
    done["metadata"]["name"] = "web-1"
    done["status"]["phase"] = "Failed"

    outcome = asked(tmp_path, {"web": 1000}, [bad, done, pod("web", "n1", RESOURCES)], "-o", "json")

    assert container_of(outcome)["replicas"] == 1
    assert "--snapshot: Pod shop/bad-0 is left out: 'much' is not a valid quantity" in outcome.stderr


@pytest.mark.parametrize("part", ["state", "lastState"])
@pytest.mark.parametrize(("rule", "request_"), [("peak-mean", "402Mi"), ("quantile", "615Mi"), ("target", "615Mi")])
def test_a_kill_for_memory_raises_it_above_the_limit(tmp_path, part, rule, request_):
    """Nobody saw more than 100Mi, and yet 512Mi were not enough: a fifth more, as the VerticalPodAutoscaler does."""
    killed = pod("web", "n1", RESOURCES)
    killed["status"]["containerStatuses"] = [{"name": "app", part: {"terminated": {"reason": "OOMKilled"}}}]

    found = container_of(asked(tmp_path, {"web": 1000}, [killed], "-o", "json", "--rule", rule))

    assert found["recommended"]["memoryRequest"] == request_
    assert found["recommended"]["memoryLimit"] == (None if rule == "target" else "615Mi")
    assert found["remarks"] == ["OOM killed in 1 pod: memory raised to 615Mi"]


@needed
def test_prometheus_tells_of_kills_and_throttling(tmp_path):
    """On four days, for two hours each, 40 % of the periods are throttled; a pod that is gone was killed."""
    labels, gone = ({"namespace": "shop", "pod": f"web-{n}", "container": "app"} for n in (0, 1))
    days = 4

    def throttled(age):
        """Of two periods a second 40 % from hour 10 to hour 12 of each day; a counter, so it only grows."""
        day, second = divmod(days * DAY - age, DAY)
        return 0.8 * (day * 2 * HOUR + min(max(second - 10 * HOUR, 0), 2 * HOUR))

    past = [
        Series("used_cores", labels, lambda _: 0.2, days * DAY, 1800),
        Series("used_bytes", labels, lambda _: 100 << 20, days * DAY, 1800),
        Series("container_cpu_cfs_periods_total", labels, lambda age: (days * DAY - age) * 2.0, days * DAY, 60),
        Series("container_cpu_cfs_throttled_periods_total", labels, throttled, days * DAY, 60),
        Series(
            "kube_pod_container_status_last_terminated_reason",
            {**gone, "reason": "OOMKilled"},
            lambda age: 1.0 if 2 * DAY < age < 2 * DAY + HOUR else None,
            days * DAY,
            60,
        ),
    ]
    cluster = tmp_path / "pods.json"
    cluster.write_text(json.dumps({"kind": "List", "items": [pod("web", "n1", RESOURCES)]}))
    with RealPrometheus(tmp_path, past) as server:
        where = ["--prometheus", server.url, "--history", f"{days * 24}h", "--step", "30m"]
        asks = ["--cpu-query", "used_cores", "--memory-query", "used_bytes", "--now", NOW.isoformat()]
        few = ["--min-days", "2", "--min-samples", "20", "--snapshot", str(cluster), "-o", "json"]
        found = container_of(CliRunner().invoke(main, ["recommend", *where, *asks, *few]))

    killed, squeezed = found["remarks"]
    assert killed == "OOM killed in 1 pod: memory raised to 615Mi"
    assert squeezed == "throttled in 40 % of its cpu periods on 4 days: its limit of cpu raised to 700m"
    assert (found["recommended"]["cpuRequest"], found["recommended"]["cpuLimit"]) == ("525m", "700m")
