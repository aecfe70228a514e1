"""One cycle: which strategies run, in which order, and what stops them."""

from contextlib import suppress
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from rebalancer.engine.cycle import ProfilePlan, run_cycle, widen_destinations
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.engine.limits import Limits
from rebalancer.engine.patience import Recollection
from rebalancer.errors import CycleStopped, StrategyError, UsageError
from rebalancer.eviction.causes import Code, cause
from rebalancer.eviction.steering import Destination
from rebalancer.eviction.verdict import GRANTED, Unknown
from rebalancer.memory.document import Memory
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.policy.moving import Share, Trust
from rebalancer.report.words import text
from rebalancer.scheduling.worlds import SAMPLES
from tests.make import NOW, cluster, decide, evicted, node, pod, says_no
from tests.unit.engine.stand_ins import AnsweringSink, Greedy, Scripted, ScriptedBalance

ON = [node("n1"), node("n2")]


def nothing(_on: Any, _evict: Any) -> None:
    pass


def test_deschedule_strategies_of_all_profiles_come_before_balance_strategies() -> None:
    """And the duration of each is measured."""
    ticks = count()
    plans = [
        ProfilePlan(
            profile,
            DefaultEvictorArgs(),
            tuple(Scripted(nothing, f"d{number}") for number in (2, 1)),
            tuple(ScriptedBalance(nothing, f"b{number}") for number in (2, 1)),
        )
        for profile in ("y", "x")
    ]

    ledger = run_cycle(cluster(ON, []), plans, Limits(), None, timer=lambda: float(next(ticks)))

    assert {run.seconds for run in ledger.runs} == {1.0}
    ran = " ".join(f"{run.profile}/{run.strategy}" for run in ledger.runs)
    assert ran == "y/d2 y/d1 x/d2 x/d1 y/b2 y/b1 x/b2 x/b1"


def test_each_profile_has_its_own_evictor_and_all_share_the_limits() -> None:
    """A pod that one profile protects another may take."""
    plans = [
        ProfilePlan("careful", DefaultEvictorArgs(), (Greedy(),)),
        ProfilePlan("bold", DefaultEvictorArgs(evict_local_storage_pods=True), (Greedy(),)),
    ]
    pods = [pod("a"), pod("b", local_storage=True), pod("c", local_storage=True)]

    ledger = run_cycle(cluster(ON, pods), plans, Limits(total=2), None, timer=lambda: 0.0)

    assert [(entry.profile, entry.pod.name) for entry in ledger.evictions] == [("careful", "a"), ("bold", "b")]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(StrategyError("no metrics"), "no metrics", id="an error of a strategy's own"),
        pytest.param(ZeroDivisionError("oops"), "ZeroDivisionError: oops", id="an error of foreign code"),
    ],
)
def test_a_strategy_that_fails_does_not_stop_the_next(error: Exception, text: str) -> None:
    """Its error stands in its run; what it had evicted before stays evicted."""

    def script(on: Any, evict: Any) -> None:
        evict(on.pods()[0], "first")
        raise error

    ledger = decide(cluster(ON, [pod("a"), pod("b")]), Scripted(script), Greedy())

    assert evicted(ledger) == ["a", "b"]
    assert [(run.strategy, run.evicted, run.error) for run in ledger.runs] == [
        ("Scripted", 1, text),
        ("Greedy", 1, None),
    ]


def test_a_stop_ends_the_cycle() -> None:
    """No strategy after it runs, and each says why; no strategy can take it for an error of its own."""

    def stubborn(_on: Any, _evict: Any) -> None:
        with suppress(Exception):
            raise CycleStopped("SIGTERM")

    ledger = decide(cluster(ON, [pod("a")]), Scripted(stubborn), Greedy())

    assert ledger.stopped == "SIGTERM"
    assert evicted(ledger) == []
    assert [run.error for run in ledger.runs] == ["SIGTERM", "SIGTERM"]


@pytest.mark.parametrize(
    "nodes", [[], [node("n1")], [node("n1"), node("n2", ready=False)]], ids=["none", "one", "one of two"]
)
def test_with_fewer_than_two_ready_nodes_nothing_runs(nodes: list[Any]) -> None:
    ledger = decide(cluster(nodes, [pod("a")]), Greedy())

    assert ledger.runs == []
    assert "moving pods takes 2 ready nodes" in (ledger.skipped or "")
    assert ledger.stopped is None


@pytest.mark.parametrize(
    ("total", "gone"), [(None, 1), (5, 1), (Share(50), 1), (0, 0), (Share(0), 0), (Share(50, at_most=0), 0)]
)
def test_a_trial_moves_one_pod_and_none_where_none_may_go(total: Any, gone: int) -> None:
    """The breaker lets one move be tried; a limit of 0, of the policy or of the command line, holds all the same."""
    recollection = Recollection(Trust(), Memory(since=NOW), is_trial=True)

    ledger = decide(cluster(ON, [pod("a"), pod("b")]), Greedy(), limits=Limits(total=total), recollection=recollection)

    assert len(ledger.evictions) == gone


