"""A ConfigMap is understood where a policy is: its one policy is taken."""

from textwrap import indent

import pytest
import yaml

from tests.unit.policy.stand_ins import HEAD, load, problems

POLICY = f"{HEAD}maxNoOfPodsToEvictTotal: 7\nprofiles: []\n"


def config_map(**data: str) -> str:
    """As kubectl prints it: each text as a block."""
    blocks = "".join(f"  {key}: |\n{indent(text, '    ')}" for key, text in data.items())
    return f"apiVersion: v1\ndata:\n{blocks}kind: ConfigMap\nmetadata:\n  name: rebalancer\n"


def test_the_one_policy_is_taken():
    """Whatever its key is called, and whatever else the ConfigMap holds."""
    alone = load(config_map(anything=POLICY))
    beside = load(config_map(readme="Hello.\n", policy=POLICY, script="kind: Deployment\n"))

    assert (alone.policy.max_total, beside.policy.max_total) == (7, 7)


def test_it_may_be_json():
    """`-o json`, and YAML with the text in quotes."""
    assert load(yaml.safe_dump(yaml.safe_load(config_map(policy=POLICY)))).policy.max_total == 7


def test_lines_are_those_of_the_config_map():
    """A problem is told by its line in what the user sees."""
    text = config_map(readme="Hello.\n", policy=POLICY + "profile: []\n")
    line = text.splitlines().index("    profile: []") + 1

    assert any(str(each).startswith(f"line {line}, profile: ") for each in load(text).warnings)


def test_lines_of_a_text_in_quotes_are_its_own():
    """There the policy has no lines outside."""
    text = yaml.safe_dump({"kind": "ConfigMap", "data": {"policy": HEAD + "profile: []\n"}})

    assert any(str(each).startswith("line 3, profile: ") for each in load(text).warnings)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            config_map(first=POLICY, second=POLICY),
            "line 2, data: this ConfigMap holds 2 policies (first, second); give one of them",
            id="two policies",
        ),
        pytest.param(
            config_map(first="Hello.\n", second="kind: Deployment\n"),
            "line 2, data: no text in the `data` of this ConfigMap is a policy; its keys are first, second",
            id="none of several",
        ),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\n",
            "line 1: no text in the `data` of this ConfigMap is a policy; it has no text",
            id="empty",
        ),
        pytest.param(config_map(policy="kind: Deployment\n"), "line 1: apiVersion is missing", id="one other text"),
    ],
)
def test_a_config_map_without_one_policy_is_an_error(text, problem):
    """It says what is there."""
    assert problems(text)[0].startswith(problem)


def test_a_config_map_inside_a_config_map_is_no_policy():
    """One wrapping is taken off, no more."""
    assert any("its kind should be DeschedulerPolicy" in each for each in problems(config_map(a=config_map(b=POLICY))))
