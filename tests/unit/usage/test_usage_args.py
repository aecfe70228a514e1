"""What policies may say about usage: `metricsUtilization` and `metricsProviders`, and what is wrong in them."""

from functools import partial

import pytest

from rebalancer.errors import PolicyError
from tests.unit.policy.reading import load as load_policy
from tests.unit.policy.reading import profile
from tests.unit.policy.reading import rows as rows_of

CORES = "cpu: {query: q, unit: cores}"
CPU = f"nodes: {{{CORES}}}"
BASIC = "basicAuth: {username: a, passwordFile: p}"
SHARE = "query: q, unit: ratio, base: allocatable"
TIME = "query: q, unit: ratio, base: time"
rows = partial(rows_of, CPU=CPU, SHARE=SHARE, BASIC=BASIC, CORES=CORES, TIME=TIME)


ALL = (
    "[{source: KubernetesMetrics}, {source: Prometheus, prometheus: {url: 'https://a'}}, "
    "{source: LoadWatcher, loadWatcher: {url: 'https://b'}}]"
)


def load(usage: str, thresholds: str = "cpu: 20", providers: str = ALL, *, live: bool = False):
    """Read a policy whose LowNodeUtilization has this `metricsUtilization`."""
    args = f"thresholds: {{{thresholds}}}, targetThresholds: {{{thresholds}}}, metricsUtilization: {usage}"
    config = f"{{name: LowNodeUtilization, args: {{{args}}}}}"
    text = profile(config, "balance: {enabled: [LowNodeUtilization]}")
    text = text.replace("profiles:", f"metricsProviders: {providers}\nprofiles:")
    return load_policy(text, strict=not live, live=live)


def usage(text: str, thresholds: str = "cpu: 20"):
    return load(text, thresholds).policy.profiles[0].args["LowNodeUtilization"].metrics_utilization


def problem(*given: str) -> str:
    with pytest.raises(PolicyError) as error:
        load(*given)
    (only,) = error.value.problems
    return f"{only.path.rpartition('.')[2]}: {only.message}"


def test_defaults():
    """80 % fresh nodes, fail when usage is missing, the descheduler's rules, no age but the source's own."""
    found = usage("{source: KubernetesMetrics}")

    assert (found.min_fresh_nodes, found.when_missing) == (80, "fail")
    assert (found.selection, found.max_sample_age) == (None, None)
    window = usage(f"{{source: Prometheus, prometheus: {{window: 10m, {CPU}}}}}").prometheus
    assert (window.source_quantile, window.destination_quantile) == (0.5, 0.95)


@pytest.mark.parametrize(
    ("text", "message"),
    rows("""
    {source: Prometeus} | source: 'Prometeus' is not known here; did you mean 'Prometheus'?
    {selection: releif, source: LoadWatcher} | selection: 'releif' is not known here; did you mean 'relief'?
    {source: LoadWatcher, whenMissing: request} | whenMissing: 'request' is not known here; did you mean 'requ
    {source: LoadWatcher, minFreshNodes: 101} | minFreshNodes: 101 is out of range: at most 100
    {source: LoadWatcher, maxSampleAge: 3} | maxSampleAge: 3 is not a duration: write a number with a unit, like 3s
    {source: LoadWatcher, maxSamplAge: 3m} | maxSamplAge: unknown key 'maxSamplAge'; did you mean 'maxSampleAge'
    {} | metricsUtilization: give source: KubernetesMetrics, Prometheus or LoadWatcher
    {source: LoadWatcher, metricsServer: true} | metricsUtilization: give source or the deprecated metricsServer
    {source: LoadWatcher, prometheus: {query: q}} | metricsUtilization: prometheus goes with the source Prometheus
    {source: Prometheus} | metricsUtilization: the source Prometheus needs prometheus.query, or prometheus.nodes
    {source: Prometheus, prometheus: {}} | metricsUtilization: the source Prometheus needs prometheus.query, or
    {source: Prometheus, prometheus: {coming: {}, $CPU}} | metricsUtilization: prometheus.coming goes with selection: re
    {source: LoadWatcher, pools: {label: l}} | metricsUtilization: pools goes with selection: relief
    {source: LoadWatcher, selection: relief, pools: {}} | pools: 'label' is missing
    """),
)
def test_a_wrong_source_is_told(text, message):
    assert problem(text).startswith(message)


