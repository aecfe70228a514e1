"""The cluster as the scheduler counts it: what is requested on each node, and which pods run where.

As pods come and go, everything that depends on them is updated at once, or when it is next asked for.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import ASSUMED, HostPort, Pod, PodSpec
from rebalancer.cluster.resources import CPU, MEMORY, PODS, Resources
from rebalancer.cluster.scheduler_inputs import NOTHING_READ, SchedulerInputs
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.equivalence import BySpec, Demands, EquivalentNodes
from rebalancer.scheduling.simulator.plugin import ByNode, Mask, Nodes
from rebalancer.scheduling.simulator.sampling import Order, orders
from rebalancer.scheduling.simulator.tally import Counts, RuleBook, Tallies

T = TypeVar("T")
S = TypeVar("S", bound=np.generic)

#: The newest version of Kubernetes whose rules are known; some rules of the scheduler depend on it.
NEWEST_MINOR = 36

_KUBERNETES = re.compile(r"v?1\.(\d+)\b")
HOSTNAME = "kubernetes.io/hostname"
_SIDECAR_PORTS = 34
_SIDECARS_ASSUMED = 32  # before, they are left out of what is assumed
#: Larger amounts count as this much: 2**50 bytes are a million gigabytes.  So sums and percentages stay within 64 bits.
_MOST = 1 << 50


class LabelDomains(NamedTuple):
    """The domains of a label."""

    numbers: Mapping[str | None, int]  # by value; None, for nodes without the label, is among them if there are any
    of_node: NDArray[np.intp]  # the number of the value that a node has, by its index
    lacking: Mask  # whether a node lacks the label, by its index; as a rule none does


class State:
    """Nodes by index, in the order of their names."""

    def __init__(
        self, snapshot: Snapshot, scheduler_inputs: SchedulerInputs = NOTHING_READ, minor: int = NEWEST_MINOR
    ) -> None:
        self.minor = minor  # the scheduler's version, 1.`minor`
        self.nodes = sorted(snapshot.nodes, key=lambda node: node.name)
        self.names = [node.name for node in self.nodes]
        self.index = {name: index for index, name in enumerate(self.names)}
        self.everywhere = Nodes(np.arange(len(self.nodes)))  # all of them, as indexes
        self.alike = EquivalentNodes(self.nodes)  # the same nodes, grouped by what a pod may ask of them
        self.demands = Demands()  # what the pods ask of nodes, numbered
        self.requested = BySpec(_requested)  # by spec, what is equal for pods that request the same
        self.namespaces = snapshot.namespaces  # labels by namespace, None where they were not read
        self.scheduler_inputs = scheduler_inputs
        namespaces = dict(snapshot.namespaces or {})
        self.tallies = Tallies(namespaces)
        self.rules = RuleBook(namespaces)
        self._domains: dict[str | None, LabelDomains] = {}
        self._nothing = self._zeros()
        self.offered = _columns(self.nodes)  # by resource, what can be requested of each node
        self.taken: dict[str, ByNode] = {name: self._zeros() for name in (CPU, MEMORY, PODS)}  # by pods
        self.assumed: dict[str, ByNode] = {name: self._zeros() for name in ASSUMED}  # see `assumed_of`
        self.residents: list[set[Pod]] = [set() for _ in self.nodes]  # by index, the pods that take room
        self.priorities: Counter[int] = Counter()  # how many pods of each take room; 0 where a pod has none
        self.changes: list[int] = []  # nodes that pods came to or left, in order, for caches to catch up
        self.nominated: dict[int, list[Pod]] = {}  # by index, pods nominated for the node that have none yet
        self.claims_on: Counts[int, tuple[str, str]] = Counts()  # by index, how many pods there have each claim
        self.claimants: Counter[tuple[str, str]] = Counter()  # the same by claim, for all nodes
        self.ports_on: Counts[int, HostPort] = Counts()  # by index, how many pods there take each port
        self.soft_taints: Mapping[int, Sequence[Taint]] = {}  # by index, assumed besides those that were read
        self._of_nodes: dict[object, Any] = {}  # copies share it
        self._owned: set[int] | None = None  # None for all nodes
        self._amounts = BySpec(self._amounts_of)
        for pod in snapshot.pods:
            self._take_in(pod)

    def copy(self) -> "State":
        """Return the cluster as it is now, to follow it elsewhere.

        What is counted by node, owner or rule is copied when one of the two changes, so a copy costs little.
        """
        new = copy(self)
        self._owned = set()
        new._owned = set()  # noqa: SLF001  of its class
        new.tallies, new.rules = self.tallies.copy(), self.rules.copy()
        new.taken = {name: each.copy() for name, each in self.taken.items()}
        new.assumed = {name: each.copy() for name, each in self.assumed.items()}
        new._amounts = BySpec(new._amounts_of)  # noqa: SLF001  of its class
        new.residents, new.claims_on, new.ports_on = [*self.residents], self.claims_on.copy(), self.ports_on.copy()
        new.priorities, new.claimants, new.changes = self.priorities.copy(), self.claimants.copy(), []
        return new

    def _own(self, node: int) -> None:
        """Make the residents of a node this state's own, to change them."""
        if self._owned is not None and node not in self._owned:
            self._owned.add(node)
            self.residents[node] = self.residents[node].copy()

    def _zeros(self) -> ByNode:
        return np.zeros(len(self.nodes), dtype=np.int64)

    def _take_in(self, pod: Pod) -> None:
        if pod.active and pod.node in self.index:
            self.place(pod, pod.node)
        elif pod.active and not pod.node and pod.nominated_node in self.index:
            self.nominated.setdefault(self.index[pod.nominated_node], []).append(pod)

    @property
    def orders(self) -> Sequence[Order]:
        """The orders in which the scheduler may go through the nodes (see `sampling.orders`)."""
        return self.of_nodes(orders)

    def of_nodes(self, make: Callable[[Sequence[Node]], T]) -> T:
        """Return what is made of the nodes as they were read: once for the cluster and its copies."""
        if make not in self._of_nodes:
            self._of_nodes[make] = make(self.nodes)
        found: T = self._of_nodes[make]
        return found

    def room(self, name: str) -> tuple[ByNode, ByNode]:
        """Return what is offered of a resource and what is taken, by index of the node."""
        return self.offered.get(name, self._nothing), self.taken.get(name, self._nothing)

    def domains(self, topology_key: str) -> LabelDomains:
        """Return the domains of a label; for all that no node has, of which pods may name any number, the same ones."""
        key = topology_key if topology_key in self.alike.labels else None
        known = self._domains.get(key)
        if known is None:
            values = [node.labels.get(topology_key) for node in self.nodes]
            numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
            of_node = np.array([numbers[value] for value in values], dtype=np.intp)
            known = self._domains[key] = LabelDomains(numbers, of_node, of_node == numbers.get(None, -1))
        return known

    def by_domain(self, topology_key: str, by_node: Mapping[int, int], counting: Mask) -> ByNode:
        """Return what is counted by index of the node, summed up by number of the domain; on the counting nodes."""
        numbers, of_node, _ = self.domains(topology_key)
        nodes = np.fromiter(by_node, np.intp, len(by_node))
        counts = np.fromiter(by_node.values(), np.int64, len(by_node)) * counting[nodes]
        return np.bincount(of_node[nodes], counts, len(numbers)).astype(np.int64)

    def place(self, pod: Pod, name: str) -> None:
        """Add a pod to a node, whatever the pod's own `node` field says."""
        node = self.index[name]
        self._own(node)
        self.residents[node].add(pod)
        self._count(pod, node, 1)

    def remove(self, pod: Pod, name: str) -> None:
        """Remove a pod from a node."""
        node = self.index[name]
        self._own(node)
        self.residents[node].remove(pod)
        self._count(pod, node, -1)

    def exchange(self, name: str, goes: Pod | None, comes: Pod | None) -> None:
        """Let a pod go, come, or turn into itself as it terminates; do nothing on a node that was not read.

        One that turns into itself takes what it took, so nothing that follows `changes` has to look at the node again.
        Each question about a replacement swaps the old pod twice; spreading alone sees the difference.
        """
        if goes is comes or name not in self.index:
            return
        if not goes or not comes:
            if goes:
                self.remove(goes, name)
            if comes:
                self.place(comes, name)
            return
        node = self.index[name]
        self._own(node)
        self.residents[node].remove(goes)
        self.residents[node].add(comes)
        if goes.terminating is not comes.terminating:
            self.tallies.mark(self.tallies.group(comes.namespace, comes.labels), node, leaving=comes.terminating)

    def _count(self, pod: Pod, node: int, sign: int) -> None:
        for column, amount in self._amounts.of(pod.spec):
            column[node] += sign * amount
        group = self.tallies.group(pod.namespace, pod.labels)
        self.tallies.count(group, node, sign, leaving=pod.terminating)
        self.rules.count(pod, node, sign)
        self.changes.append(node)
        self.priorities[pod.spec.priority or 0] += sign
        for name in claim_names(pod) if pod.claims or pod.own_claims else ():
            self.claims_on.add(node, (pod.namespace, name), sign)
            self.claimants[pod.namespace, name] += sign
        for port in self.ports_of(pod):
            self.ports_on.add(node, port, sign)

    def ports_of(self, pod: Pod) -> Sequence[HostPort]:
        """Return the ports of its node that a pod takes."""
        placement = pod.spec.placement
        return placement.host_ports + (placement.sidecar_ports if self.minor >= _SIDECAR_PORTS else ())

    def _amounts_of(self, spec: PodSpec) -> Sequence[tuple[ByNode, int]]:
        for name in spec.requests.keys() - self.taken.keys():
            self.taken[name] = self._zeros()
        older = spec.placement.assumed_without_sidecars if self.minor < _SIDECARS_ASSUMED else None
        found = [(self.taken[name], counted(amount)) for name, amount in ((PODS, 1), *spec.requests.items())]
        return found + [(self.assumed[name], counted(each)) for name, each in (older or assumed_of(spec)).items()]


