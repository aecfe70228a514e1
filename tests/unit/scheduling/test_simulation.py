"""Where replacements would go, asked of the cluster as it is."""

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import HostPort, Placement, PodSpec, SpreadConstraint
from rebalancer.cluster.scheduler_inputs import SchedulerInputs, Template
from rebalancer.scheduling.simulation import Simulation
from tests import make

WEB = {"app": "web"}
AVOID = make.taint("avoid=hot:PreferNoSchedule")


def answer(cluster: Cluster, pod):
    return cluster.index(Simulation).ask(pod)


def test_the_old_pod_still_has_its_room() -> None:
    """Each node has room for one; a ReplicaSet replaces while the old pod ends, a StatefulSet afterwards."""
    full = [make.node("n1", cpu="1"), make.node("n2", cpu="100m")]
    web = make.pod("web-1", cpu="600m")
    db = make.pod("db-0", cpu="600m", owners=(make.owner("db", "StatefulSet"),))

    assert answer(make.cluster(full, [web]), web).reason == "0/2 nodes are available: 2 Insufficient cpu."
    assert answer(make.cluster(full, [db]), db).nodes == ("n1",)


def test_a_job_may_replace_at_once_or_afterwards() -> None:
    """What it requests fits on n2 at once; afterwards n1 has more room, and may win as well."""
    nodes = [make.node("n1", cpu="2"), make.node("n2", cpu="1")]
    pod = make.pod("import-1", cpu="800m", owners=(make.owner("import", "Job"),))
    beside = make.pod("other", cpu="700m")

    cluster = make.cluster(nodes, [pod, beside])
    assert answer(cluster, pod).nodes == ("n1", "n2")
    weighed = cluster.index(Simulation).weigh(pod)
    assert [(each.feasible_nodes(), each.refused) for each in weighed] == [
        (("n2",), {"n1": ("Insufficient cpu",)}),
        (("n1", "n2"), {}),
    ]
    assert answer(make.cluster(nodes[:1], [pod, beside]), pod).reason == "0/1 nodes are available: 1 Insufficient cpu."


def test_the_old_pod_still_has_its_port() -> None:
    """Two nodes, and each has the port taken; once it is evicted as well as before."""
    nodes = [make.node("n1"), make.node("n2")]
    placement = Placement(host_ports=(HostPort(80),))
    pods = [make.pod(f"web-{number}", node=f"n{number}", placement=placement) for number in (1, 2)]
    cluster = make.cluster(nodes, pods)

    before = answer(cluster, pods[0])
    cluster.evicted(pods[0])

    assert before.reason.startswith("0/2 nodes are available: 2 node(s) didn't have free ports")
    assert answer(cluster, pods[0]) == before


def test_spreading_does_not_count_the_old_pod() -> None:
    """With a skew of 1 the replacement may come to either node; with the old pod counted it could not stay."""
    spread = (SpreadConstraint(1, "kubernetes.io/hostname", "DoNotSchedule", make.selector(app="web")),)
    pods = [make.pod(f"web-{number}", node="n1", labels=WEB, spread=spread) for number in (1, 2)]
    full = make.node("n2", cpu="50m")

    assert answer(make.cluster([make.node("n1"), full], pods[:1]), pods[0]).nodes == ("n1",)
    assert not answer(make.cluster([make.node("n1"), full], pods), pods[0]).nodes


def test_a_replacement_that_is_expected_takes_room() -> None:
    """Until the scope ends in which it was expected."""
    nodes = [make.node("n1", cpu="100m"), make.node("n2", cpu="1")]
    pods = [make.pod(f"web-{number}", cpu="600m") for number in (1, 2)]
    cluster = make.cluster(nodes, pods)

    with cluster.scope():
        cluster.evicted(pods[0])
        cluster.place(pods[0], nodes[1])
        assert not answer(cluster, pods[1]).nodes

    assert answer(cluster, pods[1]).nodes == ("n2",)


def test_the_replacement_is_made_from_the_template_that_was_read() -> None:
    """The pod was given less in place, which its replacement will not have."""
    template = Template(labels=WEB, spec=PodSpec(requests={"cpu": 3000}))
    read = SchedulerInputs(
        services={},
        replica_sets={},
        templates={("ReplicaSet", "ReplicaSet-web"): template},
    )
    pod = make.pod("web-1", cpu="100m", labels=WEB)
    nodes = [make.node("n1"), make.node("n2", cpu="1")]

    assert answer(make.cluster(nodes, [pod], scheduler_inputs=read), pod).nodes == ("n1",)
    assert Simulation(make.cluster(nodes, [pod], scheduler_inputs=read)).notices == []