@pytest.mark.parametrize(
    ("prometheus", "message"),
    rows("""
    query: q, $CPU | prometheus: give either query (the descheduler's form) or nodes; nodes goes with nodes
    query: q, window: 5m | prometheus: give either query (the descheduler's form) or nodes; window goes with nodes
    window: 59s, $CPU | window: a window is at least 1m
    sourceQuantile: 0.4, $CPU | prometheus: sourceQuantile and destinationQuantile choose from a window
    window: 5m, sourceQuantile: 0.99, $CPU | prometheus: sourceQuantile is above destinationQuantile
    window: 5m, sourceQuantile: 50, $CPU | sourceQuantile: 50 is out of range: at most 1
    nodes: {cpu: {query: q, unit: ratio}} | cpu: the unit ratio needs a base: what is it a share of?
    nodes: {cpu: {query: q, unit: percent}} | cpu: the unit percent needs a base
    nodes: {cpu: {query: q, unit: cores, base: capacity}} | cpu: the unit cores has no base: leave it out
    nodes: {cpu: {query: q, unit: bytes}} | nodes: bytes are a unit of memory and ephemeral-storage, not of cpu
    nodes: {memory: {query: q, unit: cores}} | nodes: cores are a unit of cpu, not of memory
    nodes: {cpu: {query: q, unit: core}} | unit: 'core' is not known here; did you mean 'cores'?
    nodes: {cpu: {unit: cores}} | cpu: 'query' is missing
    nodes: {cpu: {query: q}} | cpu: 'unit' is missing
    nodes: {cpu: {$SHARE, node: {match: ip}}} | match: 'ip' is not known here
    nodes: {cpu: {$SHARE}, pods: {$SHARE}} | nodes: pods needs no query
    $CPU, pods: {memory: {query: q, unit: bytes}} | prometheus: nodes and pods must have queries for the same
    $CPU, pods: {cpu: {query: q, unit: bytes}} | pods: bytes are a unit of memory
    query: q, coming: {} | prometheus: give either query (the descheduler's form) or nodes; coming goes with nodes
    coming: {sameHour: 36h}, $CPU | sameHour: sameHour is a number of whole days
    coming: {sameHour: 90d}, $CPU | sameHour: sameHour is a number of whole days, from 1d to 31d
    coming: {sameHour: 7days}, $CPU | sameHour: '7days' is not a duration
    coming: {quantile: 2}, $CPU | quantile: 2 is out of range: at most 1
    nodes: {$CORES, contention: {$SHARE}} | nodes: contention is a share of the time
    nodes: {cpu: {query: q, unit: ratio, base: time}} | nodes: contention is a share of the time
    nodes: {contention: {$TIME}} | nodes: contention goes with cpu
    nodes: {$CORES, contention: {$TIME}}, pods: {$CORES, contention: {$TIME}} | prometheus: contention needs no query
    """),
)
def test_a_wrong_query_is_told(prometheus, message):
    """Units and bases are declared, never guessed, and have to go together."""
    assert problem(f"{{source: Prometheus, prometheus: {{{prometheus}}}}}").startswith(message)


@pytest.mark.parametrize(
    ("prometheus", "thresholds", "message"),
    rows("""
    prometheus: {query: q} | cpu: 20 | args: with prometheus.query thresholds name MetricResource and nothing else
    prometheus: {query: q} | MetricResource: 20, pods: 20 | args: with prometheus.query thresholds name MetricRes
    prometheus: {$CPU} | cpu: 20, memory: 30 | args: thresholds name memory, without a query in prometheus.nodes
    prometheus: {$CPU} | MetricResource: 20 | args: thresholds name MetricResource, without a query in prometheus.nod
    prometheus: {query: q}, whenMissing: requests | MetricResource: 20 | metricsUtilization: whenMissing: requests need
    """),
)
def test_thresholds_have_to_be_measured(prometheus, thresholds, message):
    """As the descheduler has it for its form, and by our own queries for ours; nobody requests MetricResource."""
    assert problem(f"{{source: Prometheus, {prometheus}}}", thresholds).startswith(message)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(
    ("usage", "thresholds", "providers", "message"),
    rows(
        """
    source: KubernetesMetrics | cpu: 20, nvidia.com/gpu: 20 | $ALL | thresholds name nvidia.com/gpu, which KubernetesM
    source: LoadWatcher | nvidia.com/gpu: 20 | $ALL | thresholds name nvidia.com/gpu, which LoadWatcher does not
    source: KubernetesMetrics | cpu: 20 | [] | KubernetesMetrics is not set up: add `- source: KubernetesMet
    metricsServer: true | cpu: 20 | [] | KubernetesMetrics is not set up
    """,
        ALL=ALL,
    ),
)
def test_what_cannot_be_measured_is_an_error_in_validate_and_before_evictions(
    live, usage, thresholds, providers, message
):
    """In a dry run the strategy fails, as the descheduler's does."""
    with pytest.raises(PolicyError) as error:
        load(f"{{{usage}}}", thresholds, providers, live=live)

    assert [each.message[: len(message)] for each in error.value.problems] == [message]


def test_a_token_that_will_not_be_sent_is_a_warning():
    """Never an error: the descheduler would send it, and its policies load."""
    fields = "[{source: KubernetesMetrics}, {source: Prometheus, prometheus: {url: 'http://a', tokenFile: /t%s}}]"
    (warning,) = load("{source: KubernetesMetrics}", providers=fields % "").warnings

    assert "will not be sent over plain http" in warning.message
    assert load("{source: KubernetesMetrics}", providers=fields % ", allowTokenOverHTTP: true").warnings == ()
