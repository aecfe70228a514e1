"""Steering, holding and marking take permissions that nobody gets without them, and nothing outlives the release."""

import json

import pytest
import yaml

from rebalancer.kube.marks import ANNOTATION
from rebalancer.policy.load import load_policy
from rebalancer.policy.moving import AVOID_KEY, HOLD_KEY, PRESSURE_KEY, avoid_keys
from rebalancer.run.policies import known_plugins
from tests.chart.helm import ADMISSION, Object, kinds, needed, one, pod_spec, policy_text, refusal, template
from tests.chart.test_marking import MARKED, RULES
from tests.chart.test_policy import granted, profile

pytestmark = needed

NODES = {"get nodes", "patch nodes"}
OWN: Object = {"steering": {"enabled": True}}
STEERED = profile(args="{maxPodLifeTimeSeconds: 60}", top="steering: {key: example.com/steer}")
HOLDS = profile(args="{maxPodLifeTimeSeconds: 60}", top="hold: 15m")
PODS = (("Deployment", "-mark"), ("Job", "-unmark"))
STEERING = ("--set", "steering.enabled=true")


@pytest.mark.parametrize(
    "values",
    [
        *(OWN, STEERED, "cmdOptions: {steer: null}", "extraArgs: [--steer]"),
        *(HOLDS, "cmdOptions: {hold: 15m}", "extraArgs: [--hold, 15m]", "extraArgs: [--hold=15m]", MARKED),
    ],
)
def test_nodes_may_be_patched_only_where_they_are_marked(values):
    """By values, policy or option; a dry run may not, whatever they say."""
    dry = template(values, "--set", "dryRun=true", *ADMISSION)

    assert granted(template(values)) >= NODES
    assert not NODES & granted(template())
    assert not NODES & granted(dry)
    assert not [each for each in dry if "Admission" in each["kind"] or each["kind"] == "Job"]


@pytest.mark.parametrize(
    ("values", "options", "keys", "labels"),
    [
        (OWN, (), [], []),
        (STEERED, (), ["example.com/steer", "example.com/steer-more"], []),
        (HOLDS, (), [], []),
        (MARKED, STEERING, ["example.com/hot"], ["status"]),
        ({"marking": {"enabled": True, "rules": RULES}}, (), [], []),
    ],
)
def test_the_admission_policy_allows_just_these_keys(values, options, keys, labels):
    """All that may be ours: what an earlier policy has left comes off too, or the release could not be uninstalled."""
    admission = one(template(values, *options, *ADMISSION), "ValidatingAdmissionPolicy")
    found = {each["name"]: each["expression"] for each in admission["spec"]["variables"]}
    allowed = {name: sorted(yaml.safe_load(found[name])) for name in ("keys", "notes", "ownLabels")}

    usual = {*avoid_keys(AVOID_KEY), HOLD_KEY, PRESSURE_KEY}
    assert allowed["keys"] == sorted({*usual, *keys})
    assert allowed["notes"] == sorted([ANNOTATION, HOLD_KEY, PRESSURE_KEY])
    assert allowed["ownLabels"] == sorted([PRESSURE_KEY, *labels])


@pytest.mark.parametrize(
    ("values", "args"),
    [
        (OWN, ["--key=kube-rebalancer/avoid"]),
        (STEERED, ["--key=example.com/steer"]),
        (HOLDS, ["--key=kube-rebalancer/avoid"]),
        (MARKED, ["--key=kube-rebalancer/avoid", "--mark=status=presure"]),
        (
            {**OWN, "leaderElection": {"resourceName": "ours", "resourceNamespace": "tools"}},
            [
                "--key=kube-rebalancer/avoid",
                "--leader-elect-resource-name=ours",
                "--leader-elect-resource-namespace=tools",
            ],
        ),
    ],
)
def test_marks_come_off_before_the_release_goes(values, args):
    """By their keys too, for what has lost its annotation."""
    (container,) = one(template(values), "Job", "-unmark")["spec"]["template"]["spec"]["containers"]

    assert container["args"] == ["unmark", "--all", *args]
    assert kinds(template()).count("Job") == 0


def test_the_values_add_steering_to_the_policy():
    """With its key; a policy that steers by itself stays as it is."""
    own = policy_text(template({"steering": {"enabled": True, "key": "example.com/avoid"}}))
    given = policy_text(template(STEERED, *STEERING))

    assert load_policy(own, known_plugins(), source="values", strict=True).policy.steering.key == "example.com/avoid"
    assert load_policy(given, known_plugins(), source="values", strict=True).policy.steering.key == "example.com/steer"
    assert "write" in refusal({**OWN, "policy": {"text": json.dumps({"profiles": []})}})


def test_the_admission_policy_is_for_this_account_alone():
    """It denies, also when it cannot be evaluated; clusters that do not have such policies get none."""
    found = template(OWN, *ADMISSION)
    admission, binding = one(found, "ValidatingAdmissionPolicy"), one(found, "ValidatingAdmissionPolicyBinding")
    account = one(found, "ServiceAccount")["metadata"]["name"]

    assert admission["spec"]["failurePolicy"] == "Fail"
    assert f"'system:serviceaccount:kube-system:{account}'" in admission["spec"]["matchConditions"][0]["expression"]
    assert binding["spec"] == {"policyName": admission["metadata"]["name"], "validationActions": ["Deny"]}
    assert "ValidatingAdmissionPolicy" not in kinds(template(OWN, kubernetes="1.29.0"))


def test_what_takes_marks_off_is_the_same_account_and_as_restricted():
    """As the program itself, which gets time for its own."""
    found = template(OWN)
    job, run = one(found, "Job", "-unmark"), pod_spec(found)
    pod = job["spec"]["template"]["spec"]

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    for same in ("serviceAccountName", "securityContext", "priorityClassName"):
        assert pod[same] == run[same]
    assert pod["containers"][0]["securityContext"] == run["containers"][0]["securityContext"]
    assert run["terminationGracePeriodSeconds"] == 90
    assert "terminationGracePeriodSeconds" not in pod_spec(template())


def test_all_pods_get_the_token_in_the_same_way():
    """One that the values mount where no account mounts its own; else marks would stay, and the release with them."""
    token, place = {"name": "token", "emptyDir": {}}, {"name": "token", "mountPath": "/token"}
    mounted = {"extraServiceAccountVolumes": [token], "extraServiceAccountVolumeMounts": [place]}
    found = template({**MARKED, "automountServiceAccountToken": False, **mounted})

    for pod in (pod_spec(found), *(one(found, *each)["spec"]["template"]["spec"] for each in PODS)):
        assert pod["automountServiceAccountToken"] is False
        assert token in pod["volumes"]
        assert place in pod["containers"][0]["volumeMounts"]
    for each in PODS:
        pod = one(template({**MARKED, "automountServiceAccountToken": True, **mounted}), *each)["spec"]["template"]
        assert pod["spec"]["automountServiceAccountToken"] is True
        assert token not in pod["spec"].get("volumes", ())
