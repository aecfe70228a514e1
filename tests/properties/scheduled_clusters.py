"""Small random clusters with every wish that a pod may have, for the simulated scheduler."""

from typing import Any

from hypothesis import strategies as st

from rebalancer.cluster.node import Node, NodeImage
from rebalancer.cluster.pod import (
    HostPort,
    Placement,
    Pod,
    PodAffinityTerm,
    PreferredTerm,
    SpreadConstraint,
    WeightedPodTerm,
)
from rebalancer.cluster.selectors import EVERYTHING, NodeSelectorTerm, Requirement
from tests import make

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NAMESPACES = {"blue": {"team": "one"}, "green": {}}
APPS = ("a", "b")
KEYS = st.sampled_from((HOST, ZONE, "rack"))
TAINTS = ("soft-1=x:PreferNoSchedule", "soft-2=x:PreferNoSchedule", "db=x:NoSchedule")


def selectors() -> st.SearchStrategy[Any]:
    return st.sampled_from((None, EVERYTHING, *(make.selector(app=app) for app in APPS)))


@st.composite
def nodes(draw: st.DrawFn, index: int) -> Node:
    labels = {ZONE: draw(st.sampled_from(("east", "west"))), "rack": draw(st.sampled_from(("r1", "r2")))}
    kept = draw(st.sets(st.sampled_from((ZONE, "rack"))))
    images = draw(
        st.lists(st.sampled_from((NodeImage(("big:1",), 900 << 20), NodeImage(("mid:1",), 90 << 20))), unique=True)
    )
    return make.node(
        f"n{index}",
        cpu=draw(st.sampled_from(("2", "3", "7900m"))),
        memory=draw(st.sampled_from(("4Gi", "7Gi"))),
        pods=draw(st.sampled_from((2, 110))),
        labels={key: labels[key] for key in kept},
        taints=draw(st.lists(st.sampled_from(TAINTS), unique=True, max_size=2)),
        unschedulable=draw(st.integers(0, 9)) == 0,
        images=tuple(images),
    )


@st.composite
def terms(draw: st.DrawFn) -> PodAffinityTerm:
    scope = draw(st.sampled_from(("own", "named", "labelled", "all")))
    return PodAffinityTerm(
        draw(KEYS),
        draw(selectors()),
        ("blue",) if scope == "named" else (),
        {"labelled": make.selector(team="one"), "all": EVERYTHING}.get(scope),
    )


@st.composite
def constraints(draw: st.DrawFn) -> SpreadConstraint:
    return SpreadConstraint(
        draw(st.integers(1, 2)),
        draw(KEYS),
        draw(st.sampled_from(("DoNotSchedule", "ScheduleAnyway"))),
        draw(selectors()),
        min_domains=draw(st.sampled_from((None, 3))),
        node_affinity_policy=draw(st.sampled_from(("Honor", "Ignore"))),
        node_taints_policy=draw(st.sampled_from(("Honor", "Ignore"))),
    )


def few(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Mostly none, so that pods fit somewhere."""
    return st.one_of(st.just(()), st.just(()), st.lists(values, max_size=2).map(tuple))


@st.composite
def pods(draw: st.DrawFn, name: str, **fields: Any) -> Pod:
    weighted = st.builds(WeightedPodTerm, st.sampled_from((1, 50)), terms())
    in_zone = NodeSelectorTerm((Requirement(ZONE, "In", ("east",)),))
    racked = NodeSelectorTerm((Requirement("rack", "Exists"),))
    placement = Placement(
        images=draw(st.sampled_from(((), ("big:1",), ("big:1", "mid:1")))),
        host_ports=draw(st.sampled_from(((), (), (HostPort(80),)))),
        affinity=draw(few(terms())),
        preferred_affinity=draw(few(weighted)),
        preferred_anti_affinity=draw(few(weighted)),
    )
    return make.pod(
        name,
        namespace=draw(st.sampled_from(tuple(NAMESPACES))),
        cpu=draw(st.sampled_from((None, "0", "300m", "1"))),
        memory=draw(st.sampled_from((None, "100Mi", "1Gi"))),
        labels={"app": draw(st.sampled_from(APPS))},
        tolerations=draw(st.lists(st.sampled_from(("soft-1", "db:NoSchedule", "*")), max_size=1)),
        terminating=draw(st.integers(0, 5)) == 0,
        anti_affinity=draw(few(terms())),
        spread=draw(few(constraints())),
        node_terms=draw(st.sampled_from((None, None, (in_zone, racked)))),
        preferred=draw(few(st.sampled_from((PreferredTerm(5, in_zone), PreferredTerm(9, racked))))),
        placement=placement,
        **{"owners": None, **fields},
    )
