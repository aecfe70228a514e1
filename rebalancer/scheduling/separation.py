"""Required anti-affinity as rules: which pods a pod wants to be apart from, and within which topology domain.

Terms are read as the scheduler reads them: `namespaces` and `namespaceSelector` add up, `matchLabelKeys` and
`mismatchLabelKeys` narrow the selector by the pod's own labels.  Source: the Kubernetes documentation, Assigning Pods
to Nodes.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from rebalancer.cluster.selectors import Labels, LabelSelector, Requirement


class SeparationRule(NamedTuple):
    """A term as it applies to one pod; replicas have equal rules."""

    topology_key: str
    selector: LabelSelector
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None

    def covers(self, namespace: str, known: Mapping[str, Labels] | None, *, in_doubt: bool = False) -> bool:
        """Return whether the rule is about pods of a namespace.

        Args:
            namespace: its name.
            known: the labels of namespaces; if those of this one are unknown, only the empty selector matches.
            in_doubt: what other selectors count as then.
        """
        if namespace in self.namespaces:
            return True
        if self.namespace_selector is None:
            return False
        labels = (known or {}).get(namespace)
        return (in_doubt or not self.namespace_selector) if labels is None else self.namespace_selector.matches(labels)


class Domain(NamedTuple):
    """A topology domain: the value of the label, or the node's name where the node lacks the label."""

    labelled: bool
    value: str


def rules_of(pod: Pod) -> Iterator[SeparationRule]:
    """Yield the rules that a pod declares; a term without a selector applies to nothing."""
    for term in pod.spec.anti_affinity:
        if term.selector is not None:
            yield _rule(term, term.selector, pod)


def domain_of(node: Node, topology_key: str) -> Domain:
    """Return the domain of a node; one without the label is a domain of its own."""
    value = node.labels.get(topology_key)
    return Domain(False, node.name) if value is None else Domain(True, value)


def _rule(term: PodAffinityTerm, selector: LabelSelector, pod: Pod) -> SeparationRule:
    own = () if term.namespaces or term.namespace_selector is not None else (pod.namespace,)
    return SeparationRule(
        term.topology_key, _narrowed(selector, term, pod.labels), term.namespaces or own, term.namespace_selector
    )


def _narrowed(selector: LabelSelector, term: PodAffinityTerm, labels: Labels) -> LabelSelector:
    keys = [("In", key) for key in term.match_label_keys] + [("NotIn", key) for key in term.mismatch_label_keys]
    extra = [Requirement(key, operator, (labels[key],)) for operator, key in keys if key in labels]
    return LabelSelector(tuple(sorted((*selector.requirements, *extra)))) if extra else selector
