"""Random clusters of up to 20 nodes: few labels, ages and templates, so that ties and conflicts are frequent.

Hypothesis draws the sizes and a seed, so that a failing cluster shrinks; dice from that seed do the rest, which is
fast enough for clusters in which something happens.  `NODES`, `pods` and `BUDGETS` are of small ones with every kind
of pod that the engine tells apart, so that rules meet often.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from rebalancer.cluster.selectors import LabelSelector, NodeSelectorTerm, Requirement
from tests import make

T = TypeVar("T")
ZONES = ("a", "b", "c")
NAMESPACES = ("bank", "shop", "yard")
POD_LABELS = {"app": "xy", "hash": "12"}
NODE_LABELS = {"zone": ZONES, "disk": ("ssd", "hdd")}


class Dice(Random):
    """Random choices by name."""

    def often(self, value: T, *others: T) -> T:
        """The value seven times in eight."""
        return self.choice(others) if self.random() < 1 / 8 else value

    def some(self, most: int, one: Callable[[], T]) -> tuple[T, ...]:
        return tuple(one() for _ in range(self.randint(0, most)))

    def labels(self, values: Mapping[str, str | tuple[str, ...]]) -> dict[str, str]:
        return {key: self.choice(each) for key, each in values.items() if self.often(True, False)}

    def requirement(self, values: Mapping[str, str | tuple[str, ...]]) -> Requirement:
        key = self.choice(sorted(values))
        operator = self.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
        if operator in ("Exists", "DoesNotExist"):
            return Requirement(key, operator)
        return Requirement(key, operator, tuple(self.sample(values[key], self.randint(1, 2))))

    def selector(self) -> LabelSelector | None:
        requirements = self.some(2, lambda: self.requirement(POD_LABELS))
        return self.often(LabelSelector(tuple(sorted(requirements))), None)

    def node_term(self) -> NodeSelectorTerm:
        return NodeSelectorTerm(self.some(2, lambda: self.requirement(NODE_LABELS)))

    def node(self, name: str, **fields: Any) -> Node:
        taint = self.choice(("k=v:NoSchedule", "k:NoExecute", "k:PreferNoSchedule"))
        usual = {"taints": self.often((), (taint,)), "cpu": self.often("2", "300m"), "pods": self.often(110, 3)}
        unschedulable = self.often(False, True)
        return make.node(name, labels=self.labels(NODE_LABELS), unschedulable=unschedulable, **{**usual, **fields})

    def template(self, **fields: Any) -> Pod:
        """A pod whose spec and labels its replicas share; these fields beside the usual ones."""
        apart = (PodAffinityTerm("kubernetes.io/hostname", make.selector(app="x")),)
        usual = {
            "anti_affinity": self.often((), apart),
            "cpu": self.choice(("100m", "100m", "400m", None)),
            "labels": self.labels(POD_LABELS),
            "tolerations": self.often((), ("k",), ("*",)),
            "node_selector": self.often(None, {}, {"disk": "ssd"}),
            "priority": self.choice((None, None, 0, 7, 1000)),
            "local_storage": self.often(False, True),
        }
        return make.pod("template", **{**usual, **fields})

    def replica(self, template: Pod, name: str, namespace: str, node: Node) -> Pod:
        pod = make.pod(
            name,
            node=node.name,
            namespace=namespace,
            age=self.choice((60, 3600)),
            terminating=self.often(False, True),
            owners=self.often("web", None),
            phase=self.often("Running", "Pending", "Succeeded"),
            qos=self.choice(("Burstable", "BestEffort")),
            prefer_no_eviction=self.often(False, True),
        )
        return msgspec.structs.replace(pod, spec=template.spec, labels=template.labels)


@st.composite
def clusters(draw: st.DrawFn, template: Callable[[Dice], Pod]) -> tuple[list[Node], list[Pod]]:
    """Draw nodes and pods; the pods are replicas of a few templates, with names that other namespaces have too."""
    dice = Dice(draw(st.integers(0, 2**32)))
    nodes = [dice.node(f"n{number}") for number in range(draw(st.integers(2, 20)))]
    templates = [template(dice) for _ in range(draw(st.integers(1, 4)))]
    favourites = dice.sample(nodes, 2)
    pods = []
    for number in range(draw(st.integers(0, 45))):
        name, namespace = f"p{number % 15}", NAMESPACES[number // 15]
        place = dice.choice(dice.choice((nodes, favourites)))
        pods.append(dice.replica(dice.choice(templates), name, namespace, place))
    return nodes, pods


GPU = "example.com/gpu"
TAINTS = (*((),) * 4, ("k=v:NoSchedule",), ("k:NoExecute",), ("k:PreferNoSchedule",), ("k:NoSchedule", "l:NoSchedule"))
SSD = NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),))


@st.composite
def uneven_clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """Draw small nodes, some full and some idle, and pods of several owners, so that there is something to even out."""
    dice = Dice(draw(st.integers(0, 2**32)))
    nodes = [
        dice.node(
            f"n{number}",
            cpu=dice.choice(("1", "2", "3500m")),
            memory=dice.choice(("4Gi", "5000M")),
            pods=dice.choice((9, 20, 20)),
            taints=dice.choice(TAINTS),
            extra=dice.choice(({}, {GPU: "4"}, {GPU: "9"}, {GPU: "0"})),
        )
        for number in range(draw(st.integers(2, 20)))
    ]
    templates = [
        dice.template(
            anti_affinity=(),
            cpu=dice.choice(("100m", "200m", "500m", "0", None)),
            memory=dice.choice((None, None, "100Mi", "800Mi")),
            requests=dice.choice(({}, {}, {GPU: "1"})),
            tolerations=dice.choice(((), (), ("k",), ("*",), ("*", "l"), ("k=v:NoSchedule", "l"))),
            node_terms=dice.choice((None, None, (SSD,), ())),
        )
        for _ in range(dice.randint(1, 6))
    ]
    weights = [8, *(dice.choice((0, 1, 8)) for _ in nodes[1:])]
    pods = [
        dice.replica(dice.choice(templates), f"p{number}", dice.choice(NAMESPACES[:2]), place)
        for number, place in enumerate(dice.choices(nodes, weights, k=draw(st.integers(0, 120))))
    ]
    return nodes, pods


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
    "namespace": st.sampled_from("ab"),
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
        st.sampled_from("ab"),
        selector=st.sampled_from((*(make.selector(app=app) for app in APPS), EVERYTHING, None)),
        observed=st.sampled_from((True, True, True, False)),
        current_healthy=st.integers(0, 3),
        desired_healthy=st.integers(0, 3),
        unhealthy_policy=st.sampled_from(("IfHealthyBudget", "AlwaysAllow")),
    ),
    max_size=3,
    unique_by=lambda budget: (budget.namespace, budget.name),
).map(tuple)
