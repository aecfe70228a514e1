"""Holding emptied nodes takes permissions that nobody gets without it, and nothing of it outlives the release."""

import pytest

from tests.chart.helm import ADMISSION, Object, needed, one, template
from tests.chart.test_policy import granted, profile

pytestmark = needed

NODES = {"get nodes", "patch nodes"}
HOLDS = profile(args="{maxPodLifeTimeSeconds: 60}", top="hold: 15m")


@pytest.mark.parametrize(
    "values", [HOLDS, "cmdOptions: {hold: 15m}", "extraArgs: [--hold, 15m]", "extraArgs: [--hold=15m]"]
)
def test_nodes_may_be_patched_only_where_they_are_held(values: str | Object) -> None:
    """By policy or option; a dry run may not, whatever they say."""
    dry = template(values, "--set", "dryRun=true", *ADMISSION)

    assert granted(template(values)) >= NODES
    assert not NODES & granted(template())
    assert not NODES & granted(dry)
    assert not [each for each in dry if "Admission" in each["kind"] or each["kind"] == "Job"]


def test_the_admission_policy_allows_just_this_key() -> None:
    """And those of steering only where the release steers."""

    def variables(*options: str) -> dict[str, str]:
        admission = one(template(HOLDS, *options, *ADMISSION), "ValidatingAdmissionPolicy")
        return {each["name"]: each["expression"] for each in admission["spec"]["variables"]}

    alone, steered = variables(), variables("--set", "steering.enabled=true")
    assert (alone["keys"], alone["notes"], alone["ownLabels"]) == (
        "['kube-rebalancer/hold']",
        "['kube-rebalancer/hold']",
        "[]",
    )
    assert steered["keys"] == "['kube-rebalancer/avoid', 'kube-rebalancer/avoid-more', 'kube-rebalancer/hold']"


def test_held_nodes_are_released_before_the_release_goes() -> None:
    (container,) = one(template(HOLDS), "Job", "-unmark")["spec"]["template"]["spec"]["containers"]

    assert container["args"][:2] == ["unmark", "--all"]
