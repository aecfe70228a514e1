"""What the descheduler ignores in silence is said: a warning, and in strict reading an error."""

import pytest

from rebalancer.errors import PolicyError
from tests.unit.policy.stand_ins import HEAD, LIFE_TIME, RUN_LIFE_TIME, load, problems, profile

RUNS = profile(LIFE_TIME, RUN_LIFE_TIME)

IGNORED = [
    (RUNS + "Profiles: []", "line 7, Profiles: unknown key 'Profiles' has no effect; did you mean 'profiles'?"),
    (RUNS + "watching: {}", "line 7, watching: unknown key 'watching' has no effect; known are apiVersion, kind"),
    (RUNS + "watching:", "line 7, watching: unknown key 'watching' has no effect"),
    (
        RUNS + "metricsCollector: {enable: true}",
        "line 7, metricsCollector.enable: unknown key 'enable' has no effect; did",
    ),
    (RUNS + "enabled: true", "line 7, enabled: unknown key 'enabled' has no effect; it belongs under metricsCollector"),
    (
        RUNS + "  pluginConfigs: []",
        "line 7, profiles[0].pluginConfigs: unknown key 'pluginConfigs' has no effect; did you mean 'pluginConfig'?",
    ),
    (
        profile(LIFE_TIME, RUN_LIFE_TIME + ", preEvictionfilter: {enabled: [Nope]}"),
        "line 6, profiles[0].plugins.preEvictionfilter: unknown key 'preEvictionfilter' has no effect; did you mean",
    ),
    (
        profile(LIFE_TIME, RUN_LIFE_TIME + ", balance: {enable: [Nope]}"),
        "line 6, profiles[0].plugins.balance.enable: unknown key 'enable' has no effect; did you mean 'enabled'?",
    ),
    (
        profile(LIFE_TIME, RUN_LIFE_TIME + ", filter: {disabled: [DefaultEvictor]}"),
        "line 6, profiles[0].plugins.filter.disabled: disabled has no effect: what is not listed under enabled does",
    ),
    (
        profile(LIFE_TIME, RUN_LIFE_TIME + ", presort: {enabled: [Nope]}"),
        "line 6, profiles[0].plugins.presort: presort has no effect",
    ),
    (
        profile(LIFE_TIME, RUN_LIFE_TIME + ", sort: {enabled: [Nope]}"),
        "line 6, profiles[0].plugins.sort: sort has no effect",
    ),
    (
        profile(f"{LIFE_TIME}, {LIFE_TIME}", RUN_LIFE_TIME),
        "line 5, profiles[0].pluginConfig[1]: PodLifeTime is configured twice",
    ),
    (
        RUNS + "metricsProviders: [{source: KubernetesMetrics, prometheus: {url: 'http://a'}}]",
        "line 7, metricsProviders[0].prometheus: only the source Prometheus makes use of this",
    ),
    (
        RUNS + "maxNoOfPodsToEvictTotal: 1\nmaxNoOfPodsToEvictTotal: 2",
        "line 8, maxNoOfPodsToEvictTotal: this key is given twice",
    ),
    (RUNS + "---\nmore: true", "line 8: only the first document of the file counts"),
]


@pytest.mark.parametrize(("text", "warning"), IGNORED)
def test_what_has_no_effect_is_a_warning_and_strictly_an_error(text, warning):
    """The policy is used, as the descheduler would use it, and its author is told; strict reading refuses it.

    Before evictions only a key that nobody knows is an error: it may be a limit, a protection or a selector.
    """
    loaded = load(text)

    assert loaded.policy.profiles[0].deschedule == ("PodLifeTime",)
    assert len(loaded.warnings) == len(problems(text, strict=True)) == 1
    assert len(problems(text, live=True)) == ("unknown key" in warning)
    for each in (*map(str, loaded.warnings), *problems(text, strict=True), *problems(text, live=True)):
        assert each.startswith(warning)


def test_a_policy_without_any_of_these_is_clean():
    """Neither reading has anything to say of it."""
    assert load(RUNS).warnings == ()
    assert load(RUNS, strict=True).warnings == ()


def test_empty_lists_that_would_be_ignored_are_not_worth_a_word():
    """Nothing is lost with them."""
    text = profile(LIFE_TIME, RUN_LIFE_TIME + ", sort: {enabled: []}, presort: ~, filter: {disabled: []}")

    assert load(text).warnings == ()


def test_a_wrong_case_key_is_ignored_and_not_taken_for_the_right_one():
    """`Profiles` adds no profile."""
    loaded = load(HEAD + "Profiles: [{name: p}]")

    assert loaded.policy.profiles == ()


def test_an_unknown_key_is_named_beside_the_error_that_it_causes():
    """A misspelt `pluginConfig` explains why an enabled strategy has no entry."""
    text = HEAD + f"profiles:\n- pluginConfigs: [{LIFE_TIME}]\n  plugins: {{{RUN_LIFE_TIME}}}\n"

    with pytest.raises(PolicyError) as caught:
        load(text)

    assert [problem.line for problem in caught.value.problems] == [4, 5]
    assert "did you mean 'pluginConfig'" in caught.value.problems[0].message
    assert "no entry in this profile's pluginConfig" in caught.value.problems[1].message
