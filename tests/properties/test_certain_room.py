"""What may go by `nodeFit: scheduler` finds a node, in whatever order pods come and go and wherever they land."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import PLAIN, HostPort, Placement, Pod
from rebalancer.scheduling.certain_room import CertainRoom
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.replacement import Moment
from tests import make
from tests.attack.seeds import examples
from tests.models.kube_scheduler import Kube
from tests.properties.scheduled_clusters import NAMESPACES, nodes, pods
from tests.properties.test_simulated_scheduler import READ, SERVICES

DISKS = st.sampled_from(("ssd", "ssd", "hdd"))
SIZES = st.fixed_dictionaries({"cpu": st.sampled_from(("1", "1500m", "2")), "pods": st.sampled_from((2, 4, 110))})
WITH_PORT = Placement(host_ports=(HostPort(80),), assumed={"cpu": 300})
OWNERS = tuple((make.owner(name, kind),) for name in ("one", "two") for kind in ("ReplicaSet", "StatefulSet", "Job"))
#: Whether the replacement comes when the old pod is gone: all that a controller of this kind may do.
WAITS = {"ReplicaSet": (False,), "StatefulSet": (True,), "Job": (False, True)}


class Aftermath:
    """What may happen once pods were evicted, told by the slow scheduler."""

    def __init__(self, slow: Kube, data: st.DataObject) -> None:
        self._slow = slow
        self._data = data
        self._ending: list[Pod] = []
        self._coming: list[tuple[Pod, Pod | None]] = []

    def evict(self, old: Pod, comes: Pod, moments: tuple[Moment, ...]) -> None:
        """Let a pod terminate; what comes for it may wait until it is gone."""
        ending = msgspec.structs.replace(old, terminating=True)
        self._slow.pods[self._slow.pods.index(old)] = ending
        self._ending.append(ending)
        moment = self._data.draw(st.sampled_from(moments))
        self._coming.append((comes, ending if moment is Moment.AFTERWARDS else None))

    def play(self) -> Pod | None:
        """Let pods end and come in any order, each on any node that is feasible then; return one that finds none."""
        while self._coming:
            ready = [each for each in self._coming if each[1] not in self._ending]
            if not ready or (self._ending and self._data.draw(st.booleans())):
                gone = self._data.draw(st.sampled_from(self._ending))
                self._ending.remove(gone)
                self._slow.pods.remove(gone)
                continue
            chosen = self._data.draw(st.sampled_from(ready))
            self._coming.remove(chosen)
            feasible = sorted(node.name for node in self._slow.feasible(chosen[0]))
            if not feasible:
                return chosen[0]
            home = self._data.draw(st.sampled_from(feasible))
            self._slow.pods.append(msgspec.structs.replace(chosen[0], node=home))
        return None


def play(cluster: Cluster, crowd: list[Pod], data: st.DataObject) -> Pod | None:
    """Evict pods one after the other if they may go; then let anything happen, and return a pod that finds no node."""
    services = [(namespace, selector) for (namespace, _), selector in SERVICES.items() if selector]
    after = Aftermath(Kube(list(cluster.snapshot.nodes), list(crowd), NAMESPACES, services), data)
    for pod in data.draw(st.permutations(crowd)):
        if not cluster.index(CertainRoom).doubt(pod):
            made = cluster.index(Simulation).replacement(pod)
            assert made.pod
            after.evict(pod, made.pod, made.moments)
            cluster.evicted(pod)
    return after.play()


@examples(15)
@given(st.data())
def test_all_replacements_find_a_node(data: Any) -> None:
    places = [data.draw(nodes(index)) for index in range(data.draw(st.integers(2, 5)))]
    names = st.sampled_from([place.name for place in places])
    drawn = [
        data.draw(pods(f"p{number}", node=data.draw(names), owners=data.draw(st.sampled_from(OWNERS))))
        for number in range(data.draw(st.integers(2, 6)))
    ]
    crowd = [msgspec.structs.replace(each, terminating=False) for each in drawn]
    cluster = make.cluster(places, crowd, namespaces=NAMESPACES, scheduler_inputs=READ)

    assert play(cluster, crowd, data) is None


@examples(50)
@given(st.data())
def test_no_order_and_no_landing_strands_a_replacement(data: Any) -> None:
    """Where there is little room: all of them are tried; nodes of a few cores and slots, a port, a disk to be near."""
    places = [make.node(f"n{index}", labels={"disk": data.draw(DISKS)}, **data.draw(SIZES)) for index in range(3)]
    crowd = [
        make.pod(
            f"p{number}",
            node=data.draw(st.sampled_from(("n0", "n1", "n2"))),
            namespace="blue",
            cpu=data.draw(st.sampled_from(("300m", "500m", "1"))),
            owners=data.draw(st.sampled_from(OWNERS)),
            placement=data.draw(st.sampled_from((PLAIN, PLAIN, WITH_PORT))),
            node_selector=data.draw(st.sampled_from((None, None, {"disk": "ssd"}))),
        )
        for number in range(data.draw(st.integers(2, 5)))
    ]
    cluster = make.cluster(places, crowd, namespaces=NAMESPACES, scheduler_inputs=READ)
    went = []
    for pod in crowd:
        if not cluster.index(CertainRoom).doubt(pod):
            cluster.evicted(pod)
            went.append(pod)

    assert not stranded(places, [(pod, pod.node) for pod in crowd], went)


def stranded(places: list[Node], there: list[tuple[Pod, str]], coming: list[Pod]) -> list[Pod]:
    """Return pods whose replacement finds no node in some order, with some placements; pods that go stay for long."""
    turns = [(pod, waits) for pod in coming for waits in WAITS[pod.owners[0].kind]]
    for pod, waits in turns:
        others = [each for each in there if not (waits and each == (pod, pod.node))]
        homes = [place.name for place in places if takes(place, [each for each, on in others if on == place.name], pod)]
        if not homes:
            return [pod]
        rest = [each for each in coming if each is not pod]
        for home in homes:
            if found := stranded(places, [*others, (pod, home)], rest):
                return found
    return []


def takes(place: Node, there: list[Pod], pod: Pod) -> bool:
    selector = pod.spec.node_selector or {}
    return (
        sum(each.spec.requests["cpu"] for each in (*there, pod)) <= place.allocatable["cpu"]
        and len(there) < place.allocatable["pods"]
        and not (pod.spec.placement is WITH_PORT and any(each.spec.placement is WITH_PORT for each in there))
        and all(place.labels.get(key) == value for key, value in selector.items())
    )
