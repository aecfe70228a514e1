"""Sources of real usage are checked as the descheduler checks them, and a misspelt one is an error here."""

import pytest

from tests.unit.policy.stand_ins import HEAD, NO_STRATEGY, load, problems

PROVIDERS = "line 4, metricsProviders[0]"


def prometheus(fields: str) -> str:
    return HEAD + f"metricsProviders:\n- {{source: Prometheus, prometheus: {{{fields}}}}}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            HEAD + "metricsProviders:\n- source: Prometeus",
            f"{PROVIDERS}.source: 'Prometeus' is not a source of metrics; did",
        ),
        (
            HEAD + "metricsProviders:\n- {}",
            f"{PROVIDERS}: source is missing: KubernetesMetrics, Prometheus or LoadWatcher",
        ),
        (
            HEAD + "metricsProviders:\n- source: Prometheus",
            f"{PROVIDERS}: the source Prometheus needs a block `prometheus`",
        ),
        (prometheus(""), f"{PROVIDERS}.prometheus: url is missing"),
        (prometheus("url: ''"), f"{PROVIDERS}.prometheus.url: url is missing"),
        (
            prometheus("url: 'http://example.com:-80'"),
            f"{PROVIDERS}.prometheus.url: 'http://example.com:-80' is not a URL",
        ),
        (
            prometheus("url: 'http://example.com:99999'"),
            f"{PROVIDERS}.prometheus.url: 'http://example.com:99999' is no",
        ),
        (prometheus("url: 'http://[::1'"), f"{PROVIDERS}.prometheus.url: 'http://[::1' is not a URL"),
        (
            prometheus("url: 'http://a', authToken: {}"),
            f"{PROVIDERS}.prometheus.authToken: secretReference is missing: namespace and name of a Secret",
        ),
        (
            prometheus("url: 'http://a', authToken: {secretReference: {}}"),
            f"{PROVIDERS}.prometheus.authToken.secretReference: a Secret needs both namespace and name",
        ),
        (
            prometheus("url: 'http://a', authToken: {secretReference: {name: x}}"),
            f"{PROVIDERS}.prometheus.authToken.secretReference: a Secret needs both",
        ),
        (
            prometheus("url: 'http://a', authToken: {secretReference: {namespace: x}}"),
            f"{PROVIDERS}.prometheus.authToken.secretReference: a Secret needs both",
        ),
        (
            HEAD + "metricsProviders: [{source: KubernetesMetrics},\n  {source: KubernetesMetrics}]",
            "line 4, metricsProviders[1].source: KubernetesMetrics is given twice",
        ),
        (
            HEAD + "metricsCollector: {enabled: true}\nmetricsProviders: [{source: KubernetesMetrics}]",
            "line 4, metricsProviders[0].source: KubernetesMetrics and metricsCollector are the same source",
        ),
    ],
)
def test_a_source_that_cannot_work_is_an_error(text, problem):
    """The message has the place and what is missing."""
    (found,) = problems(text)

    assert found.startswith(problem)


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
    """Wherever in the policy the URL stands."""
    assert "s3cret" not in str(problems(text))


def test_the_deprecated_switch_goes_with_prometheus():
    """Only KubernetesMetrics is the same source."""
    text = HEAD + "metricsCollector: {enabled: true}\n" + prometheus("url: 'http://a'").removeprefix(HEAD)
    loaded = load(text)

    assert loaded.policy.metrics_collector.enabled
    assert loaded.warnings == (NO_STRATEGY,)


@pytest.mark.parametrize("url", ["foo", "//host", "ftp://host", "http://", "http:/host"])
def test_an_address_that_can_never_answer_is_a_warning(url):
    """The descheduler accepts it and fails in each cycle; strict reading refuses it."""
    text = prometheus(f"url: '{url}'")
    warning = f"line 4, metricsProviders[0].prometheus.url: '{url}' can never answer"

    assert [str(each)[: len(warning)] for each in load(text).warnings if each.line == 4] == [warning]
    assert [each[: len(warning)] for each in problems(text, strict=True)] == [warning]
