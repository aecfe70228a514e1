"""Steering takes permissions that nobody gets without it, and nothing of it outlives the release."""

import json

import pytest
import yaml

from rebalancer.policy.load import load_policy
from rebalancer.run.policies import known_plugins
from tests.chart.helm import ADMISSION, Object, kinds, needed, one, pod_spec, policy_text, refusal, template
from tests.chart.test_policy import granted, profile

pytestmark = needed

NODES = {"get nodes", "patch nodes"}
STEERED = profile(args="{maxPodLifeTimeSeconds: 60}", top="steering: {key: example.com/steer}")
OWN: Object = {"steering": {"enabled": True}}


@pytest.mark.parametrize("values", [OWN, STEERED, "cmdOptions: {steer: null}", "extraArgs: [--steer]"])
def test_nodes_may_be_patched_only_with_steering(values: str | Object) -> None:
    """By values, policy or option; a dry run may not, whatever they say."""
    dry = template(values, "--set", "dryRun=true", *ADMISSION)

    assert granted(template(values)) >= NODES
    assert not NODES & granted(template())
    assert not NODES & granted(dry)
    assert not [each for each in dry if "Admission" in each["kind"] or each["kind"] == "Job"]


def test_the_values_add_steering_to_the_policy() -> None:
    """With its key; a policy that steers by itself stays as it is."""
    own = policy_text(template({"steering": {"enabled": True, "key": "example.com/avoid"}}))
    given = policy_text(template(STEERED, "--set", "steering.enabled=true"))

    assert load_policy(own, known_plugins(), source="values", strict=True).policy.steering.key == "example.com/avoid"
    assert load_policy(given, known_plugins(), source="values", strict=True).policy.steering.key == "example.com/steer"
    assert "write" in refusal({**OWN, "policy": {"text": json.dumps({"profiles": []})}})


@pytest.mark.parametrize(
    ("values", "key"),
    [(OWN, "kube-rebalancer/avoid"), (STEERED, "example.com/steer")],
    ids=["default", "of the policy"],
)
def test_keys_are_those_of_the_policy(values: str | Object, key: str) -> None:
    """In the admission policy, and in what takes the taints off before the release goes."""
    found = template(values, *ADMISSION)
    admission, job = one(found, "ValidatingAdmissionPolicy"), one(found, "Job", "-unmark")

    assert admission["spec"]["variables"][0] == {"name": "keys", "expression": f"['{key}', '{key}-more']"}
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["unmark", "--all", f"--key={key}"]


def test_the_admission_policy_is_for_this_account_alone() -> None:
    """It denies, also when it cannot be evaluated; clusters that do not have such policies get none."""
    found = template(OWN, *ADMISSION)
    admission, binding = one(found, "ValidatingAdmissionPolicy"), one(found, "ValidatingAdmissionPolicyBinding")
    account = one(found, "ServiceAccount")["metadata"]["name"]

    assert admission["spec"]["failurePolicy"] == "Fail"
    assert f"'system:serviceaccount:kube-system:{account}'" in admission["spec"]["matchConditions"][0]["expression"]
    assert binding["spec"] == {"policyName": admission["metadata"]["name"], "validationActions": ["Deny"]}
    assert "ValidatingAdmissionPolicy" not in kinds(template(OWN, kubernetes="1.29.0"))


def test_soft_taints_come_off_before_the_release_goes() -> None:
    """As the same account, as restricted as the program itself; and the program gets time for its own."""
    found = template(OWN)
    job, run = one(found, "Job", "-unmark"), pod_spec(found)
    pod = job["spec"]["template"]["spec"]

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    for same in ("serviceAccountName", "securityContext", "priorityClassName"):
        assert pod[same] == run[same]
    assert pod["containers"][0]["securityContext"] == run["containers"][0]["securityContext"]
    assert run["terminationGracePeriodSeconds"] == 90
    assert "terminationGracePeriodSeconds" not in pod_spec(template())


@pytest.mark.parametrize("key", ["no key", "a'b", "x/" + "y" * 59, "X/y"])
def test_what_cannot_be_a_key_is_refused(key: str) -> None:
    """It would end up in an expression."""
    assert "steering" in refusal(yaml.safe_dump({"steering": {"enabled": True, "key": key}}))
