"""Evictions in flight: several at a time, none of a strategy that balances, and none lost when the cycle ends."""

from threading import Barrier, current_thread

from rebalancer.engine.limits import Limits
from rebalancer.errors import CycleStopped
from rebalancer.eviction.verdict import GRANTED
from tests.make import cluster, decide, evicted, node, pod
from tests.unit.engine.stand_ins import Listed, ScriptedBalance

NODES = [node("n1"), node("n2")]
LONGEST_SECONDS = 60.0


class Together:
    """Answers once so many pods are asked for at the same time; of one pod, that a signal has come."""

    def __init__(self, number: int, stopped: str = "") -> None:
        self.barrier = Barrier(number, timeout=LONGEST_SECONDS)
        self.stopped = stopped

    def __call__(self, pod, *_):
        self.barrier.wait()
        if pod.name == self.stopped:
            raise CycleStopped("stopped by SIGTERM")
        return GRANTED


def crowd(number: int):
    return cluster(NODES, [pod(f"p{each}", owners=f"owner-{each}") for each in range(number)])


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
