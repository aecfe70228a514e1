"""RemovePodsViolatingInterPodAntiAffinity: who leaves whom, in which order, and why (strategies.md 6)."""

import pytest

from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.report.words import text
from strategies.remove_pods_violating_inter_pod_anti_affinity import RemovePodsViolatingInterPodAntiAffinity as Strategy
from tests.make import cluster, decide, evicted, node, pod, selector

HOST = "kubernetes.io/hostname"


def strategy(**args):
    return Strategy(Strategy.Args.model_validate(args))


def against(app, key=HOST, **fields):
    """One required term against pods labelled app=<app>."""
    return (PodAffinityTerm(key, None if app is None else selector(app=app), **fields),)


def loner(name, app="web", **fields):
    """A pod that wants no other of its kind around."""
    return pod(name, labels={"app": app}, anti_affinity=against(app), **fields)


def two_nodes(*pods, **fields):
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "a"}), node("n3", labels={"zone": "b"})]
    return cluster(nodes, pods, **fields)


def test_of_pods_that_dislike_each_other_one_stays():
    """The oldest go first, and each reason names a pod that is still there, with node and domain."""
    ledger = decide(two_nodes(loner("p1", age=30), loner("p2", age=20), loner("p3", age=10)), strategy())

    assert [(each.pod.name, text(each.because)) for each in ledger.evictions] == [
        ("p1", "anti-affinity against default/p3 on n1 (topology kubernetes.io/hostname=n1)"),
        ("p2", "anti-affinity against default/p3 on n1 (topology kubernetes.io/hostname=n1)"),
    ]
    assert ledger.refusals == []


def test_of_one_pod_and_two_that_may_not_run_beside_it_the_two_go():
    """An example in the descheduler's documentation, which lets the one go; its code does what is shown here."""
    on = two_nodes(
        pod("pod-a", labels={"app": "a"}),
        pod("pod-b", anti_affinity=against("a")),
        pod("pod-c", anti_affinity=against("a")),
    )

    assert evicted(decide(on, strategy())) == ["pod-b", "pod-c"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [], id="by default the pod's own namespace"),
        pytest.param({"namespaces": ("other",)}, ["shy"], id="a listed one"),
        pytest.param({"namespace_selector": selector(team="x")}, ["shy"], id="a selected one"),
        pytest.param({"namespace_selector": selector(team="y")}, [], id="none is selected"),
        pytest.param({"namespace_selector": selector()}, ["shy"], id="the empty selector selects all"),
        pytest.param(
            {"namespaces": ("other",), "namespace_selector": selector(team="y")}, ["shy"], id="list and selector add up"
        ),
    ],
)
def test_namespaces_of_a_term(fields, expected):
    """Unlike the descheduler, which looks at the list only, terms are read as the scheduler reads them."""
    on = two_nodes(
        pod("shy", anti_affinity=against("loud", **fields)),
        pod("loud", namespace="other", labels={"app": "loud"}),
        namespaces={"default": {}, "other": {"team": "x"}},
    )

    assert evicted(decide(on, strategy())) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"match_label_keys": ("hash",)}, ["shy"], id="the same hash matters"),
        pytest.param({"mismatch_label_keys": ("hash",)}, ["shy2"], id="another hash matters"),
        pytest.param({"match_label_keys": ("absent",)}, ["shy", "shy2"], id="keys the pod lacks are ignored"),
    ],
)
def test_label_keys_narrow_the_selector(fields, expected):
    """Unlike the descheduler, which ignores them: `shy` has the neighbour's hash, `shy2` another."""
    on = two_nodes(
        pod("shy", labels={"hash": "1"}, anti_affinity=against("loud", **fields)),
        pod("shy2", labels={"hash": "2"}, anti_affinity=against("loud", **fields)),
        pod("loud", labels={"app": "loud", "hash": "1"}),
    )

    assert evicted(decide(on, strategy())) == expected
