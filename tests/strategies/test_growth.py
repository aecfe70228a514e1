"""Who may create pods cannot stop the program: twice the objects, of whatever shape, make about twice the work.

Work is counted in lines of the program that are run, loops and comprehensions turn by turn, so that no clock is asked.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod, PodAffinityTerm, SpreadConstraint
from rebalancer.cluster.selectors import LabelSelector, NodeSelectorTerm, Requirement
from strategies.remove_pods_violating_inter_pod_anti_affinity import RemovePodsViolatingInterPodAntiAffinity
from strategies.remove_pods_violating_node_taints import RemovePodsViolatingNodeTaints
from strategies.remove_pods_violating_topology_spread_constraint import RemovePodsViolatingTopologySpreadConstraint
from tests import make
from tests.unit.engine.stand_ins import Polite

ROOT = str(Path(__file__).parents[2])
OURS = (f"{ROOT}/rebalancer/", f"{ROOT}/strategies/")
HOST, ZONE = "kubernetes.io/hostname", "zone"
#: Work may grow with the objects and a little more: sorting, and trees of indices.
MOST_GROWTH = 2.4
FEW = 60
APP_X = Requirement("app", "In", ("x",))

Shape = tuple[Cluster, Any, dict[str, Any]]


def default(strategy: Any) -> Any:
    return strategy(strategy.Args())


def nodes_of(number: int, **fields: Any) -> list[Any]:
    return [make.node(f"n{each:05}", labels={ZONE: f"z{each % 3}"}, **fields) for each in range(number)]


def pods_on_nodes_of_their_own(size: int, app: Callable[[int], str]) -> list[Pod]:
    """Each keeps apart from those of its app."""
    return [
        make.pod(
            f"p{each}",
            f"n{each:05}",
            owners=f"o{each}",
            labels={"app": app(each)},
            anti_affinity=(PodAffinityTerm(HOST, make.selector(app=app(each))),),
        )
        for each in range(size)
    ]


def apart_from_all(**fields: Any) -> tuple[PodAffinityTerm, ...]:
    return (PodAffinityTerm(HOST, LabelSelector((APP_X,)), **fields),)


def full_nodes_with_anti_affinity(size: int) -> Shape:
    """Each pod keeps apart from itself, and no node has room for another."""
    return make.cluster(nodes_of(size, pods=1), pods_on_nodes_of_their_own(size, str)), Polite(), {"nodeFit": True}


def mutual_anti_affinity(size: int) -> Shape:
    """All pods keep apart from all others, and each node has one."""
    return make.cluster(nodes_of(size), pods_on_nodes_of_their_own(size, lambda _: "x")), Polite(), {"nodeFit": True}


def pod_of_three(number: int, **fields: Any) -> Pod:
    """One of many pods on three nodes, with an owner of its own."""
    return make.pod(f"p{number}", f"n{number % 3:05}", owners=f"o{number}", **fields)


def mismatching_label_keys(size: int) -> Shape:
    """Each pod keeps apart from those of other tenants, and is a tenant of its own, in a zone of its own."""
    nodes = [make.node(f"n{each:05}", labels={ZONE: f"z{each}"}) for each in range(size)]
    term = (PodAffinityTerm(ZONE, LabelSelector(()), mismatch_label_keys=("tenant",)),)
    spec = make.pod("template", anti_affinity=term).spec
    pods = [
        msgspec.structs.replace(make.pod(f"p{each}", f"n{each:05}", owners=f"o{each}"), spec=spec, labels=labels)
        for each in range(size)
        for labels in ({"app": "x", "tenant": f"t{each}"},)
    ]
    return make.cluster(nodes, pods, namespaces={"default": {}}), default(RemovePodsViolatingInterPodAntiAffinity), {}


def numbered(size: int, **fields: Callable[[int], Any]) -> list[Pod]:
    """Pods with one label in common; fields of each by its number."""
    return [
        pod_of_three(each, labels={"app": "x", "number": str(each)}, **{name: of(each) for name, of in fields.items()})
        for each in range(size)
    ]


def selecting(number: int) -> LabelSelector:
    return make.selector(app="x", number=str(number))


def selectors_of_their_own(size: int) -> Shape:
    """Each pod keeps apart from one other."""
    pods = numbered(size, anti_affinity=lambda each: (PodAffinityTerm(HOST, selecting(each + 1)),))
    on = make.cluster(nodes_of(3), pods, namespaces={"default": {}})
    return on, default(RemovePodsViolatingInterPodAntiAffinity), {}


def selectors_of_everything(size: int, **evictor: Any) -> Shape:
    """Each pod has a selector of its own that matches all the others."""
    pods = [
        pod_of_three(
            each,
            labels={"app": "x", "number": str(each)},
            anti_affinity=(PodAffinityTerm(HOST, LabelSelector((APP_X, Requirement(f"key-{each}", "DoesNotExist")))),),
        )
        for each in range(size)
    ]
    on = make.cluster(nodes_of(3), pods, namespaces={"default": {}})
    return on, default(RemovePodsViolatingInterPodAntiAffinity), evictor


def selectors_of_everything_and_node_fit(size: int) -> Shape:
    """The same where each pod is asked whether another node takes it."""
    return selectors_of_everything(size, nodeFit=True)


def namespaces_of_their_own(size: int) -> Shape:
    """Each pod has a namespace of its own, and keeps apart from those of another one, which it finds by a label."""
    pods = [
        pod_of_three(
            each,
            namespace=f"s{each}",
            labels={"app": "x"},
            anti_affinity=apart_from_all(namespace_selector=make.selector(number=str(each + 1))),
        )
        for each in range(size)
    ]
    namespaces = {f"s{each}": {"number": str(each)} for each in range(size)}
    return make.cluster(nodes_of(3), pods, namespaces=namespaces), default(RemovePodsViolatingInterPodAntiAffinity), {}


def demands_of_their_own(size: int) -> Shape:
    """Each pod tolerates a taint and avoids a label that no node has, and all nodes are full."""
    pods = [
        make.pod(
            f"p{each}",
            f"n{each:05}",
            owners=f"o{each}",
            tolerations=[f"key-{each}"],
            node_terms=(NodeSelectorTerm((Requirement(f"key-{each}", "DoesNotExist"),)),),
        )
        for each in range(size)
    ]
    return make.cluster(nodes_of(size, pods=1), pods), Polite(), {"nodeFit": True}


def spreads_of_their_own(size: int) -> Shape:
    """The same with spread constraints."""
    pods = numbered(size, spread=lambda each: (SpreadConstraint(1, HOST, "DoNotSchedule", selecting(each)),))
    return make.cluster(nodes_of(3), pods), default(RemovePodsViolatingTopologySpreadConstraint), {}


def with_budgets(pods: list[Pod], selector: Callable[[int], LabelSelector], **evictor: Any) -> Shape:
    budgets = tuple(make.pdb(f"b{each}", 1, selector=selector(each)) for each in range(len(pods)))
    return make.cluster(nodes_of(3), pods, budgets=budgets), Polite(), evictor


WITHOUT_PDB = {"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}}


def budgets_and_label_sets(size: int) -> Shape:
    """As many PDBs as sets of labels, in one namespace, with one label in common."""
    return with_budgets(numbered(size), selecting)


def budgets_by_expression(size: int) -> Shape:
    """The same, where each PDB asks for a key of its own to exist."""
    pods = [pod_of_three(each, labels={f"key-{each}": ""}) for each in range(size)]
    return with_budgets(pods, lambda each: LabelSelector((Requirement(f"key-{each}", "Exists"),)), **WITHOUT_PDB)


def budgets_over_everything(size: int) -> Shape:
    """Each PDB selects every pod, and each pod has labels of its own."""
    return with_budgets(numbered(size), lambda _: LabelSelector(()), **WITHOUT_PDB)


def replicas_for_certain_room(size: int) -> Shape:
    """The scheduler is asked about each, and room is counted for all that went before."""
    template, labels = make.pod("template", cpu="1m"), {"app": "x"}
    pods = [
        msgspec.structs.replace(template, name=f"p{each}", uid=f"u{each}", node=f"n{each % 3:05}", labels=labels)
        for each in range(size)
    ]
    return make.cluster(nodes_of(3, pods=4 * size), pods), Polite(), {"nodeFit": "scheduler"}


def tenants_with_equal_labels(size: int) -> Shape:
    """Each namespace has a pod with the same labels and rules; the scheduler is asked about each, and has no room."""
    pods = [
        pod_of_three(
            each,
            namespace=f"s{each}",
            labels={"app": "x"},
            anti_affinity=apart_from_all(),
            spread=(SpreadConstraint(1, HOST, "DoNotSchedule", make.selector(app="x")),),
        )
        for each in range(size)
    ]
    namespaces: dict[str, dict[str, str]] = {f"s{each}": {} for each in range(size)}
    return make.cluster(nodes_of(3, pods=1), pods, namespaces=namespaces), Polite(), {"nodeFit": "scheduler"}


def conflicts_of_replicas(size: int) -> Shape:
    """The fewest of replicas that all keep apart from each other, in one zone."""
    term = (PodAffinityTerm(ZONE, make.selector(app="a0")),)
    pods = [
        make.pod(f"p{each}", "n00000", owners="o", labels={"app": "a0"}, anti_affinity=term) for each in range(size)
    ]
    strategy = RemovePodsViolatingInterPodAntiAffinity
    return make.cluster(nodes_of(3), pods), strategy(strategy.Args(selection="fewest")), {}


def conflicts_in_a_chain(size: int) -> Shape:
    """The fewest of pods of which each keeps apart from the next one."""
    on, _, evictor = selectors_of_their_own(size)
    strategy = RemovePodsViolatingInterPodAntiAffinity
    return on, strategy(strategy.Args(selection="fewest")), evictor


def taints_and_tolerations(size: int) -> Shape:
    """A node with many taints, and a pod there that tolerates all of them but the last."""
    nodes = [*nodes_of(2), make.node("tainted", taints=[f"k{each}=v" for each in range(size)])]
    held = [f"k{each}=v" for each in range(size - 1)]
    pods = [make.pod("p", "tainted", tolerations=held)]
    return make.cluster(nodes, pods), default(RemovePodsViolatingNodeTaints), {"nodeFit": True}


SHAPES = (
    full_nodes_with_anti_affinity,
    mutual_anti_affinity,
    mismatching_label_keys,
    selectors_of_their_own,
    selectors_of_everything,
    selectors_of_everything_and_node_fit,
    namespaces_of_their_own,
    demands_of_their_own,
    spreads_of_their_own,
    budgets_and_label_sets,
    budgets_by_expression,
    budgets_over_everything,
    replicas_for_certain_room,
    tenants_with_equal_labels,
    conflicts_of_replicas,
    conflicts_in_a_chain,
    taints_and_tolerations,
)


def work(act: Callable[[], object]) -> int:
    """Return how many lines of the program are run."""
    lines = 0

    def count(_frame: FrameType, event: str, _argument: object) -> object:
        nonlocal lines
        lines += event == "line"
        return count

    def enter(frame: FrameType, _event: str, _argument: object) -> object:
        return count if frame.f_code.co_filename.startswith(OURS) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        act()
    finally:
        sys.settrace(before)
    return lines


def work_of(shape: Callable[[int], Shape], size: int) -> int:
    on, strategy, evictor = shape(size)
    return work(lambda: make.decide(on, strategy, evictor=evictor))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_objects_are_about_twice_the_work(shape: Callable[[int], Shape]) -> None:
    """Of the differences, so that what is done once for any cluster does not hide growth."""
    work_of(shape, 2)  # what is imported on the way is not counted
    few, some, many = (work_of(shape, FEW * size) for size in (1, 2, 4))

    assert many - some <= MOST_GROWTH * (some - few)