def test_an_evictor_that_does_not_go_with_the_cluster_is_an_error_before_anything_runs() -> None:
    plans = [
        ProfilePlan("good", DefaultEvictorArgs(), (Greedy(),)),
        ProfilePlan("bad", DefaultEvictorArgs.model_validate({"priorityThreshold": {"name": "x"}}), (Greedy(),)),
    ]
    on = cluster(ON, [a := pod("a")])

    with pytest.raises(UsageError):
        run_cycle(on, plans, Limits(), None, timer=lambda: 0.0)
    assert on.contains(a)


NOT_YET = says_no("PDB", "not yet")


@pytest.mark.parametrize(
    ("verdicts", "refusals"),
    [
        pytest.param([NOT_YET, says_no("Webhook", "no")], [NOT_YET], id="twice, with the first cause"),
        pytest.param([NOT_YET, GRANTED], [], id="and granted when the cluster has changed"),
        pytest.param([NOT_YET, Unknown("no answer")], [], id="and perhaps gone in the end"),
    ],
)
def test_a_pod_that_is_refused_to_a_strategy_counts_once_and_only_if_it_stays(verdicts: Any, refusals: Any) -> None:
    ledger = Ledger()
    for _ in range(2):
        for verdict in verdicts:
            ledger.record(Entry("p", "s", pod("a"), cause(Code.CUSTOM), verdict))
        ledger.close_run("p", "s", 0.0, None)

    assert [each.verdict for each in ledger.refusals] == refusals * 2
    assert [each.refused for each in ledger.runs] == [len(refusals)] * 2


def test_each_run_counts_what_its_own_strategy_did() -> None:
    """Evictions, those in doubt, and what it has looked at; nothing of the strategies before it."""

    def script(number: int) -> Any:
        def run(on: Any, evict: Any) -> None:
            evict.count({"nodes looked at": number})
            for _ in range(number):
                evict(on.pods()[0], "test")

        return run

    lost = {name: Unknown("no answer") for name in "acd"}
    on = cluster(ON, [pod(name) for name in "abcdef"])
    ledger = decide(on, *(Scripted(script(number)) for number in (2, 3, 1)), sink=AnsweringSink(lost))

    assert [(run.evicted, run.unknown) for run in ledger.runs] == [(1, 1), (1, 2), (1, 0)]
    assert [run.observed.counts for run in ledger.runs] == [{"nodes looked at": number} for number in (2, 3, 1)]


def test_what_a_strategy_expects_is_forgotten_with_it() -> None:
    """What it removed is back, and what it placed is gone; what was evicted stays gone."""
    pods, seen = [pod("a"), pod("b"), pod("c")], []

    def look(on: Any, _: Any) -> None:
        seen.append((on.pods(), on.expected_on(on.nodes[1])))

    def dream(on: Any, evict: Any) -> None:
        evict(pods[0], "test")
        on.remove(pods[1])
        on.place(pods[1], on.nodes[1])
        look(on, evict)

    decide(cluster(ON, pods), Scripted(dream), Scripted(look))

    assert seen == [((pods[2],), (pods[1],)), ((pods[1], pods[2]), ())]


@pytest.mark.parametrize(
    ("shares", "worlds", "nowhere"),
    [
        pytest.param({"n2": 14.5}, 15, 1, id="half a world is missing twice, so one and a half count as one"),
        pytest.param({"n2": 12.5}, 13, 3, id="the same with three and a half"),
        pytest.param({"n2": 15.5, "n3": 0.5}, 15, None, id="no world is left over for the node beside it"),
        pytest.param({"n2": 9.0, "n3": 6.0}, 9, 1, id="whole worlds"),
    ],
)
def test_worlds_and_nowhere_add_up(shares: dict[str, float], worlds: int, nowhere: int | None) -> None:
    told = widened(shares).because.details["lands_on"]
    assert (told["worlds"], told.get("nowhere")) == (worlds, nowhere)


def test_of_thousands_of_nodes_a_reason_names_as_many_as_the_destination() -> None:
    """A report of a large cluster would name all its nodes for each pod."""
    entry = widened({f"n{number}": SAMPLES / 3000 for number in range(3000)})

    assert entry.destination is not None
    assert entry.because.details["lands_on"]["else"] == [name for name in entry.destination.nodes if name != "n2"]
    assert entry.destination.more == 2800
    assert text(entry.because).endswith("likely lands on n2 (0 of 16), else n0, n1, n3 or 2996 more")


def widened(shares: dict[str, float]) -> Entry:
    """Stand-in worlds: which shares come of a cluster is theirs to say, and only some clusters give halves."""
    parts = {name: share / SAMPLES for name, share in shares.items()}
    known = SimpleNamespace(played=lambda _: None, shares=lambda _: parts)
    because = cause(Code.UNDERUTILIZED, node="n1", measured=[], lands_on={"node": "n2", "filled": []})
    entry = Entry("p", "s", pod("a"), because, GRANTED, Destination.among("n2", {"n2": 1.0}))
    ledger = Ledger(evictions=[entry])

    widen_destinations(ledger, SimpleNamespace(index=lambda _: known))  # type: ignore[arg-type]
    return ledger.evictions[0]
