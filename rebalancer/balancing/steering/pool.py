"""The pods that may go, node by node, before their eviction is asked for."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from rebalancer.balancing.candidates import Candidate, Selection
from rebalancer.balancing.cause_details import why_relieved
from rebalancer.balancing.steering.fullness import Fullness
from rebalancer.balancing.utilization import Percentages
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod


class Pool:
    """Candidates by node; those of a node are looked up when they are first needed.

    On nodes above the targets, pods that stay are recorded with the reason.  Each node loses `limit` pods at most.
    """

    def __init__(self, selection: Selection, fullness: Fullness, targets: Percentages, limit: int | None) -> None:
        self._selection = selection
        self._fullness = fullness
        self._targets = targets
        self._limit = limit
        self._known: dict[str, list[tuple[int, Candidate]]] = {}
        self._lost = Counter[str]()
        self._gone: defaultdict[str, set[Pod]] = defaultdict(set)  # or excluded
        self._present: dict[str, tuple[AbstractSet[Pod], list[Candidate]]] = {}
        selection.cluster.follow(self)

    def on(self, nodes: Iterable[str]) -> list[Candidate]:
        """Return the candidates of nodes; of pods that are all alike on one node, only the oldest."""
        return [candidate for name in nodes for candidate in self.on_node(name)]

    def on_node(self, name: str) -> list[Candidate]:
        """Return the same for one node; the same list until something changes there."""
        if self._limit is not None and self._lost[name] >= self._limit:
            return []
        gone = self._gone[name]
        before, present = self._present.get(name, (None, []))
        if before != gone:
            oldest: dict[int, Candidate] = {}
            for alike, candidate in self._on(name):
                if candidate.pod not in gone:
                    oldest.setdefault(alike, candidate)
            present = list(oldest.values())
            self._present[name] = frozenset(gone), present
        return present

    def exclude(self, pod: Pod) -> None:
        """Offer this pod no more."""
        self._gone[pod.node].add(pod)

    def left(self, pod: Pod, sign: int) -> None:
        """Note that a pod has gone, or is back: many are tried, and then are back."""
        (self._gone[pod.node].add if sign > 0 else self._gone[pod.node].discard)(pod)

    def came(self, _pod: Pod, _node: Node, _sign: int) -> None:
        """Do nothing: a replacement is no candidate."""

    def lost(self, pod: Pod) -> None:
        """Count a pod that goes towards the limit of its node."""
        self._lost[pod.node] += 1

    def _on(self, name: str) -> list[tuple[int, Candidate]]:
        """Return the candidates of a node, each with what is the same for pods that are all alike."""
        known = self._known.get(name)
        if known is None:
            source = self._fullness.sources[name]
            is_over = bool(source.above(self._targets).points)
            because = why_relieved(source, self._targets, filling=False) if is_over else None
            groups = self._selection.groups(source, because)
            shapes: dict[object, int] = {}
            known = self._known[name] = [
                (shapes.setdefault(_shape(each), len(shapes)), each) for group in groups for each in group
            ]
        return known


def _shape(candidate: Candidate) -> object:
    owner = candidate.pod.controller
    return (owner.uid if owner else candidate.pod.key, tuple(candidate.usage.items()), id(candidate.pod.spec))