def claim_names(pod: Pod) -> tuple[str, ...]:
    """Return the names of all claims of a pod, in its namespace."""
    return (*pod.claims, *pod.own_claims)


def counted(amount: int) -> int:
    """Return an amount of a resource as it counts in columns."""
    return min(amount, _MOST)


def _requested(spec: PodSpec) -> object:
    return frozenset(spec.requests.items()), frozenset(scored_of(spec).items())


def assumed_of(spec: PodSpec) -> Resources:
    """Return the requests of cpu and memory, with what the scheduler assumes for containers without them."""
    requests = spec.requests if spec.placement.assumed is None else spec.placement.assumed
    return {name: requests.get(name, ASSUMED[name]) for name in ASSUMED}


def scored_of(spec: PodSpec) -> Resources:
    """Return the same as it counts for the pod that is being placed: without requests at pod level.

    Source: observed with the scheduler of 1.36: it counts pod-level requests of running pods, but not of the pod it
    places.
    """
    requests = spec.placement.assumed_of_containers
    return assumed_of(spec) if requests is None else {name: requests.get(name, ASSUMED[name]) for name in ASSUMED}


def _columns(nodes: Sequence[Node]) -> dict[str, ByNode]:
    names = {CPU, MEMORY, PODS, *(name for node in nodes for name in node.allocatable)}
    return {
        name: np.array([counted(node.allocatable.get(name, 0)) for node in nodes], dtype=np.int64)
        for name in sorted(names)
    }


