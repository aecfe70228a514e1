"""`--scheduler-config`: read before anything else, said in the report where nothing is known of what it names."""

import json

import pytest

from tests.functional.objects import OLD, node, node_usage, pod, policy
from tests.functional.test_kinds_of_the_scheduler import by_usage

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PACKING = {**HEAD, "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "packing"}]}


@pytest.fixture
def plan(rebalancer):
    """A dry run on a file with pods of several schedulers."""

    def run(asked, configuration=None, *options):
        pods = [pod("a"), pod("b", schedulerName="packing"), pod("c", schedulerName="packing"), pod("d")]
        metrics = [node_usage(name, "1") for name in ("n1", "n2")]
        file = rebalancer.folder / "cluster.json"
        items = [node("n1"), node("n2"), *pods, *metrics]
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        if configuration is not None:
            path = rebalancer.folder / "scheduler.yaml"
            path.write_text(json.dumps(configuration))
            options = (*options, "--scheduler-config", path)
        return rebalancer("run", "--policy", rebalancer.policy(asked), "--snapshot", file, "--output", "json", *options)

    return run


def told(outcome):
    return [each for each in outcome.report["warnings"] if "scheduler" in each and "holds no" not in each]


def test_pods_of_a_scheduler_that_nobody_described_are_one_warning(plan):
    """By name, with how many there are, and what helps."""
    assert told(plan(by_usage())) == [
        "where the scheduler puts pods is unknown for packing (pods: 2): --scheduler-config describes other schedulers"
    ]


def test_a_file_without_what_the_scheduler_goes_by_is_one_warning(plan):
    """It names the kinds, and says where a file with all of them comes from."""
    (warning,) = (each for each in plan(by_usage(), PACKING).report["warnings"] if "holds no CSI" in each)

    assert warning.startswith("where the scheduler puts pods is unknown in part: the snapshot holds no CSIDriver, CSI")
    assert warning.endswith("StorageClass, VolumeAttachment; `rebalancer snapshot` writes all kinds")


@pytest.mark.parametrize(
    ("asked", "configuration"), [(by_usage(), PACKING), (by_usage(scheduler="unknown"), None), (policy(OLD), None)]
)
def test_where_nothing_is_unknown_nothing_is_said(plan, asked, configuration):
    """A configuration describes it, by its schedulerName, or the policy does not ask the scheduler."""
    assert told(plan(asked, configuration)) == []


def test_a_configuration_that_cannot_be_used_ends_the_run(plan):
    """Exit code 2, and all that is wrong with file, line and path; also where the policy does not ask."""
    outcome = plan(policy(OLD), {**HEAD, "percentageOfNodesToScore": 101, "profiles": {}})

    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "scheduler.yaml cannot be used:\n" in outcome.stderr
    assert "line 1, percentageOfNodesToScore: must be a whole number from 0 to 100" in outcome.stderr
    assert "line 1, profiles: must be a list" in outcome.stderr


def test_standard_input_is_read_once(rebalancer):
    """Policy and configuration cannot both be there."""
    outcome = rebalancer("run", "--policy", "-", "--scheduler-config", "-", "--snapshot", "x.json")

    assert outcome.exit_code == 2
    assert "--policy and --scheduler-config cannot both be standard input" in outcome.stderr
