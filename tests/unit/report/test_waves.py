"""Waves in the report: what is avoided, what moves, where it landed, and what the nodes come to."""

from rebalancer.eviction.steering import ActualPlacement, Steer
from rebalancer.report.document import Finished, document
from rebalancer.report.layout import Page
from rebalancer.report.nodes import show_waves
from tests import make
from tests.measured import cluster, low, node, pod

KEYS = ("kube-rebalancer/avoid", "kube-rebalancer/avoid-more")


class Astray(Steer):
    """Replacements land on n2."""

    def settle(self, wave, moved):
        return tuple(ActualPlacement(move, "n2", "new", 2.5) for move, _ in moved)


def report(steer, *, dry_run):
    nodes = [node("n1"), node("n2"), node("n3")]
    pods = [pod("big"), pod("rest", prefer_no_eviction=True), pod("b", "n2"), pod("c", "n3", cpu="3")]
    on = cluster(nodes, pods, {"big": 25, "rest": 45, "b": 45, "c": 10})
    ledger = make.decide(on, low(40, 50), steer=steer)
    (run,) = document(Finished(ledger, on, dry_run, {"file": "x"}, "wall"))["strategies"]
    return run


def test_a_dry_run_tells_what_it_foresees_and_nothing_that_landed():
    run = report(Steer(1.5, KEYS), dry_run=True)

    (wave,) = run["waves"]
    assert wave["avoid"] == {"n1": 2, "n2": 1}
    assert [(move["name"], move["expected"], move["likely"], move["landed"]) for move in wave["moves"]] == [
        ("big", "n3", ["n3"], None)
    ]
    assert run["evenness"]["nodesOverTarget"] == {"before": 1, "foreseen": 0, "after": None}
    assert run["evenness"]["highest"]["cpu"] == {"before": 70, "foreseen": 45, "after": None}


def test_a_live_run_tells_where_replacements_landed_and_what_would_have_been():
    run = report(Astray(1.5, KEYS), dry_run=False)

    landed = run["waves"][0]["moves"][0]["landed"]
    assert landed == {"node": "n2", "replacement": "new", "readySeconds": 2.5, "foreseen": False}
    assert run["evenness"]["nodesOverTarget"] == {"before": 1, "foreseen": 0, "after": 1}
    assert run["evenness"]["highest"]["cpu"] == {"before": 70, "foreseen": 45, "after": 70}


def lines_for_people(run):
    page = Page(None)
    show_waves(run, page)
    return [line for line, _ in page.lines]


def test_the_rows_for_a_person():
    dry, live = report(Steer(1.5, KEYS), dry_run=True), report(Astray(1.5, KEYS), dry_run=False)

    assert lines_for_people(dry)[2] == " 1   1 pods to n3  avoiding 2 nodes, 1 with two taints"
    assert lines_for_people(live)[2].endswith("; 0 of 1 as foreseen, Ready in 2 s")


def test_without_steering_there_are_no_waves():
    run = report(None, dry_run=True)

    assert (run["waves"], run["evenness"], lines_for_people(run)) == ([], None, [])
