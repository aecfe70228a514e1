"""DefaultEvictor: which pods a profile lets go, and whether they have somewhere to go."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import parse_selector_text
from rebalancer.engine.protections import absolute, configured
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.verdict import Refused, refused
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.scheduling.eligibility import EligibleNodes, Obstacles


class Evictor:
    """The filters of one profile on one cluster; each answer is None, or the refusal with its first cause.

    `only` has the UIDs of the pods that may go, as a plan names them, or is None for any; `restarted` returns whether a
    pod goes by a rollout, which leaves its owner as many pods as it had.  Raises UsageError if the arguments name a
    PriorityClass that the cluster does not have.
    """

    def __init__(
        self,
        cluster: Cluster,
        args: DefaultEvictorArgs,
        only: Collection[str] | None = None,
        restarted: Callable[[Pod], object] = lambda _: False,
    ) -> None:
        self._cluster = cluster
        self._restarted = restarted
        self.args = args
        self._protected: dict[Pod, Refused | None] = {}  # pods never change, so each is asked about once
        self._only = only
        self._absolute = tuple(absolute(cluster))
        self._all = (*self._absolute, *configured(args, cluster))
        selector = parse_selector_text(args.node_selector)
        self._destinations = tuple(node for node in cluster.ready_nodes if selector.matches(node.labels))
        self._others = cluster.index(EligibleNodes).among(self._destinations)
        self._obstacles = Obstacles(cluster, self._destinations)

    @property
    def notices(self) -> Sequence[str]:
        """What the scheduler's answers assume, in words; nothing where it is not asked."""
        if not self.args.asks_scheduler:
            return ()
        from rebalancer.scheduling.simulation import Simulation  # noqa: PLC0415  a kube-scheduler: only where asked

        return self._cluster.index(Simulation).notices

    @property
    def protections(self) -> tuple[str, ...]:
        """The names of the protections that are in force."""
        return tuple(str(each.code) for each in self._all)

    def protection(self, pod: Pod) -> Refused | None:
        """Return which protection covers the pod; the annotation `evict` lifts all but the absolute ones."""
        try:
            return self._protected[pod]
        except KeyError:
            found = self._protected[pod] = next(self._protecting(pod), None)
            return found

    def not_planned(self, pod: Pod) -> Refused | None:
        """Return a refusal if a plan is applied that does not name the pod.

        Not a protection: strategies count which pods are evictable, and are to decide as they did for the plan.
        """
        return refused(Code.NOT_PLANNED) if self._only is not None and pod.uid not in self._only else None

    def too_few_replicas(self, pod: Pod) -> Refused | None:
        """Return a refusal if the pod's one owner has fewer pods left than minReplicas, as in the descheduler."""
        minimum = self.args.min_replicas
        if minimum <= 1 or pod.evict_annotation or len(pod.owners) != 1:
            return None
        count = self._cluster.siblings(pod.owners[0].uid)
        if count >= minimum or self._restarted(pod):
            return None
        return refused(Code.MIN_REPLICAS, pods=count, minimum=minimum)

    def without_destination(self, pod: Pod) -> Refused | None:
        """Return a refusal if nodeFit is on and no other node takes the pod, or its namespace is not selected."""
        return self._fits_nowhere(pod) or self._namespace_not_selected(pod)

    def without_certain_room(self, pod: Pod) -> Refused | None:
        """Return a refusal if `nodeFit: scheduler` is on and the replacement may find no node, as things are now."""
        if not self.args.asks_scheduler:
            return None
        from rebalancer.scheduling.certain_room import CertainRoom  # noqa: PLC0415  as above

        doubt = self._cluster.index(CertainRoom).doubt(pod)
        return refused(Code.NODE_FIT, **doubt) if doubt else None

    def causes(self, pod: Pod) -> tuple[Cause, ...]:
        """Return all causes for which the pod may not go, in the order in which they are checked; the first counts."""
        others = (ask(pod) for ask in (self._fits_nowhere, self._namespace_not_selected, self.too_few_replicas))
        return tuple(each.cause for each in (*self._protecting(pod), *others) if each)

    def _protecting(self, pod: Pod) -> Iterator[Refused]:
        protections = self._absolute if pod.evict_annotation else self._all
        for protection in protections:
            if found := protection.reason(pod):
                yield refused(protection.code, **(found if isinstance(found, Mapping) else {}))

    def _fits_nowhere(self, pod: Pod) -> Refused | None:
        if self.args.asks_scheduler:
            return self.without_certain_room(pod)
        if not self.args.node_fit or self._others.any_for(pod):
            return None
        return refused(Code.NODE_FIT, **self._obstacles.of(pod))

    def _namespace_not_selected(self, pod: Pod) -> Refused | None:
        selector = self.args.namespace_label_selector
        if not selector:
            return None
        labels = (self._cluster.snapshot.namespaces or {}).get(pod.namespace)
        if labels is None:
            return refused(Code.NAMESPACE_LABEL_SELECTOR, namespace=pod.namespace, known=False)
        if selector.matches(labels):
            return None
        return refused(Code.NAMESPACE_LABEL_SELECTOR, namespace=pod.namespace)
