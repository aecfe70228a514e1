"""Metrics where others read them: a real Prometheus and its rules, a real Pushgateway, a textfile."""

import base64
from dataclasses import replace
from pathlib import Path

from rebalancer.run.options import ExportOptions
from tests import pushgateway
from tests.e2e.waiting import wait_for
from tests.fake_api_server import CERTIFICATE
from tests.fake_http import Reply
from tests.fake_servers import FakeServer
from tests.functional.objects import ONE
from tests.functional.probing import samples
from tests.functional.test_loop import Loop
from tests.real_prometheus import RealPrometheus
from tests.real_prometheus import needed as prometheus_needed

RULES = Path(__file__).parents[2] / "chart" / "rules" / "alerts.yaml"


#: Queries of dashboards made for the descheduler.
DASHBOARD = (
    "sum by (strategy) (descheduler_pods_evicted_total)",
    'sum(descheduler_pods_evicted{result="success"})',
    "histogram_quantile(0.9, sum by (le) (descheduler_loop_duration_seconds_bucket))",
    "histogram_quantile(0.9, sum by (le) (descheduler_descheduler_loop_duration_seconds_bucket))",
    "histogram_quantile(0.9, sum by (le, strategy) (descheduler_strategy_duration_seconds_bucket))",
    "histogram_quantile(0.9, sum by (le, profile) (descheduler_descheduler_strategy_duration_seconds_bucket))",
    "descheduler_build_info",
)


def evaluated(prometheus):
    """The groups of rules, once all of them were evaluated."""
    groups = prometheus.ask("rules")["groups"]
    return [each for each in groups if all(rule["health"] != "unknown" for rule in each["rules"])]


@prometheus_needed
def test_a_prometheus_scrapes_the_loop(three, rebalancer, tmp_path):
    """The queries of the descheduler's dashboards answer, and the shipped rules are evaluated without an error."""
    loop = Loop(rebalancer, three, ONE)
    evicted = ("descheduler_pods_evicted_total", "descheduler_pods_evicted")
    queries = [*DASHBOARD, *(f'sum by (strategy) ({name}{{result="success"}}) == 3' for name in evicted)]

    served = f"https://127.0.0.1:{loop.port}/metrics"
    with RealPrometheus(tmp_path, instances={"loop": served}, rules=(RULES,)) as prometheus:
        for query in queries:
            assert wait_for(lambda query=query: prometheus.query(query), query)  # type: ignore[misc]  # bound early
        (group,) = wait_for(lambda: evaluated(prometheus), "an evaluation")
    assert [rule["lastError"] for rule in group["rules"] if rule.get("lastError")] == []
    assert group["name"] == "rebalancer"
    assert loop.end().exit_code == 0


@pushgateway.needed
def test_a_run_pushes_its_metrics(three, rebalancer, tmp_path):
    """Grouped by job and cluster, so that two clusters do not overwrite each other."""
    with pushgateway.running(tmp_path) as url:
        outcome = rebalancer.run(three, ONE, "--pushgateway", url)
        pushed = samples(pushgateway.pushed(url))

    assert (outcome.exit_code, outcome.stderr) == (0, "")
    (series,) = [each for each in pushed if each.startswith("rebalancer_cycles_total{")]
    assert 'cluster="fake"' in series
    assert 'job="rebalancer"' in series
    assert pushed[series] == 1


def test_the_report_is_shown_before_metrics_are_pushed(three, rebalancer):
    """A gateway may hang, and the pod may be killed meanwhile: the report must not be lost with it."""
    heard_before = []
    with FakeServer() as gateway:

        def deliver(outcome):
            heard_before.append((list(gateway.requests), len(outcome.report["evictions"])))
            return outcome.exit_code

        rebalancer.play(three, ONE, deliver=deliver, export=ExportOptions(pushgateway=gateway.url))
    assert heard_before == [([], 1)]
    assert [(each.method, each.path[:24]) for each in gateway.requests] == [("PUT", "/metrics/job/rebalancer/")]


def test_a_password_goes_to_a_pushgateway_over_https(three, rebalancer):
    """As HTTP's basic authentication, and into no log.  One that takes nothing fails no run."""
    trusting = replace(rebalancer, environment={"SSL_CERT_FILE": str(CERTIFICATE)})
    with FakeServer(tls=True) as gateway:
        gateway.answers = lambda _: Reply(400, "no")
        outcome = trusting.run(three, ONE, "--pushgateway", gateway.url.replace("://", "://me:secret@"))

    assert (outcome.exit_code, outcome.evicted()) == (0, ["default/a"])
    assert gateway.requests[0].headers["authorization"] == f"Basic {base64.b64encode(b'me:secret').decode()}"
    assert f"cannot be pushed to {gateway.url}: " in outcome.stderr
    assert "secret" not in outcome.stderr


def test_a_textfile_that_cannot_be_written_fails_nothing(three, rebalancer):
    outcome = rebalancer.run(three, ONE, "--metrics-textfile", "/absent/rebalancer.prom")

    assert outcome.exit_code == 0
    assert "the metrics cannot be written to /absent/rebalancer.prom: No such file or directory" in outcome.stderr


def test_requests_without_an_answer_are_counted_as_such(three, rebalancer, tmp_path):
    """Under a code that no server gives: how often the API server was not there."""
    file = tmp_path / "rebalancer.prom"
    three.reset("GET", "/api/v1/pods", times=2)

    outcome = rebalancer.run(three, ONE, "--metrics-textfile", file)

    assert outcome.exit_code == 0
    found = samples(file.read_text())
    assert found['rebalancer_api_requests_total{code="none",verb="list"}'] == 2
    assert not [series for series in found if 'code="0"' in series]