@pytest.mark.parametrize(
    ("read", "told"),
    [
        pytest.param(SchedulerInputs(), "neither controllers nor Services were read", id="a file of nodes and pods"),
        pytest.param(SchedulerInputs(services={}), "owners' templates were not read", id="one with Services"),
        pytest.param(
            SchedulerInputs(templates={}), "neither Services nor controllers were read", id="one with templates"
        ),
    ],
)
def test_what_stands_in_for_what_was_not_read_is_told(read, told) -> None:
    """In one line."""
    (notice,) = Simulation(make.cluster([make.node("n1")], [], scheduler_inputs=read)).notices

    assert notice.split(":")[0] == told


def test_a_file_of_nodes_and_pods_spreads_by_owner() -> None:
    """Two of web run on n2 and two of db on n3, which are equal otherwise; labels differ within an owner."""
    nodes = [make.node(name) for name in ("n1", "n2", "n3")]
    web = [make.pod(f"web-{number}", node="n2", labels={**WEB, "index": str(number)}) for number in (0, 1)]
    db = [make.pod(f"db-{number}", node="n3", owners="db", labels={"app": "db"}) for number in (0, 1)]
    old = make.pod("web-3", node="n1", cpu="3", labels={**WEB, "index": "3"})

    assert answer(make.cluster(nodes, [*web, *db, old]), old).nodes == ("n3",)


def test_one_kind_that_was_not_read_makes_the_answer_unknown() -> None:
    """Without permission to read ReplicaSets nobody knows among which pods they are spread."""
    read = SchedulerInputs(services={}, replication_controllers={}, stateful_sets={})
    pod = make.pod("web-1")

    found = answer(make.cluster([make.node("n1")], [pod], scheduler_inputs=read), pod)

    assert found.unknown == "default spreading goes by ReplicaSets, which were not read"


@pytest.mark.parametrize(
    ("fields", "resident", "known"),
    [
        pytest.param({"priority": 10}, {}, False, id="others may have to make room"),
        pytest.param({"priority": 10}, {"priority": 10}, True, id="none is of a lower priority"),
        pytest.param({"priority": 10, "placement": Placement(preempts=False)}, {}, True, id="it waits for room"),
        pytest.param({"priority": 10, "node_selector": {"disk": "ssd"}}, {}, True, id="no node suits it anyway"),
    ],
)
def test_preemption_is_not_foreseen(fields, resident, known) -> None:
    """Of a pod that finds no room: it is told so, and whether nobody knows if others have to make some."""
    pods = [make.pod("a", cpu="3", **fields), make.pod("b", node="n2", cpu="3", **resident)]
    nodes = [make.node("n1", unschedulable=True), make.node("n2")]

    found = answer(make.cluster(nodes, pods), pods[0])

    assert (not found.unknown, bool(found.reason)) == (known, True)


def test_a_replacement_has_the_priority_of_its_pod() -> None:
    """The template has the name of a class only."""
    template = Template(labels=WEB, spec=PodSpec(requests={"cpu": 3000}, priority_class="high"))
    empty = {"services": {}, "replica_sets": {}, "replication_controllers": {}, "stateful_sets": {}}
    read = SchedulerInputs(**empty, templates={("ReplicaSet", "ReplicaSet-web"): template})
    pods = [make.pod("a", priority=10, labels=WEB), make.pod("b", node="n2", cpu="3")]

    found = answer(make.cluster([make.node("n2")], pods, scheduler_inputs=read), pods[0])

    assert "lower priority" in found.unknown


def test_soft_taints_can_be_supposed() -> None:
    """The emptier node is avoided while it carries one, unless the pod tolerates it; hard ones are not looked at."""
    nodes = [make.node("n1"), make.node("n2", cpu="8")]
    pods = [make.pod("web-1"), make.pod("web-2", tolerations=["avoid"])]
    simulation = make.cluster(nodes, pods).index(Simulation)

    with simulation.tainted({"n2": [AVOID], "gone": [AVOID]}):
        assert [simulation.ask(pod).nodes for pod in pods] == [("n1",), ("n2",)]
    with simulation.tainted({"n2": [make.taint("avoid=hot:NoSchedule")]}):
        assert simulation.ask(pods[0]).nodes == ("n2",)
    assert simulation.ask(pods[0]).nodes == ("n2",)


def test_the_taint_that_counts_is_the_one_untolerated() -> None:
    """Two taints are worse than one: of two tainted nodes the replacement comes to that with one."""
    nodes = [make.node("n1"), make.node("n2", cpu="8")]
    pod = make.pod("web-1")
    simulation = make.cluster(nodes, [pod]).index(Simulation)

    with simulation.tainted({"n1": [AVOID], "n2": [AVOID, make.taint("avoid=more:PreferNoSchedule")]}):
        found = simulation.ask(pod)

    assert found.nodes == ("n1",)
    assert {name: found.scores(name)["TaintToleration"] for name in ("n1", "n2")} == {"n1": 150, "n2": 0}
