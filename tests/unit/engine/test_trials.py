"""What the engine says of several pods at once."""

import pytest

from rebalancer.engine.limits import Limits
from tests.make import cluster, decide, node, pdb, pod, refused
from tests.unit.engine.stand_ins import Scripted

ON = [node("n1"), node("n2")]


def trial(pods, *, sparing=False, **cycle):
    """Ask twice which of these pods would be refused, then for all of them; return the answers and the ledger."""
    answers = []

    def script(on, evict):
        evict = evict.with_owner_limit() if sparing else evict
        answers.extend(evict.first_refusal(pods) for _ in range(2))
        assert [each for each in pods if on.contains(each)] == pods
        for each in pods:
            evict(each, "test")

    budgets = cycle.pop("budgets", ())
    ledger = decide(cluster(ON, pods, budgets=budgets), Scripted(script), **cycle)
    return answers, ledger


@pytest.mark.parametrize(
    ("fields", "cycle", "by"),
    [
        ({"owners": "web"}, {"limits": Limits(per_node=2)}, "NodeLimit"),
        ({"owners": "web"}, {"limits": Limits(per_namespace=2)}, "NamespaceLimit"),
        ({"owners": "web"}, {"limits": Limits(total=2)}, "TotalLimit"),
        ({"owners": "web"}, {"evictor": {"minReplicas": 2}}, "MinReplicas"),
        ({"labels": {"app": "web"}}, {"budgets": (pdb("web", 2),)}, "PDB"),
    ],
)
def test_a_trial_says_what_asking_would(fields, cycle, by):
    """The third of three is refused, each time one asks, and then in earnest."""
    pods = [pod(name, **fields) for name in "abc"]
    answers, ledger = trial(pods, **cycle)

    assert [(each.name, refusal.by) for each, refusal in answers] == [("c", by)] * 2
    assert refused(ledger) == {"c": by}


def test_a_trial_of_pods_that_may_go_has_no_answer():
    answers, ledger = trial([pod(name, owners=name) for name in "abc"], sparing=True, limits=Limits(total=3))

    assert answers == [None, None]
    assert len(ledger.evictions) == 3


def test_a_trial_looks_for_other_nodes_if_node_fit_is_on():
    pods = [pod("a", node_selector={"disk": "ssd"}), pod("b", owners=None)]
    answers, _ = trial(pods, evictor={"nodeFit": True})

    assert [(each.name, refusal.by) for each, refusal in answers] == [("a", "NodeFit")] * 2


def test_owners_are_spared_on_demand_only():
    """Of two pods one may go; who does not ask for mercy gets both."""
    pods = [pod("a"), pod("b")]

    assert refused(trial(pods, sparing=True)[1]) == {"b": "OwnerShare"}
    assert refused(trial(pods)[1]) == {}


def test_a_pdb_takes_the_place_of_the_share():
    """Its author has said how many may be missing; only a PDB that selects the pods counts."""
    pods = [pod(name, labels={"app": "web"}) for name in "ab"]

    assert refused(trial(pods, sparing=True, budgets=(pdb("web", 2),))[1]) == {}
    assert refused(trial(pods, sparing=True, budgets=(pdb("other", 2),))[1]) == {"b": "OwnerShare"}
