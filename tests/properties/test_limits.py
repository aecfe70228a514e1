"""Limits are never exceeded, whatever a strategy asks for and whatever the API server answers."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.eviction.verdict import Failed, Granted, Unknown
from tests import make
from tests.make import says_no
from tests.properties.crowds import LIMITS, NODES, pods
from tests.unit.engine.stand_ins import AnsweringSink, Greedy, Polite

ANSWERS = st.sampled_from(
    (
        Granted(),
        Granted(),
        says_no("PDB", "no"),
        says_no("Gone", "no"),
        Failed("500"),
        Unknown("?"),
    )
)
LAX = {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage", "SystemCriticalPods", "DaemonSetPods"]}}


@given(
    NODES, pods(), LIMITS, st.lists(st.sampled_from((Greedy(), Greedy(2), Polite())), min_size=1, max_size=3), st.data()
)
def test_limits_are_never_exceeded(nodes, crowd, limits, strategies, data):
    """Over all strategies, counting answers that were lost as evictions."""
    answers = {pod.name: data.draw(ANSWERS, label=pod.name) for pod in crowd}
    sink = AnsweringSink(answers)

    ledger = make.decide(make.cluster(nodes, crowd), *strategies, evictor=LAX, limits=limits, sink=sink)

    lost = [entry.pod for entry in ledger.unknown]
    went = [entry.pod for entry in ledger.evictions] + lost
    by_node = Counter(pod.node for pod in went if pod.node)
    by_namespace = Counter(pod.namespace for pod in went)
    assert limits.total is None or len(went) <= limits.total
    assert limits.per_node is None or all(count <= limits.per_node for count in by_node.values())
    assert limits.per_namespace is None or all(count <= limits.per_namespace for count in by_namespace.values())


@given(NODES, pods(), LIMITS)
def test_a_limit_refuses_only_when_it_is_used_up(nodes, crowd, limits):
    """A refusal by a limit comes after just as many evictions as it allows."""
    ledger = make.decide(make.cluster(nodes, crowd), Greedy(), evictor=LAX, limits=limits)

    went = [entry.pod for entry in ledger.evictions]
    for entry in ledger.refusals:
        match entry.verdict.by:
            case "TotalLimit":
                assert len(went) == limits.total
            case "NodeLimit":
                assert sum(pod.node == entry.pod.node for pod in went) == limits.per_node
            case "NamespaceLimit":
                assert sum(pod.namespace == entry.pod.namespace for pod in went) == limits.per_namespace


@given(NODES, pods(), st.lists(st.sampled_from((Greedy(2), Greedy(3), Polite())), min_size=2, max_size=4))
def test_a_pod_is_evicted_once(nodes, crowd, strategies):
    sink = AnsweringSink()

    ledger = make.decide(make.cluster(nodes, crowd), *strategies, evictor=LAX, sink=sink)

    assert len(sink.asked) == len(set(sink.asked))
    assert sink.asked == make.evicted(ledger)
    assert sum(run.evicted for run in ledger.runs) == len(sink.asked)
