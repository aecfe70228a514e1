"""What stands in for objects that nobody read: of most files there are nodes and pods, and nothing else.

Where no Service and no controller was read, a pod is taken to be spread by default among the pods of its owner.  They
are told by the labels that all of them have, without those that the binding adds.  As a rule that is what the selectors
say as well: a ReplicaSet's has a hash of the template that no other pod carries.
"""

from collections.abc import Iterable

import msgspec

from rebalancer.cluster.companions import Companions, Key
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import EVERYTHING, Labels, LabelSelector
from rebalancer.scheduling.simulator.replacement import unbound

NO_TEMPLATES = "owners' templates were not read: a replacement is taken to be like the pod that goes"
NO_SELECTORS = "neither Services nor controllers were read: pods are taken to be spread among those of their owner"
NEITHER = (
    "neither controllers nor Services were read: a replacement is taken to be like the pod that goes, "
    "and to be spread among its owner's pods"
)

_KINDS = {
    "ReplicaSet": "replica_sets",
    "ReplicationController": "replication_controllers",
    "StatefulSet": "stateful_sets",
}


def completed(companions: Companions, pods: Iterable[Pod]) -> tuple[Companions, list[str]]:
    """Return what was read with what stands in for the rest, and what a person should know of that."""
    templates = companions.templates is not None
    kinds = ("services", *_KINDS.values())
    if any(getattr(companions, kind) is not None for kind in kinds):
        return companions, [] if templates else [NO_TEMPLATES]
    standing_in: dict[str, dict[Key, LabelSelector]] = {kind: {} for kind in kinds}
    for (kind, key), labels in _shared_labels(pods).items():
        standing_in[_KINDS[kind]][key] = EVERYTHING.narrowed(labels)
    return msgspec.structs.replace(companions, **standing_in), [NO_SELECTORS if templates else NEITHER]


def _shared_labels(pods: Iterable[Pod]) -> dict[tuple[str, Key], Labels]:
    """Return the labels that all pods of an owner have, by its kind, namespace and name."""
    shared: dict[tuple[str, Key], Labels] = {}
    for pod in pods:
        owner = next((each for each in pod.owners if each.controller), None)
        if owner and owner.kind in _KINDS:
            key = owner.kind, (pod.namespace, owner.name)
            known = shared.setdefault(key, unbound(pod.labels))
            if known is not pod.labels and known != pod.labels:
                shared[key] = {name: value for name, value in known.items() if pod.labels.get(name) == value}
    return shared