def newest_minor(nodes: Iterable[Node]) -> int:
    """Return the minor version (1.x) of the newest kubelet; the newest version known if no kubelet reports one.

    Kubelets may lag behind the scheduler, but are never ahead of the API server.
    """
    versions = (_KUBERNETES.match(node.kubelet_version) for node in nodes)
    return max((int(version[1]) for version in versions if version), default=NEWEST_MINOR)


class Shapes(Generic[S]):
    """Answers to one question that depends only on the node and the shape of the pod: by default what it requests."""

    def __init__(
        self,
        state: State,
        ask: Callable[[Pod, Nodes], NDArray[S]],
        shape: Callable[[Pod], object] | None = None,
    ) -> None:
        self._state = state
        self._ask = ask
        self._shape = shape or (lambda pod: state.requested.of(pod.spec))
        self._known: dict[object, tuple[NDArray[S], int]] = {}  # and how many changes of the state they reflect

    def by_node(self, pod: Pod) -> NDArray[S]:
        """Return the answers for a pod, by index of the node; they follow the cluster, so others must not keep them."""
        key, changes = self._shape(pod), self._state.changes
        answers, seen = self._known.get(key, (None, 0))
        if answers is None:
            answers = self._ask(pod, self._state.everywhere)
        elif seen < len(changes):
            changed = Nodes(sorted(set(changes[seen:])))
            answers[changed.indexes] = self._ask(pod, changed)
        else:
            return answers
        self._known[key] = answers, len(changes)
        return answers

    def of(self, pod: Pod, nodes: Nodes) -> NDArray[S]:
        """Return the answers for a pod and some nodes, in their order, as they are now."""
        return self.by_node(pod).take(nodes.indexes)
