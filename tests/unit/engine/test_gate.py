"""The gate: what the sink's answers lead to, and evictions in flight."""

from datetime import timedelta
from functools import partial
from threading import Barrier, current_thread
from typing import Any

import pytest

from rebalancer.engine.ledger import Ledger
from rebalancer.engine.limits import Limits
from rebalancer.errors import CycleStopped
from rebalancer.eviction.causes import Code, cause
from rebalancer.eviction.steering import Held
from rebalancer.eviction.verdict import GRANTED, Failed, Granted, Unknown, Verdict
from rebalancer.report.words import notice_text
from tests.make import NOW, cluster, decide, evicted, node, pdb, pod, refused, says_no
from tests.unit.engine.stand_ins import AnsweringSink, Greedy, Listed, Scripted, ScriptedBalance

ON = [node("n1"), node("n2")]
LOST = Unknown("no answer")


def after(
    answer: Verdict, *pods: Any, total: int | None = None, times: int = 1, **fields: Any
) -> tuple[Ledger, Any, Any]:
    """Ask for all pods, of which `a` gets this answer."""
    on, sink = cluster(ON, pods or [pod("a"), pod("b")], **fields), AnsweringSink({"a": answer})
    return decide(on, Greedy(times), limits=Limits(total=total), sink=sink), on, sink


@pytest.mark.parametrize(
    ("answer", "stays", "counts"),
    [
        pytest.param(Granted(), False, True, id="granted"),
        pytest.param(says_no("PDB", "no"), True, False, id="refused by the server"),
        pytest.param(says_no("Webhook", "no"), True, False, id="denied by a webhook"),
        pytest.param(says_no("Gone", "not found"), False, False, id="gone"),
        pytest.param(Failed("500"), True, False, id="failed"),
        pytest.param(LOST, False, True, id="without an answer, so it may be gone"),
        pytest.param(Granted(background=True), False, True, id="taken over by another controller"),
    ],
)
def test_what_an_answer_means(answer: Verdict, stays: bool, counts: bool) -> None:
    """Whether the pod is still there, and whether limits and PDBs count it."""
    pods = [pod("a", labels={"app": "web"}), pod("b", labels={"app": "web"})]
    by_limit, on, _ = after(answer, *pods, total=1)
    by_pdb, _, _ = after(answer, *pods, budgets=(pdb("web", 1),))

    assert on.contains(pods[0]) is stays
    assert refused(by_limit).get("b") == ("TotalLimit" if counts else None)
    assert refused(by_pdb).get("b") == ("PDB" if counts else None)


@pytest.mark.parametrize("answer", [Granted(), LOST, says_no("Gone", "not found")])
def test_a_pod_that_may_be_gone_is_asked_for_once(answer: Verdict) -> None:
    ledger, _, sink = after(answer, times=2)

    assert sink.asked == ["a", "b"]
    assert evicted(ledger) == (["a", "b"] if answer.granted else ["b"])


def test_questions_leave_a_trace_only_with_a_reason() -> None:
    """A strategy may look around without asking for a pod."""

    def script(on: Any, evict: Any) -> None:
        first, second, third = on.pods()
        assert not evict.evictable(first)
        assert evict.filter_refusal(second, "because")
        assert evict.pre_eviction_refusal(third, "because") is None

    ledger = decide(cluster(ON, [pod(name, local_storage=True) for name in "abc"]), Scripted(script))

    assert ledger.runs[0].error is None
    assert refused(ledger) == {"b": "PodsWithLocalStorage"}


def test_the_two_filters_are_two_questions() -> None:
    """Protections and replicas here, node fit and namespaces there."""

    def script(on: Any, evict: Any) -> None:
        passes = {
            each.name: (evict.filter_refusal(each) is None, evict.pre_eviction_refusal(each) is None)
            for each in on.pods()
        }
        assert passes == {"homeless": (True, False), "guarded": (False, True), "single": (False, True)}
        assert not any(map(evict.evictable, on.pods()))

    pods = [pod("homeless", cpu="99"), pod("guarded", local_storage=True), pod("single", owners="single")]
    ledger = decide(cluster(ON, pods), Scripted(script), evictor={"nodeFit": True, "minReplicas": 2})

    assert ledger.runs[0].error is None


def test_a_warning_names_its_profile_and_strategy_and_is_given_once() -> None:
    ledger = decide(cluster(ON, []), Scripted(lambda _, evict: [evict.warn("look out") for _ in range(2)]))

    assert [notice_text(each) for each in ledger.warnings] == ["test/Scripted: look out"]


