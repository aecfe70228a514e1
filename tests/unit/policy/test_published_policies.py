"""Policies as tutorials print them load as they stand."""

from textwrap import dedent

import pytest

from tests.unit.policy.stand_ins import LowArgs, load

UTILIZATION = """\
nodeResourceUtilizationThresholds:
  thresholds:
    "cpu": 20
    "memory": 20
    "pods": 20
  targetThresholds:
    "cpu": 50
    "memory": 50
    "pods": 50
"""


def old(*strategies: str) -> str:
    body = "".join("  " + line for each in strategies for line in dedent(each).splitlines(keepends=True))
    return f'apiVersion: "descheduler/v1alpha1"\nkind: "DeschedulerPolicy"\nstrategies:\n{body}'


def indented(text: str, by: int) -> str:
    return "".join(" " * by + line for line in text.splitlines(keepends=True))


LOW = '"LowNodeUtilization":\n  enabled: true\n  params:\n' + indented(UTILIZATION, 4)


@pytest.mark.parametrize(
    ("text", "profiles"),
    [
        (old('"RemoveDuplicates":\n  enabled: false\n'), []),
        (old(LOW), ["LowNodeUtilization"]),
        (old('"RemovePodsViolatingNodeTaints":\n  enabled: true\n'), ["RemovePodsViolatingNodeTaints"]),
        (
            old(
                '"RemovePodsViolatingNodeAffinity":\n  enabled: true\n  params:\n    nodeAffinityType:\n'
                '      - "requiredDuringSchedulingIgnoredDuringExecution"\n'
            ),
            ["RemovePodsViolatingNodeAffinity"],
        ),
        (old('"RemovePodsViolatingInterPodAntiAffinity":\n  enabled: false\n'), []),
        (
            old(
                '"RemoveDuplicates":\n   enabled: true\n',
                '"RemovePodsViolatingInterPodAntiAffinity":\n   enabled: true\n',
                LOW.replace('"cpu":', '"cpu" :'),
            ),
            ["RemoveDuplicates", "RemovePodsViolatingInterPodAntiAffinity", "LowNodeUtilization"],
        ),
    ],
    ids=["duplicates off", "utilization", "taints", "affinity", "anti-affinity off", "config map"],
)
def test_a_published_policy_loads_as_it_stands(text, profiles):
    """Also in strict reading: nothing in them is without effect."""
    policy = load(text, strict=True).policy

    assert [each.name for each in policy.profiles] == [f"strategy-{name}-profile" for name in profiles]


def test_the_thresholds_of_a_published_policy_arrive():
    """20 and 50 per cent of cpu, memory and pods."""
    (profile,) = load(old(LOW)).policy.profiles
    names = ("cpu", "memory", "pods")

    assert profile.args["LowNodeUtilization"] == LowArgs(
        thresholds=dict.fromkeys(names, 20), target_thresholds=dict.fromkeys(names, 50)
    )
    assert profile.balance == ("LowNodeUtilization",)
