"""What a controller makes in place of a pod that goes, and when.

Sources: the Kubernetes documentation (ReplicaSet, Deployment, StatefulSet, Jobs with `podReplacementPolicy`).  A
ReplicaSet, and so a Deployment, makes the replacement while the old pod still terminates.  The old pod's requests,
ports and affinity count until it is gone; only spreading ignores it.  A StatefulSet makes the replacement when the old
pod is gone, with the same name and claims; a Job that replaces failed pods only waits as well.  Any other Job may do it
while the old pod terminates, or later: to go counts as a failure, after which a Job waits (10 s, and longer after each
further one).

The replacement has the labels of the owner's template, without those that binding added.  Otherwise it is like the old
pod, since admission does the same to it: sidecars of a mesh, requests by limits, a LimitRange or a VPA, selectors and
tolerations of a RuntimeClass or a namespace.  A pod that was given less in place counts with its template.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import msgspec

from rebalancer.cluster.pod import Owner, Pod, PodAffinityTerm, PodSpec, SpreadConstraint, WeightedPodTerm
from rebalancer.cluster.scheduler_inputs import Template
from rebalancer.cluster.selectors import Labels, LabelSelector

STATEFUL_SET = "StatefulSet"

#: Labels of the node that a pod gets as it is bound (Kubernetes 1.35, PodTopologyLabels).
_BINDING = frozenset(("topology.kubernetes.io/zone", "topology.kubernetes.io/region"))


class Moment(Enum):
    """When the replacement is made."""

    AT_ONCE = "while the old pod terminates"
    AFTERWARDS = "when the old pod is gone"


@dataclass(frozen=True, slots=True)
class Replacement:
    """The new pod and when it is made, or why it is not known."""

    pod: Pod | None = None  # the new pod; None if it is not known
    moments: tuple[Moment, ...] = (Moment.AT_ONCE,)  # when it may be made, the earliest first
    unknown: str = ""  # why it is not known; empty if it is


#: By kind and uid of the owner.
Templates = Mapping[tuple[str, str], Template]


def replacement(pod: Pod, templates: Templates | None) -> Replacement:
    """Return what comes in place of a pod; if no templates were read, it stands in for its own."""
    owner = next((each for each in pod.owners if each.controller), None)
    if owner is None:
        return Replacement(unknown="nothing is known to replace a pod that no controller looks after")
    if templates is None:
        template: Template | None = Template(labels=unbound(pod.labels), spec=pod.spec, claims=pod.claims)
    else:
        template = templates.get((owner.kind, owner.uid))
    if template is None:
        return Replacement(unknown=f"{owner.kind} {owner.name} was not read")
    if template.changing:
        return Replacement(unknown=f"{owner.kind} {owner.name} is being rolled out")
    if template.makes_claims:
        return Replacement(unknown=f"the pods of {owner.kind} {owner.name} get new claims each")
    return Replacement(_made(pod, template, keeps=owner.kind == STATEFUL_SET), _moments(owner, template))


def _moments(owner: Owner, template: Template) -> tuple[Moment, ...]:
    if owner.kind == STATEFUL_SET:
        return (Moment.AFTERWARDS,)
    if owner.kind == "Job":
        return (Moment.AFTERWARDS,) if template.only_failed else (Moment.AT_ONCE, Moment.AFTERWARDS)
    return (Moment.AT_ONCE,)


def unbound(labels: Labels) -> Labels:
    """Return labels without those that binding added; the same object if it added none."""
    if labels.keys().isdisjoint(_BINDING):
        return labels
    return {key: value for key, value in labels.items() if key not in _BINDING}


def _made(pod: Pod, template: Template, *, keeps: bool) -> Pod:
    labels = {**template.labels, **_identity(pod)} if keeps else template.labels  # shared by replicas, not copied
    return Pod(
        namespace=pod.namespace,
        name=pod.name if keeps else f"{pod.name}'s replacement",
        labels=labels,
        owners=pod.owners,
        spec=merged(_spec(pod.spec, template.spec), labels),
        claims=pod.claims if keeps else template.claims,
        own_claims=pod.own_claims if keeps else (),
    )


def _spec(old: PodSpec, template: PodSpec) -> PodSpec:
    """Return what a replacement is like: as the old pod, unless that lost its gates, or was given less in place."""
    lowered = any(amount > old.requests.get(name, 0) for name, amount in template.requests.items())
    grown = any(amount > template.requests.get(name, 0) for name, amount in old.requests.items())
    return template if template.placement.gated or (lowered and not grown) else old


def _identity(pod: Pod) -> dict[str, str]:
    """Return the labels by which a StatefulSet tells its pods apart."""
    keys = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash")
    return {key: pod.labels[key] for key in keys if key in pod.labels}


def merged(spec: PodSpec, labels: Labels) -> PodSpec:
    """Return a template's spec as a pod gets it from the API server: with `matchLabelKeys` merged into the selectors.

    The API server does so since Kubernetes 1.29 (pod affinity) and 1.34 (spreading); before, the scheduler applied the
    keys itself, to the same effect.
    """
    placement = spec.placement
    weighted = (*placement.preferred_affinity, *placement.preferred_anti_affinity)
    terms = (*spec.anti_affinity, *placement.affinity, *(each.term for each in weighted))
    keys = [each.match_label_keys or each.mismatch_label_keys for each in terms]
    if not any(keys) and not any(each.match_label_keys for each in spec.spread):
        return spec  # shared by all replicas, so not copied
    return msgspec.structs.replace(
        spec,
        anti_affinity=tuple(_term(each, labels) for each in spec.anti_affinity),
        spread=tuple(msgspec.structs.replace(each, selector=of_constraint(each, labels)) for each in spec.spread),
        placement=msgspec.structs.replace(
            placement,
            affinity=tuple(_term(each, labels) for each in placement.affinity),
            preferred_affinity=tuple(_weighted(each, labels) for each in placement.preferred_affinity),
            preferred_anti_affinity=tuple(_weighted(each, labels) for each in placement.preferred_anti_affinity),
        ),
    )


def _weighted(weighted: WeightedPodTerm, labels: Labels) -> WeightedPodTerm:
    return WeightedPodTerm(weighted.weight, _term(weighted.term, labels))


def _term(term: PodAffinityTerm, labels: Labels) -> PodAffinityTerm:
    if term.selector is None:
        return term
    selector = term.selector.narrowed(labels, term.match_label_keys, term.mismatch_label_keys)
    return msgspec.structs.replace(term, selector=selector)


def of_constraint(constraint: SpreadConstraint, labels: Labels) -> LabelSelector | None:
    """Return the selector of a constraint as it applies to a pod with these labels."""
    selector = constraint.selector
    return None if selector is None else selector.narrowed(labels, constraint.match_label_keys)
