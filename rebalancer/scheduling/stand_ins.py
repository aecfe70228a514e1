"""What is assumed in place of objects that were not read: often only nodes and pods were saved to files.

If neither Services nor controllers were read, default spreading is taken to count the pods of the same owner.  The
selector consists of the labels that all these pods have, without those that binding adds.  As a rule the real selector
matches the same pods: that of a ReplicaSet contains the hash of its template, which no other pod carries.
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
    """Return what was read, completed with what is assumed for the rest, and notices about that for a person."""
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
