"""Values that cannot be meant are refused before anything is installed, in words that name what is wrong."""

import pytest

from tests.chart.helm import needed, refusal

pytestmark = needed

SCHEMA = "values don't meet the specifications of the schema"
EVICTOR = "deschedulerPolicy: {{profiles: [{{pluginConfig: [{{name: DefaultEvictor, args: {{{}}}}}]}}]}}"
OLD = "deschedulerPolicyAPIVersion: descheduler/v1alpha1"
CPU = "rules: {cpu: {query: load, above: 80, below: 70}}"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("shedule: '* * * * *'", (SCHEMA, "shedule")),
        ("leaderElection: {leaseDurations: 15s}", (SCHEMA, "leaseDurations")),
        ("kind: cronjob", (SCHEMA, "kind")),
        ("replicas: three", (SCHEMA, "replicas")),
        ("deschedulingInterval: 5", (SCHEMA, "deschedulingInterval")),
        ("schedule: every day", (SCHEMA, "schedule")),
        # A limit that nobody reads is no limit, and a protection that nobody knows protects nothing.
        ("deschedulerPolicy: {maxNoOfPodsToEvictTotl: 5, profiles: [{name: p}]}", (SCHEMA, "not allowed")),
        (EVICTOR.format("labelSelector: {matchLabel: {}}"), (SCHEMA, "not allowed")),
        (EVICTOR.format("podProtections: {extraEnabled: [PVCs]}"), (SCHEMA, "podProtections/extraEnabled/0")),
        (f"{OLD}\ndeschedulerPolicy: {{strategies: {{PodLifeTime: {{param: {{}}}}}}}}", (SCHEMA, "not allowed")),
        (
            "{policy: {configMapName: ours}, deschedulerPolicy: {profiles: [{}]}}",
            ("policy.configMapName and policy.text or deschedulerPolicy are two policies",),
        ),
        ("{policy: {text: 'profiles: []'}, deschedulerPolicy: {profiles: [{}]}}", ("give one of them",)),
        ("deschedulerPolicy: {maxNoOfPodsToEvictTotal: 3}", ("deschedulerPolicy has no profiles",)),
        ("policy: {preset: save}", ('there is no preset "save"; there are safe, safe-',)),
        ("policy: {text: 'a: [b'}", ("the policy is not valid YAML",)),
        (
            "schedulerConfig: {text: a, configMapName: b}",
            ("schedulerConfig.text and schedulerConfig.configMapName are two",),
        ),
        (
            "schedulerConfig: {configMapName: b, key: ''}",
            ("schedulerConfig.key is needed with schedulerConfig.configMapName",),
        ),
        ("marking: {enabled: true, rules: {}}", ("marking.enabled needs marking.rules",)),
        (
            f"marking: {{enabled: true, {CPU}, label: '', taint: ''}}",
            ("marking.enabled needs marking.label, marking.taint, or both",),
        ),
        # Keys would end up in expressions.
        (f"marking: {{enabled: true, {CPU}, label: no key}}", (SCHEMA, "label")),
        (f'marking: {{enabled: true, {CPU}, taint: "a\'b"}}', (SCHEMA, "taint")),
        *(
            (f'steering: {{enabled: true, key: "{key}"}}', (SCHEMA, "steering"))
            for key in ("no key", "a'b", f"x/{'y' * 59}", "X/y")
        ),
        ("{kind: Deployment, serviceMonitor: {enabled: true}}", ("service.enabled",)),
        ("{kind: Deployment, replicas: 2}", ("needs leaderElection.enabled",)),
        ("{kind: Deployment, replicas: 2, leaderElection: null}", ("leaderElection.enabled",)),
    ],
)
def test_what_cannot_be_meant_is_refused(values, words):
    said = refusal(values)

    assert [each for each in words if each not in said] == []