def test_of_thousands_of_warnings_none_is_compared_with_all_others() -> None:
    """A pod may have as many spread constraints, each of which is worth one."""
    compared = []

    class Text(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return str.__eq__(self, other)

    ledger = Ledger()
    for number in range(100):
        ledger.warn(cause(Code.CUSTOM, message=Text(number)))

    assert (len(ledger.warnings), len(compared) < 100) == (100, True)


def moving(name: str, **fields: Any) -> Any:
    """A pod whose eviction another controller has taken over in an earlier cycle."""
    return pod(name, evacuating=True, **fields)


def test_evictions_in_progress_count_as_the_cycle_begins() -> None:
    """Against the limits, PDBs and shares, as if this cycle had made them; a warning names them."""
    others = [pod("a", labels={"app": "web"}), pod("b", node="n2", namespace="other")]
    on = cluster(ON, [moving("m", labels={"app": "web"}), *others], budgets=(pdb("web", 1),))

    ledger = decide(on, Greedy(), limits=Limits(total=2), sink=AnsweringSink())

    assert refused(ledger) == {"m": "InProgress", "a": "PDB"}
    assert evicted(ledger) == ["b"]
    (warning,) = map(notice_text, ledger.warnings)
    assert warning.endswith("count against the limits of this cycle: default/m")

    (warning,) = map(notice_text, after(GRANTED, *(moving(f"m{each}") for each in range(1000)))[0].warnings)
    assert warning.endswith("default/m101 and 995 more")


def test_a_pod_in_progress_leaves_the_cluster_when_it_is_asked_for() -> None:
    """Its node need not lose another one in its place; one that is protected is that first."""
    pods = [moving("m"), pod("a")]
    ledger, on, sink = after(Granted(), *pods)

    assert not on.contains(pods[0])
    assert (sink.asked, refused(ledger)) == (["a"], {"m": "InProgress"})
    assert refused(after(Granted(), moving("m", mirror=True))[0]) == {"m": "MirrorPods"}


def test_a_node_that_was_emptied_is_held_from_then_on() -> None:
    """The strategies that follow see it, and the ledger names it; a run that holds none does nothing."""
    seen = []

    def script(on: Any, evict: Any) -> None:
        seen.append(sorted(on.held))
        evict.emptied(on.nodes[0])

    ledger = decide(
        cluster(ON, []), Scripted(script), Scripted(script), hold=partial(Held, until=NOW + timedelta(minutes=15))
    )

    assert seen == [[], ["n1"]]
    assert ledger.held[0] == Held("n1", NOW + timedelta(minutes=15))
    assert decide(cluster(ON, []), Scripted(script)).held == []


class Together:
    """Answers once so many pods are asked for at the same time; of one pod, that a signal has come."""

    def __init__(self, number: int, stopped: str = "") -> None:
        self.barrier = Barrier(number, timeout=60.0)
        self.stopped = stopped

    def __call__(self, pod, *_):
        self.barrier.wait()
        if pod.name == self.stopped:
            raise CycleStopped("stopped by SIGTERM")
        return GRANTED


def crowd(number: int):
    return cluster(ON, [pod(f"p{each}", owners=f"owner-{each}") for each in range(number)])


def test_pods_of_different_owners_are_in_flight_together():
    ledger = decide(crowd(8), Listed(), sink=Together(4), most_in_flight=4)

    assert evicted(ledger) == [f"p{each}" for each in range(8)]


def test_pods_of_a_strategy_that_balances_go_one_by_one():
    """Each of its choices depends on what went before, so nothing is left to another thread."""
    threads = []

    def sink(*_):
        threads.append(current_thread())
        return GRANTED

    balance = ScriptedBalance(lambda on, evict: evict.each([(each, "crowded") for each in on.pods()]), "Balancing")
    decide(crowd(8), balance, sink=sink, most_in_flight=4)

    assert threads == [current_thread()] * 8


def test_what_was_granted_is_recorded_although_the_cycle_is_stopped_meanwhile():
    """The pod that was not asked for gives its share of the limit back; those asked for after it count."""
    ledger = decide(crowd(8), Listed(), sink=Together(3, stopped="p0"), most_in_flight=3, limits=Limits(total=3))

    assert evicted(ledger) == ["p1", "p2"]
    assert ledger.stopped == "stopped by SIGTERM"
    assert not ledger.refusals
