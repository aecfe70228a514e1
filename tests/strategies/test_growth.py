"""Who may create pods cannot stop the program: twice the objects, of whatever shape, make about twice the work.

Work is counted in lines of the program that are run, loops and comprehensions turn by turn, so that no clock is asked.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import PodAffinityTerm, PreferredTerm, SpreadConstraint
from rebalancer.cluster.selectors import LabelSelector, NodeSelectorTerm, Requirement
from rebalancer.eviction.steering import Steer
from strategies.remove_duplicates import RemoveDuplicates
from strategies.remove_pods_violating_inter_pod_anti_affinity import RemovePodsViolatingInterPodAntiAffinity
from strategies.remove_pods_violating_node_affinity import RemovePodsViolatingNodeAffinity
from strategies.remove_pods_violating_node_taints import RemovePodsViolatingNodeTaints
from strategies.remove_pods_violating_topology_spread_constraint import RemovePodsViolatingTopologySpreadConstraint
from tests import make, measured
from tests.unit.engine.stand_ins import Polite

ROOT = str(Path(__file__).parents[2])
OURS = (f"{ROOT}/rebalancer/", f"{ROOT}/strategies/")
HOST, ZONE = "kubernetes.io/hostname", "zone"
#: Work may grow with the objects and a little more: sorting, and trees of indices.
MOST_GROWTH = 2.4
FEW = 60

#: A cluster, a strategy, and arguments of the evictor.
Scene = tuple[Cluster, Any, Mapping[str, Any]]
CONFLICTS = RemovePodsViolatingInterPodAntiAffinity(RemovePodsViolatingInterPodAntiAffinity.Args())
FEWEST = RemovePodsViolatingInterPodAntiAffinity(RemovePodsViolatingInterPodAntiAffinity.Args(selection="fewest"))
PREFERENCES = RemovePodsViolatingNodeAffinity(
    RemovePodsViolatingNodeAffinity.Args(node_affinity_type=("preferredDuringSchedulingIgnoredDuringExecution",))
)
SPREAD = RemovePodsViolatingTopologySpreadConstraint(RemovePodsViolatingTopologySpreadConstraint.Args())
FIT, FIT_BY_SCHEDULER = {"nodeFit": True}, {"nodeFit": "scheduler"}
WITHOUT_PDB = {"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}}
POLITE, X = Polite(), {"app": "x"}


def alike(
    fields: Callable[[int], Mapping[str, Any]],  # of each pod, by its number
    strategy: Any = POLITE,
    evictor: Mapping[str, Any] | None = None,
    *,
    own: bool = False,  # whether each pod has a node of its own, and not one of three
    places: int = 110,
    zones: int = 3,
    namespaces: Callable[[int], Mapping[str, Mapping[str, str]]] = lambda _: {"default": {}},
    budget: Callable[[int], LabelSelector] | None = None,  # what the PDB of this number selects
) -> Callable[[int], Scene]:
    """So many pods, each of an owner of its own."""

    def scene(size: int) -> Scene:
        names = [f"n{each:05}" for each in range(size if own else 3)]
        nodes = [make.node(name, labels={ZONE: f"z{each % zones}"}, pods=places) for each, name in enumerate(names)]
        pods = [
            make.pod(f"p{each}", **{"node": names[each % len(names)], "owners": f"o{each}", **fields(each)})
            for each in range(size)
        ]
        budgets = tuple(make.pdb(f"b{each}", 1, selector=budget(each)) for each in range(size)) if budget else ()
        return make.cluster(nodes, pods, namespaces=namespaces(size), budgets=budgets), strategy, evictor or {}

    return scene


def numbered(number: int) -> dict[str, str]:
    return {**X, "number": str(number)}


def apart(topology: str, *of: Requirement, **more: Any) -> tuple[PodAffinityTerm, ...]:
    return (PodAffinityTerm(topology, LabelSelector(of), **more),)


def is_in(**labels: str) -> tuple[Requirement, ...]:
    return make.selector(**labels).requirements


def lacks(number: int) -> Requirement:
    """A condition of its own that all pods and nodes meet."""
    return Requirement(f"key-{number}", "DoesNotExist")


def spread_over(topology: str, **labels: str) -> tuple[SpreadConstraint, ...]:
    return (SpreadConstraint(1, topology, "DoNotSchedule", make.selector(**labels)),)


def apart_from_all_but_its_key(number: int) -> Mapping[str, Any]:
    return {"labels": numbered(number), "anti_affinity": apart(HOST, *is_in(**X), lacks(number))}


def apart_from_the_next(number: int) -> Mapping[str, Any]:
    return {"labels": numbered(number), "anti_affinity": apart(HOST, *is_in(**numbered(number + 1)))}


def replicas(size: int) -> Scene:
    """Replicas with one spec, as a cluster that was read has them."""
    template = make.pod("template", cpu="1m", labels=X)
    pods = [replace(template, name=f"p{each}", uid=f"u{each}", node=f"n{each % 3}") for each in range(size)]
    return make.cluster([make.node(f"n{each}", pods=4 * size) for each in range(3)], pods), POLITE, FIT_BY_SCHEDULER


def taints_and_tolerations(size: int) -> Scene:
    """A node with many taints, and a pod there that tolerates all of them but the last."""
    nodes = [make.node("n1"), make.node("n2"), make.node("tainted", taints=[f"k{each}=v" for each in range(size)])]
    pods = [make.pod("p", "tainted", tolerations=[f"k{each}=v" for each in range(size - 1)])]
    return make.cluster(nodes, pods), RemovePodsViolatingNodeTaints(RemovePodsViolatingNodeTaints.Args()), FIT


def owners_and_images(size: int) -> Scene:
    """Three replicas that have as many of both, and the images in any order."""
    fields = {"owners": [make.owner(f"o{each}") for each in range(size)], "images": tuple(map(str, range(size)))}
    pods = [make.pod(f"p{each}", "n1", **fields) for each in range(3)]
    return make.cluster([make.node("n1"), make.node("n2")], pods), RemoveDuplicates(RemoveDuplicates.Args()), {}


SHAPES: Mapping[str, Callable[[int], Scene]] = {
    "each pod keeps apart from itself, and no node has room for another": alike(
        lambda n: {"labels": {"app": str(n)}, "anti_affinity": apart(HOST, *is_in(app=str(n)))},
        POLITE,
        FIT,
        own=True,
        places=1,
    ),
    "all keep apart from all others, and each node has one": alike(
        lambda _: {"labels": X, "anti_affinity": apart(HOST, *is_in(**X))}, POLITE, FIT, own=True
    ),
    "each keeps apart from other tenants, and is a tenant in a zone of its own": alike(
        lambda n: {
            "labels": {**X, "tenant": f"t{n}"},
            "anti_affinity": apart(ZONE, mismatch_label_keys=("tenant",)),
        },
        CONFLICTS,
        own=True,
        zones=10_000,
    ),
    "each keeps apart from one other": alike(apart_from_the_next, CONFLICTS),
    "the fewest of such a chain": alike(apart_from_the_next, FEWEST),
    "each has a selector of its own for all others": alike(apart_from_all_but_its_key, CONFLICTS),
    "the same, with node fit": alike(apart_from_all_but_its_key, CONFLICTS, FIT),
    "each keeps apart from those of another namespace, which it finds by a label": alike(
        lambda n: {
            "namespace": f"s{n}",
            "labels": X,
            "anti_affinity": apart(HOST, *is_in(**X), namespace_selector=make.selector(number=str(n + 1))),
        },
        CONFLICTS,
        namespaces=lambda size: {f"s{each}": {"number": str(each)} for each in range(size)},
    ),
    "each tolerates a taint and avoids a label that no node has, and all nodes are full": alike(
        lambda n: {"tolerations": [f"key-{n}"], "node_terms": (NodeSelectorTerm((lacks(n),)),)},
        POLITE,
        FIT,
        own=True,
        places=1,
    ),
    "each prefers nodes by a condition of its own": alike(
        lambda n: {"preferred": (PreferredTerm(1, NodeSelectorTerm((lacks(n),))),)}, PREFERENCES, own=True
    ),
    "spread constraints of their own": alike(
        lambda n: {"labels": numbered(n), "spread": spread_over(HOST, **numbered(n))}, SPREAD
    ),
    "as many PDBs as sets of labels, with one label in common": alike(
        lambda n: {"labels": numbered(n)}, budget=lambda n: make.selector(**numbered(n))
    ),
    "each PDB asks for a key of its own to exist": alike(
        lambda n: {"labels": {f"key-{n}": ""}},
        POLITE,
        WITHOUT_PDB,
        budget=lambda n: LabelSelector((Requirement(f"key-{n}", "Exists"),)),
    ),
    "each PDB selects every pod, and each pod has labels of its own": alike(
        lambda n: {"labels": numbered(n)}, POLITE, WITHOUT_PDB, budget=lambda _: LabelSelector(())
    ),
    "the scheduler is asked about each of many replicas, and room is counted for those before it": replicas,
    "the same for pods of owners of their own that ask the same": alike(
        lambda _: {"cpu": "1m", "labels": X}, POLITE, FIT_BY_SCHEDULER, places=1000
    ),
    "the same for tenants with equal labels and rules, where there is no room": alike(
        lambda n: {
            "namespace": f"s{n}",
            "labels": X,
            "anti_affinity": apart(HOST, *is_in(**X)),
            "spread": spread_over(HOST, **X),
        },
        POLITE,
        FIT_BY_SCHEDULER,
        places=1,
        namespaces=lambda size: {f"s{each}": {} for each in range(size)},
    ),
    "the fewest of replicas that all keep apart, in one zone": alike(
        lambda _: {"node": "n00000", "owners": "o", "labels": X, "anti_affinity": apart(ZONE, *is_in(**X))}, FEWEST
    ),
    "many taints and tolerations": taints_and_tolerations,
    "duplicates with many owners and images": owners_and_images,
}


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


def work_of(shape: str, size: int) -> int:
    on, strategy, evictor = SHAPES[shape](size)
    return work(lambda: make.decide(on, strategy, evictor=evictor))


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_objects_are_about_twice_the_work(shape: str) -> None:
    """Of the differences, so that what is done once for any cluster does not hide growth."""
    work_of(shape, 2)  # what is imported on the way is not counted
    few, some, many = (work_of(shape, FEW * size) for size in (1, 2, 4))

    assert many - some <= MOST_GROWTH * (some - few)


def test_twice_the_pools_are_about_twice_the_work_of_steering() -> None:
    """A label may have a value for each node."""
    within = {**measured.RELIEF, "pools": {"label": ZONE}}

    def work_of_pools(size: int) -> int:
        nodes = [measured.node(f"n{each}", labels={ZONE: f"z{each // 2}"}) for each in range(2 * size)]
        pods = [measured.pod(f"{node.name}-{each}", node.name) for node in nodes for each in range(10)]
        on = measured.cluster(nodes, pods, {pod.name: 4 for pod in pods})
        strategy = measured.low(40, 50, metricsUtilization=within)
        return work(lambda: make.decide(on, strategy, steer=Steer(1.5, measured.KEYS)))

    work_of_pools(2)
    few, some, many = (work_of_pools(10 * size) for size in (1, 2, 4))

    assert many - some <= MOST_GROWTH * (some - few)
