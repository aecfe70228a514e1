"""What the descheduler finds out late, or ignores in silence, is said as a policy is read; and sources of usage."""

from datetime import timedelta

import pytest

from rebalancer.policy.moving import Steering
from tests.unit.policy.reading import HEAD, LIFE_TIME, NO_STRATEGY, RUN_LIFE_TIME, decode, load, problems, profile, rows


@pytest.mark.parametrize(
    ("point", "name", "problem"),
    rows("""
    deschedule | PodLifetime | no plugin is called 'PodLifetime'; did you mean 'PodLifeTime'?
    balance | Nope | no plugin is called 'Nope'; known are HighNodeUtilization,
    deschedule | ~ | no plugin is called ''
    balance | PodLifeTime | PodLifeTime cannot be enabled under balance: it belongs under deschedule
    deschedule | DefaultEvictor | DefaultEvictor cannot be enabled under deschedule: it belongs under filter or preE
    filter | PodLifeTime | PodLifeTime cannot be enabled under filter
    preevictionfilter | Nope | no plugin is called 'Nope'; known are DefaultEvictor
    preEvictionFilter | Nope | no plugin is called 'Nope'
    balance | RemoveDuplicates | RemoveDuplicates has no entry in this profile's pluginConfig; add `- name: RemoveDu
    """),
)
def test_what_cannot_be_built_cannot_be_loaded(point, name, problem):
    """Unknown, in the wrong place, or without arguments; the descheduler's decoding step accepts all of these."""
    text = profile(LIFE_TIME, f"{point}: {{enabled: [{name}]}}")
    (found,) = problems(text)

    assert found.startswith(f"line 6, profiles[0].plugins.{point}.enabled[0]: {problem}")
    assert decode(text).warnings == ()


def test_arguments_in_another_profile_do_not_count():
    text = profile(LIFE_TIME, RUN_LIFE_TIME) + "- name: other\n  plugins: {deschedule: {enabled: [PodLifeTime]}}\n"
    (problem,) = problems(text)

    assert problem.startswith("line 8, profiles[1].plugins.deschedule.enabled[0]: PodLifeTime has no entry")


def test_the_evictor_needs_no_arguments():
    """DefaultEvictor is in every profile anyway, under both spellings of its second point."""
    evictor = "{enabled: [DefaultEvictor]}"
    points = f"{RUN_LIFE_TIME}, filter: {evictor}, preEvictionFilter: {evictor}, preevictionfilter: {evictor}"

    assert load(profile(LIFE_TIME, points)).warnings == ()


def test_a_strategy_that_is_configured_but_not_enabled_is_told():
    """Its arguments change nothing; strict reading lets it pass, since the file is no worse for it."""
    text = profile(LIFE_TIME, "deschedule: {enabled: []}")

    said = [str(each) for each in load(text, strict=True).warnings]

    assert (
        "line 5, profiles[0].pluginConfig[0]: PodLifeTime is configured but not enabled, so it does not run; "
        "list it under plugins.deschedule.enabled if it should"
    ) in said


