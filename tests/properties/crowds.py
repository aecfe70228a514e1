"""Small clusters with every kind of pod that the engine tells apart, so that rules meet often."""

from typing import Any

from hypothesis import strategies as st

from rebalancer.cluster.pod import Pod
from tests import make

NAMESPACES = ("a", "b")
APPS = ("x", "y")
NODE_NAMES = ("n1", "n2", "n3")
EVERYTHING = make.selector()

NODES = st.tuples(
    *(
        st.builds(
            make.node,
            st.just(name),
            cpu=st.sampled_from(("1", "2")),
            pods=st.sampled_from((2, 110)),
            labels=st.sampled_from(({}, {"disk": "ssd"})),
            taints=st.sampled_from(((), (), ("k:NoSchedule",))),
            unschedulable=st.sampled_from((False, False, True)),
        )
        for name in NODE_NAMES
    )
)

_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "node": st.sampled_from((*NODE_NAMES, "")),
    "namespace": st.sampled_from(NAMESPACES),
    "labels": st.sampled_from(({}, *({"app": app} for app in APPS))),
    "age": st.sampled_from((5, 60, 3600)),
    "owners": st.sampled_from(("web", "db", None, (make.owner("d", "DaemonSet"),))),
    "phase": st.sampled_from(("Running", "Running", "Running", "Pending", "Failed", "Succeeded")),
    "cpu": st.sampled_from(("100m", "1", "3")),
}
_RARE: dict[str, Any] = {
    "ready": False,
    "mirror": True,
    "static": True,
    "terminating": True,
    "evict_annotation": True,
    "prefer_no_eviction": True,
    "problem": "bad",
    "local_storage": True,
    "resource_claims": True,
    "priority": 2_000_000_000,
    "claims": ("c",),
    "tolerations": ("k",),
    "node_selector": {"disk": "ssd"},
}


@st.composite
def pods(draw: st.DrawFn, most: int = 12) -> list[Pod]:
    """Ordinary pods, a good part of which have one or two peculiarities."""
    fields = st.fixed_dictionaries(_FIELDS)
    rare = st.lists(st.sampled_from(sorted(_RARE)), max_size=2)
    drawn = draw(st.lists(st.tuples(fields, rare), max_size=most))
    return [
        make.pod(f"p{number}", **common | {name: _RARE[name] for name in names})
        for number, (common, names) in enumerate(drawn)
    ]


BUDGETS = st.lists(
    st.builds(
        make.pdb,
        st.sampled_from(("one", "two", "three")),
        st.integers(0, 2),
        st.sampled_from(NAMESPACES),
        selector=st.sampled_from((*(make.selector(app=app) for app in APPS), EVERYTHING, None)),
        observed=st.sampled_from((True, True, True, False)),
        current_healthy=st.integers(0, 3),
        desired_healthy=st.integers(0, 3),
        unhealthy_policy=st.sampled_from(("IfHealthyBudget", "AlwaysAllow")),
    ),
    max_size=3,
    unique_by=lambda budget: (budget.namespace, budget.name),
).map(tuple)
