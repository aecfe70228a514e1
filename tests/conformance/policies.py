"""Policies and arguments: what is accepted, and what it becomes."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from rebalancer.cluster.pod import SYSTEM_CRITICAL_PRIORITY
from rebalancer.cluster.selectors import LabelSelector, parse_label_selector
from rebalancer.errors import PolicyError
from rebalancer.policy.arguments import Args
from rebalancer.policy.load import load_policy
from rebalancer.policy.values import PolicyProfile
from rebalancer.run.policies import known_plugins
from tests.conformance.answers import Answer, acceptance, equal
from tests.conformance.corpus import Case
from tests.conformance.runs import USAGE_ERROR, program
from tests.functional.program import Outcome

#: What the descheduler writes into every policy: the threshold that holds anyway.
_THRESHOLD = {"value": SYSTEM_CRITICAL_PRIORITY, "name": ""}

#: The least that makes arguments valid which the descheduler fills with defaults before it looks at them.
_CURES: Mapping[str, Mapping[str, Any]] = {
    "HighNodeUtilization": {"thresholds": {"cpu": 20}},
    "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 80}},
    "PodLifeTime": {"maxPodLifeTimeSeconds": 600},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 1},
    "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
    "RemovePodsViolatingNodeTaints": {"includedTaints": None},
}


def validate(case: Case) -> Answer:
    result = _validated(json.dumps(case["policy"]))
    assert result.exit_code in (0, USAGE_ERROR), result.stderr
    return acceptance(result.exit_code == 0, case, result.stderr)


def _validated(text: str, *options: str) -> Outcome:
    with program() as rebalancer:
        path = rebalancer.folder / "policy.yaml"
        path.write_text(text)
        return rebalancer("validate", "--policy", path, *options)


def decode(case: Case) -> Answer:
    policy, problems = None, ""
    try:
        policy = load_policy(case["policy_yaml"], known_plugins(), source="case", runs=False).policy
    except PolicyError as error:
        problems = str(error)
    accepted = acceptance(policy is not None, case, problems)
    if not accepted.agrees or policy is None:
        return accepted
    if case.get("bootstrap_error") or case.get("e2e", {}).get("bootstrap_error"):  # decoded, but not fit to run
        assert _validated(case["policy_yaml"], "--lenient").exit_code == USAGE_ERROR
    return equal(
        [_shown(each) for each in policy.profiles], [_wanted(each) for each in case["expected_result"]["profiles"]]
    )


def defaults(case: Case) -> Answer:
    """Compare the arguments after defaulting; what this program refuses is put right, and all the rest compared."""
    model = known_plugins()[case["plugin"]].args
    given = {key: value for key, value in case["args"].items() if value is not None}
    cure: Mapping[str, Any] = {}
    try:
        args = model.model_validate(given)
    except ValidationError:
        cure = _CURES[case["plugin"]]
        args = model.model_validate({key: each for key, each in {**given, **cure}.items() if each is not None})
    observed, expected = _plain(args), _sparse(case["expected_args"])
    return equal(_without(observed, cure), _without(expected, cure))


def _without(args: Mapping[str, Any], keys: Iterable[str]) -> Mapping[str, Any]:
    return {key: value for key, value in args.items() if key not in keys}


def _shown(profile: PolicyProfile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "deschedule": list(profile.deschedule),
        "balance": list(profile.balance),
        "args": {name: _plain(args) for name, args in profile.args.items()},
    }


def _wanted(profile: Mapping[str, Any]) -> dict[str, Any]:
    points = profile["plugins"]
    return {
        "name": profile["name"],
        "deschedule": points.get("deschedule", {}).get("enabled", []),
        "balance": points.get("balance", {}).get("enabled", []),
        "args": {each["name"]: _sparse(each["args"]) for each in profile["pluginConfig"]},
    }


def _plain(args: Args) -> dict[str, Any]:
    return _sparse(args.model_dump(by_alias=True, warnings=False))


def _sparse(value: Any) -> Any:
    """Return a value without what is empty, as the descheduler prints arguments; selectors parsed."""
    if isinstance(value, Mapping) and value and set(value) <= {"matchLabels", "matchExpressions"}:
        return parse_label_selector(value)
    if isinstance(value, Mapping):
        pairs = {key: _sparse(each) for key, each in value.items() if each != _THRESHOLD}
        return {key: each for key, each in pairs.items() if _means_something(each)}
    if isinstance(value, list | tuple):
        return [_sparse(each) for each in value]
    return value


def _means_something(value: Any) -> bool:
    return value not in (None, "", False, [], {}, LabelSelector())
