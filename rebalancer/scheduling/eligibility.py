"""Which nodes could take a pod: the one answer for strategies, nodeFit and relief.

Constraints that do not depend on other pods are checked once for each group of equal constraints.  Anti-affinity and
room are checked against the present state of the cluster: without the pods that went, with those that are expected.
"""

from collections.abc import Sequence
from functools import cached_property

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.eviction.causes import Cause
from rebalancer.scheduling.constraints import ConstraintGroups
from rebalancer.scheduling.fit import why_repelled, why_too_full
from rebalancer.scheduling.repellers import Repellers

_ENOUGH = 2


class EligibleNodes:
    """Answers for one cluster.  There is one per cluster: get it with `cluster.index(EligibleNodes)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._groups = ConstraintGroups(cluster.nodes)
        self._steps = 0
        self._emptied: dict[str, int] = {}
        self._filled: dict[str, int] = {}

    def by_constraints(self, spec: PodSpec) -> frozenset[str]:
        """Return the nodes whose hard taints the spec tolerates and that its selector and required affinity match.

        Cordoned and full nodes are included.
        """
        return self._groups.of(spec).names

    def why_not(self, pod: Pod, node: Node) -> Cause | None:
        """Return why the pod could not run on the node, None if it could (see `rebalancer.scheduling.fit`)."""
        reason = self._groups.of(pod.spec).why_not(node)
        if not reason and self._is_repelled(pod, node):
            reason = why_repelled(pod, node, self._cluster.residents(node))
        if reason or node.name == pod.node:
            return reason
        return why_too_full(pod.spec, self._cluster.free(node))

    def _is_repelled(self, pod: Pod, node: Node) -> bool:
        return bool(pod.spec.anti_affinity and self._cluster.index(Repellers).on(pod, node))

    def fits(self, pod: Pod, node: Node) -> bool:
        """Return whether the pod could run on the node."""
        if self._is_repelled(pod, node):
            return False
        return self._has_room(pod.spec, node) if node.name != pod.node else not self._groups.of(pod.spec).why_not(node)

    def takes_more(self, pod: Pod, node: Node) -> bool:
        """Return whether one more pod of the same template could run on the node."""
        return self._has_room(pod.spec, node) and not self._is_repelled(pod, node)

    def _has_room(self, spec: PodSpec, node: Node) -> bool:
        return not self._groups.of(spec).why_not(node) and not why_too_full(spec, self._cluster.free(node))

    def has_namesake(self, pod: Pod) -> bool:
        """Return whether what keeps others of its template from a node may not keep this pod: one of its own name."""
        return bool(pod.spec.anti_affinity) and self._cluster.index(Repellers).namesake(pod)

    def among(self, nodes: Sequence[Node]) -> "OtherNodes":
        """Return an object that finds another node for pods among these nodes."""
        return OtherNodes(self, nodes)

    @property
    def steps(self) -> int:
        """How many changes of the cluster there were so far."""
        return self._steps

    def has_filled(self, name: str, since: int) -> bool:
        """Return whether a node got less room after so many changes."""
        return self._filled.get(name, 0) > since

    def emptied(self, since: int) -> list[tuple[int, str]]:
        """Return the nodes that got more room after so many changes, each once: the number of the change, the name."""
        found = []
        for name, step in reversed(self._emptied.items()):
            if step <= since:
                break
            found.append((step, name))
        return found[::-1]

    def left(self, pod: Pod, sign: int) -> None:
        """Note that a node has more room, or less again."""
        self._note(pod.node, self._emptied if sign > 0 else self._filled)

    def came(self, pod: Pod, node: Node, sign: int) -> None:  # noqa: ARG002  the interface
        """Note that a node has less room, or more again."""
        self._note(node.name, self._filled if sign > 0 else self._emptied)

    def _note(self, name: str, nodes: dict[str, int]) -> None:
        self._steps += 1
        nodes.pop(name, None)  # the latest change stands last
        nodes[name] = self._steps


class _Search:
    """The state of the search for the pods of one spec and namespace.

    Attributes:
        found: up to two nodes that take it; two, since one of them may be the pod's own.
        asked: how many nodes of the list were checked so far.
        filled: after how many changes of the cluster the nodes found were last checked.
        emptied: after how many changes nodes with more room were last checked.
    """

    __slots__ = ("asked", "emptied", "filled", "found")

    def __init__(self, steps: int) -> None:
        self.found: list[str] = []
        self.asked = 0
        self.filled = self.emptied = steps

    def other_than(self, name: str) -> str:
        """Return the first node found that is not the one of this name, empty if there is none."""
        return next((each for each in self.found if each != name), "")


class OtherNodes:
    """Finds another node for a pod; asking for many pods costs little.

    Pods of one template have the same answer, so for each spec the first two nodes that take it are remembered.  A
    change of the cluster concerns one node.  A node with less room is checked again if it is one of the two; a node
    with more room is checked if fewer than two are known, once however often it has changed.

    For example, with a hundred replicas and a thousand nodes of which only the last two have room, the first replica
    checks a thousand nodes and the others none; once one of the two is full, the next replica checks that node again.
    """

    def __init__(self, eligible: EligibleNodes, nodes: Sequence[Node]) -> None:
        self._eligible = eligible
        self._nodes = nodes
        self._searches: dict[tuple[int, str], tuple[PodSpec, _Search]] = {}

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self._nodes}

    def any_for(self, pod: Pod) -> bool:
        """Return whether a node other than the pod's own takes it."""
        return bool(self.first_for(pod))

    def first_for(self, pod: Pod) -> str:
        """Return the name of a node other than the pod's own that takes it, empty if none does."""
        if self._eligible.has_namesake(pod):  # rare: what the template has found does not hold for this pod
            others = (node for node in self._nodes if node.name != pod.node)
            return next((node.name for node in others if self._eligible.fits(pod, node)), "")
        key = (id(pod.spec), pod.namespace if pod.spec.anti_affinity else "")  # anti-affinity goes by the namespace
        known = self._searches.get(key)
        if known is None:
            # The entry keeps the spec alive, so that no other object can get its id.
            known = self._searches[key] = (pod.spec, _Search(self._eligible.steps))
        search = known[1]
        self._forget_full(search, pod)
        return search.other_than(pod.node) or self._go_on(search, pod)

    def _forget_full(self, search: _Search, pod: Pod) -> None:
        """Forget the nodes found that are full now."""
        if search.filled == self._eligible.steps:
            return
        search.found = [
            name
            for name in search.found
            if not self._eligible.has_filled(name, search.filled) or self._eligible.takes_more(pod, self._by_name[name])
        ]
        search.filled = self._eligible.steps

    def _go_on(self, search: _Search, pod: Pod) -> str:
        for step, name in self._eligible.emptied(search.emptied) if len(search.found) < _ENOUGH else ():
            if len(search.found) == _ENOUGH:
                break
            self._ask(search, pod, self._by_name.get(name))
            search.emptied = step
        while search.asked < len(self._nodes) and len(search.found) < _ENOUGH:
            self._ask(search, pod, self._nodes[search.asked])
            search.asked += 1
        return search.other_than(pod.node)

    def _ask(self, search: _Search, pod: Pod, node: Node | None) -> None:
        if node is not None and node.name not in search.found and self._eligible.takes_more(pod, node):
            search.found.append(node.name)
