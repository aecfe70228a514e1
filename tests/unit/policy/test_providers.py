"""Sources of real usage are checked as the descheduler checks them, and a misspelt one is an error here."""

import pytest

from tests.unit.policy.reading import HEAD, NO_STRATEGY, load, problems, rows


def prometheus(fields: str) -> str:
    return HEAD + f"metricsProviders:\n- {{source: Prometheus, prometheus: {{{fields}}}}}\n"


@pytest.mark.parametrize(
    ("providers", "problem"),
    rows("""
    [{source: Prometeus}] | [0].source: 'Prometeus' is not a source of metrics; did
    [{}] | [0]: source is missing: KubernetesMetrics, Prometheus or LoadWatcher
    [{source: Prometheus}] | [0]: the source Prometheus needs a block `prometheus`
    [{source: KubernetesMetrics}, {source: KubernetesMetrics}] | [1].source: KubernetesMetrics is given twice
    """),
)
def test_a_source_that_cannot_work_is_an_error(providers, problem):
    (found,) = problems(f"{HEAD}metricsProviders: {providers}")

    assert found.startswith(f"line 3, metricsProviders{problem}")


@pytest.mark.parametrize(
    ("fields", "problem"),
    rows("""
    timeout: 5s | : url is missing
    url: '' | .url: url is missing
    url: 'http://example.com:-80' | .url: 'http://example.com:-80' is not a URL
    url: 'http://example.com:99999' | .url: 'http://example.com:99999' is no
    url: 'http://[::1' | .url: 'http://[::1' is not a URL
    url: 'http://a', authToken: {} | .authToken: secretReference is missing: namespace and name of a Secret
    url: 'http://a', authToken: {secretReference: {name: x}} | .authToken.secretReference: a Secret needs both
    url: 'http://a', authToken: {secretReference: {namespace: x}} | .authToken.secretReference: a Secret needs both
    """),
)
def test_a_prometheus_that_cannot_be_asked_is_an_error(fields, problem):
    (found,) = problems(prometheus(fields))

    assert found.startswith(f"line 4, metricsProviders[0].prometheus{problem}")


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
