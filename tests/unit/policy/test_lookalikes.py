"""Files that are often taken for a policy, and values in a spelling that people try first."""

import pytest

from rebalancer.policy.findings import did_you_mean
from tests.unit.policy.reading import HEAD, LIFE_TIME, OLD_HEAD, RUN_LIFE_TIME, load, problems, profile, rows


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("apiVersion: {{ .Values.deschedulerPolicyAPIVersion }}\nkind: DeschedulerPolicy\n", "line 1"),
        (HEAD + "{{- with .Values.policy }}\nprofiles: []\n{{- end }}\n", "line 3"),
        (HEAD + 'profiles: {{ include "policy.profiles" . }}\n', "line 3"),
    ],
)
def test_a_helm_template_is_recognised(text, place):
    """One error that says what to do, in place of a YAML parser's."""
    (found,) = problems(text)

    assert found.startswith(f"{place}: {{{{")
    assert "is a Helm template: render it first" in found


def test_braces_in_a_comment_or_a_query_are_no_template():
    """PromQL has braces of its own, and a comment may say anything."""
    query = "sum by (instance) (rate(x{job='node'}[5m]))"
    text = profile(LIFE_TIME, RUN_LIFE_TIME) + f'# {{{{ .Values.x }}}} and "{query}"\n'

    assert load(text).warnings == ()


@pytest.mark.parametrize("key", ["deschedulerPolicy", "policy"])
@pytest.mark.parametrize("first", ["kind: CronJob", "kind: Deployment", "replicas: 1"])
def test_a_values_file_is_recognised(key, first):
    """It holds a policy without apiVersion under a key of the chart; the descheduler's chart has a key `kind`."""
    (found,) = problems(f"{first}\n{key}:\n  profiles: []\n")

    assert found == (
        f"line 2, {key}: this looks like a values file of a Helm chart: the policy is what stands under {key}; put "
        "that into a file of its own, with `apiVersion: descheduler/v1alpha2` and `kind: DeschedulerPolicy`"
    )


@pytest.mark.parametrize(
    ("text", "line", "key", "version", "other"),
    [
        (profile(LIFE_TIME, RUN_LIFE_TIME) + "strategies: {RemoveDuplicates: {}}\n", 7, "strategies", 2, 1),
        (OLD_HEAD + "strategies: {RemoveDuplicates: {}}\nprofiles: [{name: a}]\n", 4, "profiles", 1, 2),
    ],
)
def test_the_key_of_another_version_tells_which_one_the_file_looks_like(text, line, key, version, other):
    said = [str(each) for each in load(text).warnings]
    warning = (
        f"line {line}, {key}: {key} has no effect under descheduler/v1alpha{version}: the file looks like "
        f"descheduler/v1alpha{other}; write `apiVersion: descheduler/v1alpha{other}` if it is"
    )

    assert said.count(warning) == 1
    assert not any("unknown key" in each for each in said)


def test_a_strategy_that_is_configured_but_not_enabled_is_told():
    """Its arguments change nothing; strict reading lets it pass, since the file is no worse for it."""
    text = profile(LIFE_TIME, "deschedule: {enabled: []}")

    said = [str(each) for each in load(text, strict=True).warnings]

    assert (
        "line 5, profiles[0].pluginConfig[0]: PodLifeTime is configured but not enabled, so it does not run; "
        "list it under plugins.deschedule.enabled if it should"
    ) in said


@pytest.mark.parametrize(
    ("value", "cure"),
    rows("""
    "20 %" | not the text '20 %'; write 20, a percentage has no sign
    "12.5 %" | not the text '12.5 %'; write 12.5, a percentage has no sign
    "7" | not the text '7'; write 7 without quotes
    7d | not the text '7d'; write 604800 where seconds are meant
    90m | not the text '90m'; write 5400 where seconds are meant
    many | not the text 'many'
    "\uff12\uff10%" | not the text '\uff12\uff10%'
    """),
)
def test_a_number_in_words_is_answered_with_the_spelling_wanted(value, cure):
    (found,) = problems(HEAD + f"maxNoOfPodsToEvictTotal: {value}\nprofiles: []\n")

    assert found == f"line 3, maxNoOfPodsToEvictTotal: a number is expected, {cure}"


STATES = ("Running", "Pending", "CrashLoopBackOff")


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("Runing", STATES, "; did you mean 'Running'?"),
        ("RUNNING", STATES, "; did you mean 'Running'?"),
        ("crashloopbackoff", STATES, "; did you mean 'CrashLoopBackOff'?"),
        ("CrashLoopBackoffs", STATES, "; did you mean 'CrashLoopBackOff'?"),
        ("x", STATES, "; known are Running, Pending, CrashLoopBackOff"),
        ("x", [f"word{number}" for number in range(50)], ""),
        ("x", (), ""),
    ],
)
def test_the_nearest_word_is_suggested_whatever_its_case(word, known, said):
    assert did_you_mean(word, known) == said
