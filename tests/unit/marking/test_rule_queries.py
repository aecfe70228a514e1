"""What the queries of marking rules give, by a Prometheus with a past."""

from rebalancer.marking.evaluation import PressureReading
from rebalancer.marking.rules import MarkingRules
from rebalancer.policy.load import load_policy
from rebalancer.policy.usage import MetricsProvider
from rebalancer.run.marking import answers
from rebalancer.usage.providers import Providers
from tests.fake_servers import FakePrometheus, sample
from tests.make import NOW, node
from tests.real_prometheus import RealPrometheus, Series, needed

NODES = tuple(node(name) for name in ("n1", "n2", "n3"))
POLICY = load_policy(
    "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy", {}, source="policy.yaml", runs=False
).policy


def ask_all(url, nodes=NODES, **rules):
    provider = MetricsProvider.model_validate({"source": "Prometheus", "prometheus": {"url": url}})
    sources = Providers(POLICY.model_copy(update={"metrics_providers": (provider,)}), None, None, service_account=None)
    given = {name: {"above": 80, "below": 70, **rule} for name, rule in rules.items()}
    return answers(MarkingRules.model_validate({"rules": given}), POLICY, sources, nodes, NOW)


def ask(url, nodes=NODES, **rule):
    return ask_all(url, nodes, load={"query": "load", **rule})["load"]


def test_the_value_of_the_moment_counts():
    """Any number, negative ones too; what is not a number is a missing sample, and strangers are a warning."""
    values = [sample("n1:9100", 95), sample("n2", -3), sample("n3", "NaN"), sample("n9", 1)]
    with FakePrometheus(values) as server:
        found = ask(server.url)

    assert found.readings == {"n1": PressureReading.of(95), "n2": PressureReading.of(-3)}
    assert found.missing == {"n3": "the value is nan"}
    assert "1 series are about no node of the cluster" in found.warnings[0]


def test_what_the_server_says_beside_an_answer_is_about_that_query_alone():
    """Also where another rule has asked the same before."""
    with FakePrometheus([sample("n1", 95)]) as server:

        def answer(request):
            server.warnings = ["partial"] if request.query["query"] == "shaky" else []
            return server.answer(request)

        server.answers = answer
        found = ask_all(server.url, one={"query": "shaky"}, two={"query": "sound"}, three={"query": "shaky"})

    said = ("Prometheus says: partial",)
    assert [each.warnings for each in found.values()] == [said, (), said]


def test_nodes_are_found_by_their_address():
    there = (node("n1", addresses={"InternalIP": "10.0.0.7"}),)
    with FakePrometheus([sample("10.0.0.7:9100", 95)]) as server:
        found = ask(server.url, there, node={"label": "instance", "match": "internalIP"})

    assert found.readings == {"n1": PressureReading.of(95)}


def test_two_series_about_one_node_are_an_error():
    with FakePrometheus([sample("n1", 95), sample("n1:9100", 90)]) as server:
        found = ask(server.url)

    assert "sum by" in found.problem
    assert found.source == "Prometheus"


@needed
def test_for_takes_the_lowest_and_the_highest_of_the_time(tmp_path):
    """n1 has been above for five minutes, n2 for three; n3 has values for less than half of the time."""
    past = [
        Series("load", {"instance": "n1"}, lambda _: 90.0),
        Series("load", {"instance": "n2"}, lambda age: 90.0 if age < 180 else 60.0),
        Series("load", {"instance": "n3"}, lambda age: 90.0 if age < 90 else None),
    ]
    with RealPrometheus(tmp_path, past) as server:
        found = ask(server.url, **{"for": "5m"})

    assert found.readings == {"n1": PressureReading(90, 90, 90), "n2": PressureReading(90, 60, 90)}
    assert found.missing.keys() == {"n3"}
    assert "of 20 values in the time that `for` says" in found.missing["n3"]
