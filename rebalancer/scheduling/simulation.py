"""Where the replacements of pods would go: the simulator, applied to the cluster with its expected changes.

How long evicted pods take to end is not known, so the scheduler is asked at two points in time:

1. Soon: the evicted pods still terminate and keep their room.  Replacements that are made at once (as by a ReplicaSet)
   are there; those that wait until the old pod is gone (as by a StatefulSet) are not.  Where nobody knows whether the
   controller waits (a Job), both are asked about.
2. Later: the evicted pods are gone and all replacements are there.

The answer has the nodes of both; if one of the two has no node, that is the answer.  Example: n1 is full, and a pod of
2 cores has been evicted from it; n2 has 2 cores free.  Soon, a replacement of 2 cores fits on n2 only; later it fits on
n1 too.  If n1 scores higher then, the answer is n1 and n2.  If n2 were full as well, the answer would be: no node.

Often only nodes and pods were saved to files.  If neither Services nor controllers were read, default spreading is
taken to count the pods of the same owner.  The selector consists of the labels that all these pods have, without those
that binding adds.  As a rule the real selector matches the same pods: that of a ReplicaSet contains the hash of its
template, which no other pod carries.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import LoadsWanted, NodeLoads
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.scheduler_inputs import Key, SchedulerInputs
from rebalancer.cluster.selectors import EVERYTHING, Labels, LabelSelector
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.shared_clusters import Exchange, SharedClusters
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.configuration import read_configuration
from rebalancer.scheduling.simulator.plugin import Mask, Nodes
from rebalancer.scheduling.simulator.plugins.pod_topology_spread import SELECTING_OWNERS
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.replacement import Moment, Replacement, replacement, unbound
from rebalancer.scheduling.simulator.sampling import SamplingWindow
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State, newest_minor

#: So many names of nodes are kept in answers without scores: where thousands of nodes tie, each pod has them all.
_MOST_NAMES = 1 << 23

_SOON, _LATER, _FIRST = range(3)  # the clusters that are asked: `first` says what the last one is


class Simulation:
    """Answers for one cluster, which it follows (see `Cluster.index`).

    Raises:
        ConfigurationError: the scheduler's configuration cannot be read.
    """

    def __init__(self, cluster: Cluster) -> None:
        snapshot = cluster.snapshot
        self._cluster = cluster
        self._templates = snapshot.scheduler_inputs.templates
        # What was read besides nodes and pods, completed with what is assumed, and that in words.
        scheduler_inputs, self.notices = completed(snapshot.scheduler_inputs, snapshot.pods)
        document = snapshot.scheduler_configuration
        self._configuration = None if document is None else read_configuration(document)
        self._replacements: dict[Pod, Replacement] = {}
        self._specs: dict[tuple[int, int], tuple[PodSpec, PodSpec]] = {}
        self._stand_ins: dict[Pod, Pod] = {}
        self._ending: dict[Pod, Pod] = {}
        self._in_turn: dict[Pod, dict[tuple[int, bool], Answer]] = {}
        self._names = 0  # of nodes, in these
        self.taints: Mapping[str, Sequence[Taint]] = {}  # soft taints that are supposed at present, by node
        start = msgspec.structs.replace(snapshot, nodes=tuple(node.as_scheduled for node in snapshot.nodes))
        self._read = State(start, scheduler_inputs, newest_minor(snapshot.nodes))
        self._clusters = SharedClusters(self.as_read, 3)
        cluster.tell(self)

    def as_read(self) -> Simulator:
        """Return the cluster as it was read, and the scheduler that looks at it."""
        simulated = Simulator(self._read.copy(), lambda state: profiles(state, self._configuration, self._loads))
        simulated.suppose(self.taints)
        return simulated

    def _loads(self, wanted: LoadsWanted) -> NodeLoads:
        """Return the usage that a plugin scores by; the cluster's source is asked once."""
        loads = self._cluster.measure(wanted).loads
        assert loads is not None
        return loads

    def ask(self, pod: Pod) -> Answer:
        """Return where the replacement of a pod would go if the pod were evicted now, or was just evicted."""
        return reduce(Answer.or_else, map(Answer.anywhere, self.answers(pod)))

    def answers(self, pod: Pod) -> Iterator[Answer]:
        """Yield the answers that `ask` puts together: for each point in time, and each moment at which it may come."""
        moments = self.replacement(pod).moments
        return (self.at(pod, each, moment) for each in self.soon_and_later for moment in moments)

    def in_turn(self, pod: Pod) -> Iterator[Answer]:
        """Yield the answer for soon, then the one for later if it may differ, each worked out when it is needed.

        Where the scheduler scores a part of the nodes, an answer that names only the best of all comes first: that is
        found soon, and as a rule it decides.  Without scores, so that all pods' answers can be kept.
        """
        if self._names > _MOST_NAMES:
            self._forget()
        known, moments = self._in_turn.setdefault(pod, {}), self.replacement(pod).moments
        for number, simulated in enumerate(self.soon_and_later):
            answers: list[Answer] = []
            for anywhere in (False, True):
                if (number, anywhere) not in known:
                    answers = answers or [self.at(pod, simulated, moment) for moment in moments]
                    found = map(Answer.anywhere, answers) if anywhere else answers
                    known[number, anywhere] = reduce(Answer.or_else, found).without_scores()
                    self._names += len(known[number, anywhere].nodes)
                yield known[number, anywhere]
                if not known[number, anywhere].sampled:
                    break

    def before_others(self, pod: Pod, *, gone: bool = False) -> Answer:
        """Return where the replacement would go if it came first, before any other (see `first`).

        `gone` means that its own pod is gone by then, though its controller need not wait for it.
        """
        moment = Moment.AFTERWARDS if gone else self.replacement(pod).moments[0]
        return self.at(pod, self.first(), moment)

    def first(self) -> Simulator:
        """Return the cluster when the first replacement comes: no other is there, and evicted pods still terminate."""
        return self._clusters[_FIRST]

    def at(
        self,
        pod: Pod,
        simulated: Simulator,
        moment: Moment,
        window: SamplingWindow | None = None,
        *,
        tell: bool = False,
    ) -> Answer:
        """Return where the replacement would go in one of the simulated clusters, made at one of its moments."""
        coming, ending = self.replacement(pod), self.ending(pod)
        if coming.pod is None:
            return Answer(unknown=coming.unknown)
        there = simulated.resident(pod.node, (pod, ending))
        meanwhile = ending if moment is Moment.AT_ONCE and pod.active else None
        with simulated.exchanged(pod.node, there, meanwhile):
            return simulated.ask(coming.pod, window, tell=tell)

    def weigh(self, pod: Pod) -> list[Answer]:
        """Return what the scheduler would think of each node for the replacement of a pod that goes now, by moment."""
        return [self.at(pod, self.soon_and_later[0], moment, tell=True) for moment in self.replacement(pod).moments]

    def among(self, names: Iterable[str]) -> Mask:
        """Return for each node, by the index that answers have it by, whether it is one of these."""
        return Nodes([self._read.index[name] for name in names]).among(len(self._read.nodes))

    def names(self, indexes: Iterable[int]) -> list[str]:
        """Return the names of nodes by these indexes."""
        return [self._read.names[index] for index in indexes]

    def replacement(self, pod: Pod) -> Replacement:
        """Return what the controller of a pod would make in its place; always the same object."""
        known = self._replacements.get(pod)
        if known is None:
            known, priority = replacement(pod, self._templates), pod.spec.priority
            if known.pod and known.pod.spec.priority is None and priority is not None:  # a template names a class only
                spec = known.pod.spec
                key = (id(spec), priority)  # the value keeps the spec alive; replicas still share one
                _, ranked = self._specs.setdefault(key, (spec, msgspec.structs.replace(spec, priority=priority)))
                known = Replacement(msgspec.structs.replace(known.pod, spec=ranked), known.moments)
            self._replacements[pod] = known
        return known

    @contextmanager
    def tainted(self, taints: Mapping[str, Sequence[Taint]]) -> Iterator[None]:
        """Answer within the block as if nodes had these taints too, by name; they replace those of an outer block.

        Only soft taints (PreferNoSchedule) count.  The answers are discarded at both ends of a block, so it is cheapest
        to ask for many pods within one.
        """
        before = self.taints
        self._suppose(taints)
        try:
            yield
        finally:
            self._suppose(before)

    def _suppose(self, taints: Mapping[str, Sequence[Taint]]) -> None:
        self._forget()
        self.taints = taints
        self._clusters.suppose(taints)

    def left(self, pod: Pod, sign: int) -> None:
        """Count a pod as terminating soon and as gone later (1), or as running again (-1)."""
        if not pod.active or not pod.node:
            return
        ending = self.ending(pod)
        if sign > 0:
            self._ending[pod] = ending
        else:
            del self._ending[pod]
        ends = (pod.node, pod, ending)
        self._note(("left", pod), sign, [ends, (pod.node, pod, None), ends])

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Add the replacement of a pod to a node (1), or remove it (-1); if it is unknown, the pod stands in."""
        arrival = (node.name, None, self.coming(pod))
        soon = arrival if Moment.AT_ONCE in self.replacement(pod).moments else None
        self._note(("came", pod), sign, [soon, arrival, None])

    def _note(self, step: object, sign: int, exchanges: Sequence[Exchange]) -> None:
        self._forget()
        self._clusters.note(step, sign, exchanges)

    def _forget(self) -> None:
        self._in_turn.clear()
        self._names = 0

    @property
    def soon_and_later(self) -> tuple[Simulator, ...]:
        """The cluster soon, and, where that may differ, later."""
        soon, later = self._clusters[_SOON], self._clusters[_LATER]
        return (soon,) if later is soon else (soon, later)

    def coming(self, pod: Pod) -> Pod:
        """Return the replacement of a pod; where that is unknown a copy of the pod, which may be on the same node."""
        made = self.replacement(pod).pod or self._stand_ins.get(pod)
        if made is None:
            made = self._stand_ins[pod] = msgspec.structs.replace(pod)
        return made

    def ending(self, pod: Pod) -> Pod:
        """Return a pod as it terminates; always the same object for one that went."""
        return self._ending.get(pod) or msgspec.structs.replace(pod, terminating=True)


NO_TEMPLATES = "owners' templates were not read: a replacement is taken to be like the pod that goes"
NO_SELECTORS = "neither Services nor controllers were read: pods are taken to be spread among those of their owner"
NEITHER = (
    "neither controllers nor Services were read: a replacement is taken to be like the pod that goes, "
    "and to be spread among its owner's pods"
)


def completed(scheduler_inputs: SchedulerInputs, pods: Iterable[Pod]) -> tuple[SchedulerInputs, list[str]]:
    """Return what was read, completed with what is assumed for the rest, and notices about that for a person."""
    templates = scheduler_inputs.templates is not None
    kinds = ("services", *SELECTING_OWNERS.values())
    if any(getattr(scheduler_inputs, kind) is not None for kind in kinds):
        return scheduler_inputs, [] if templates else [NO_TEMPLATES]
    standing_in: dict[str, dict[Key, LabelSelector]] = {kind: {} for kind in kinds}
    for (kind, key), labels in _shared_labels(pods).items():
        standing_in[SELECTING_OWNERS[kind]][key] = EVERYTHING.narrowed(labels, labels)
    return msgspec.structs.replace(scheduler_inputs, **standing_in), [NO_SELECTORS if templates else NEITHER]


def _shared_labels(pods: Iterable[Pod]) -> dict[tuple[str, Key], Labels]:
    shared: dict[tuple[str, Key], Labels] = {}
    for pod in pods:
        owner = next((each for each in pod.owners if each.controller), None)
        if owner and owner.kind in SELECTING_OWNERS:
            key = owner.kind, (pod.namespace, owner.name)
            known = shared.setdefault(key, unbound(pod.labels))
            if known is not pod.labels and known != pod.labels:
                shared[key] = {name: value for name, value in known.items() if pod.labels.get(name) == value}
    return shared
