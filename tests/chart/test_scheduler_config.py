"""The scheduler's configuration in the chart: as text, or in a ConfigMap that is there already."""

from rebalancer.policy.scheduler_configuration import load_scheduler_configuration
from tests.chart.helm import container, needed, one, pod_spec, pod_template, policy_text, template

pytestmark = needed

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def options(found: list) -> list[str]:
    return [each for each in container(found)["args"] if each.startswith("--scheduler-config")]


def test_a_text_stands_beside_the_policy() -> None:
    """Where the program looks for it; the program takes it, and still finds the policy in the ConfigMap."""
    found = template({"schedulerConfig": {"text": HEAD + "percentageOfNodesToScore: 30\n"}})

    assert options(found) == ["--scheduler-config=/policy-dir/scheduler.yaml"]
    text = one(found, "ConfigMap", "rebalancer")["data"]["scheduler.yaml"]
    assert load_scheduler_configuration(text, source="chart").document["percentageOfNodesToScore"] == 30
    assert policy_text(found)
    assert options(template()) == []
    assert set(one(template(), "ConfigMap", "rebalancer")["data"]) == {"policy.yaml"}


def test_another_text_starts_pods_anew() -> None:
    """A Deployment reads it at its start."""
    first, second = (
        pod_template(template({"schedulerConfig": {"text": HEAD + f"percentageOfNodesToScore: {each}\n"}}))
        for each in (30, 40)
    )

    assert first["metadata"]["annotations"] != second["metadata"]["annotations"]


def test_a_config_map_that_is_there_is_mounted() -> None:
    found = template({"schedulerConfig": {"configMapName": "scheduler", "key": "config.yaml"}})

    assert options(found) == ["--scheduler-config=/scheduler-dir/config.yaml"]
    assert {"name": "scheduler-volume", "configMap": {"name": "scheduler"}} in pod_spec(found)["volumes"]
    mounts = {each["name"]: each["mountPath"] for each in container(found)["volumeMounts"]}
    assert mounts["scheduler-volume"] == "/scheduler-dir"
