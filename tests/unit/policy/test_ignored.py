"""What the descheduler ignores in silence is said: a warning, and in strict reading an error."""

import pytest

from tests.unit.policy.reading import HEAD, LIFE_TIME, RUN_LIFE_TIME, load, problems, profile, rows

RUNS = profile(LIFE_TIME, RUN_LIFE_TIME)
OUTSIDE = rows("""
Profiles: [] | Profiles: unknown key 'Profiles' has no effect; did you mean 'profiles'?
watching: {} | watching: unknown key 'watching' has no effect; known are apiVersion, kind
watching: | watching: unknown key 'watching' has no effect
metricsCollector: {enable: true} | metricsCollector.enable: unknown key 'enable' has no effect; did
enabled: true | enabled: unknown key 'enabled' has no effect; it belongs under metricsCollector
metricsProviders: [{source: KubernetesMetrics, prometheus: {}}] | metricsProviders[0].prometheus: only the source Prom
""")
AT_A_POINT = rows("""
preEvictionfilter: {enabled: [Nope]} | preEvictionfilter: unknown key 'preEvictionfilter' has no effect; did you mean
balance: {enable: [Nope]} | balance.enable: unknown key 'enable' has no effect; did you mean 'enabled'?
filter: {disabled: [DefaultEvictor]} | filter.disabled: disabled has no effect: what is not listed under enabled does
presort: {enabled: [Nope]} | presort: presort has no effect
sort: {enabled: [Nope]} | sort: sort has no effect
""")


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        *((RUNS + line, f"line 7, {warning}") for line, warning in OUTSIDE),
        *(
            (profile(LIFE_TIME, f"{RUN_LIFE_TIME}, {point}"), f"line 6, profiles[0].plugins.{warning}")
            for point, warning in AT_A_POINT
        ),
        (RUNS + "  pluginConfigs: []", "line 7, profiles[0].pluginConfigs: unknown key 'pluginConfigs' has no effect"),
        (profile(f"{LIFE_TIME}, {LIFE_TIME}", RUN_LIFE_TIME), "line 5, profiles[0].pluginConfig[1]: PodLifeTime is co"),
        (RUNS + "hold: 1m\nhold: 2m", "line 8, hold: this key is given twice"),
        (RUNS + "---\nmore: true", "line 8: only the first document of the file counts"),
    ],
)
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


@pytest.mark.parametrize("more", ["", ", sort: {enabled: []}, presort: ~, filter: {disabled: []}"])
def test_a_policy_without_any_of_these_is_clean(more):
    assert load(profile(LIFE_TIME, RUN_LIFE_TIME + more), strict=True).warnings == ()


def test_a_wrong_case_key_is_ignored_and_not_taken_for_the_right_one():
    assert load(HEAD + "Profiles: [{name: p}]").policy.profiles == ()