RUNS = profile(LIFE_TIME, RUN_LIFE_TIME)
OUTSIDE = rows("""
Profiles: [] | Profiles: unknown key 'Profiles' has no effect; did you mean 'profiles'?
watching: {} | watching: unknown key 'watching' has no effect; known are apiVersion, kind
watching: | watching: unknown key 'watching' has no effect
strategies: {} | strategies: unknown key 'strategies' has no effect; it is a key of descheduler/v1alpha1
tracing: {} | tracing: unknown key 'tracing' has no effect; traces are asked for by flags, like --otel
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


def prometheus(fields: str) -> str:
    return HEAD + f"metricsProviders:\n- {{source: Prometheus, prometheus: {{{fields}}}}}\n"


@pytest.mark.parametrize(
    ("providers", "problem"),
    rows(
        """
    {source: Prometeus} | [0].source: 'Prometeus' is not a source of metrics; did you mean 'Prometheus'?
    {} | [0]: source is missing: KubernetesMetrics, Prometheus or LoadWatcher
    {source: KubernetesMetrics}, {source: KubernetesMetrics} | [1].source: KubernetesMetrics is given twice
    {source: KubernetesMetrics, loadWatcher: {url: 'http://a'}} | [0].loadWatcher: only the source LoadWatcher makes use
    {source: LoadWatcher} | [0]: the source LoadWatcher needs a block `loadWatcher` with its url
    {source: LoadWatcher, loadWatcher: {}} | [0].loadWatcher: url is missing: where load-watcher
    {source: LoadWatcher, loadWatcher: {url: nowhere}} | [0].loadWatcher.url: 'nowhere' can never
    {source: Prometheus} | [0]: the source Prometheus needs a block `prometheus`
    $Of timeout: 5s}} | [0].prometheus: url is missing
    $Of url: ''}} | [0].prometheus.url: url is missing
    $Of url: 'http://example.com:-80'}} | [0].prometheus.url: 'http://example.com:-80' is not a URL
    $Of url: 'http://[::1'}} | [0].prometheus.url: 'http://[::1' is not a URL
    $Of $Url, authToken: {}}} | [0].prometheus.authToken: 'secretReference' is missing
    $Of $Url, authToken: {secretReference: {namespace: x, name: ''}}}} | [0].prometheus.authToken.secretReference.name:
    $Of $Url, tokenFile: t, basicAuth: {username: a, passwordFile: p}}} | [0].prometheus: there are tokenFile and ba
    $Of $Url, basicAuth: {username: a}}} | [0].prometheus.basicAuth: 'passwordFile' is mis
    $Of $Url, cafile: /c}} | [0].prometheus.cafile: unknown key 'cafile' has no e
    """,
        Of="{source: Prometheus, prometheus: {",
        Url="url: 'https://a'",
    ),
)
def test_a_source_that_cannot_work_is_an_error(providers, problem):
    assert problems(f"{HEAD}metricsProviders: [{providers}]", strict=True)[0].startswith(
        f"line 3, metricsProviders{problem}"
    )


@pytest.mark.parametrize(
    "text",
    [
        prometheus("url: 'https://me:a/s3cret@host'"),
        prometheus("'https://me:s3cret@host': x, url: 'https://me:s3cret@host'"),
        HEAD + "metricsProviders:\n- source: https://me:s3cret@host",
        HEAD + "metricsProviders:\n- {source: Prometheus, prometheus: 'https://me:a s3cret@host'}",
    ],
)
def test_no_message_shows_a_password(text):
    assert "s3cret" not in str(problems(text))


def test_the_deprecated_switch_goes_with_prometheus():
    collector = HEAD + "metricsCollector: {enabled: true}\n"
    loaded = load(collector + prometheus("url: 'http://a'").removeprefix(HEAD))

    assert loaded.policy.metrics_collector.enabled
    assert loaded.warnings == (NO_STRATEGY,)
    (problem,) = problems(collector + "metricsProviders: [{source: KubernetesMetrics}]")
    assert problem.startswith("line 4, metricsProviders[0].source: KubernetesMetrics and metricsCollector are the same")


@pytest.mark.parametrize("url", ["foo", "//host", "ftp://host", "http://", "http:/host"])
def test_an_address_that_can_never_answer_is_a_warning(url):
    """The descheduler accepts it and fails in each cycle; strict reading refuses it."""
    text = prometheus(f"url: '{url}'")
    warning = f"line 4, metricsProviders[0].prometheus.url: '{url}' can never answer"

    assert [str(each)[: len(warning)] for each in load(text).warnings if each.line == 4] == [warning]
    assert [each[: len(warning)] for each in problems(text, strict=True)] == [warning]


@pytest.mark.parametrize(
    ("text", "steering"),
    [
        ("", None),
        ("steering: {}", Steering(key="kube-rebalancer/avoid", settle=timedelta(seconds=60), min_gain=1.5)),
        (
            "steering: {key: example.com/later, settle: 90s, minGain: 0.5}",
            Steering(key="example.com/later", settle=timedelta(seconds=90), min_gain=0.5),
        ),
    ],
)
def test_nothing_is_steered_unless_the_policy_says_so(text, steering):
    assert load(HEAD + text).policy.steering == steering


@pytest.mark.parametrize(
    ("fields", "problem"),
    rows(f"""
    key: '' | steering.key: '' cannot be the key of a taint
    key: No_DNS/avoid | steering.key: 'No_DNS/avoid' cannot be the key of a taint: 'No_DNS', before the slash
    key: {"a" * 59} | at most 58 letters
    settle: 0s | steering.settle: settle has to be between 1s and 1h
    settle: 60 | steering.settle: 60 is not a duration: write a number with a unit, like 60s or 60m
    minGain: -1 | steering.minGain: -1
    minGain: '2' | steering.minGain: a number is expected, not the text '2'; write 2 without quotes
    """),
)
def test_what_cannot_work_is_an_error(fields, problem):
    assert problem in problems(HEAD + f"steering: {{{fields}}}")[0]
