"""Which pods to look at, to see the replacements of a wave: as few as hold them for certain.

A ReplicaSet of a Deployment has a hash of its template among the labels that it selects by, so each of its pods carries
it.  Where all pods of a wave in one namespace carry such a hash, the pods with one of these hashes are asked for.
Pods of other controllers need not have a label in common: there all pods of the namespace are asked for.

An example: a wave takes two pods of ReplicaSets with the hashes 5d9 and 7f4 from `shop`, and one of a StatefulSet from
`db`.  Looked at are the pods of `shop` with `pod-template-hash in (5d9,7f4)`, and all of `db`.
"""

from collections.abc import Callable, Iterable, Mapping

from rebalancer.cluster.pod import Pod

_HASH = "pod-template-hash"


def siblings_of(pods: Iterable[Pod], restarted: Callable[[Pod], object] = lambda _: False) -> Mapping[str, str]:
    """Return by namespace the label selector that finds these pods and their replacements; empty: all pods.

    A pod that goes by a rollout has a replacement with another hash, so there all pods are asked for.
    """
    hashes: dict[str, set[str]] = {}
    for pod in pods:
        hashes.setdefault(pod.namespace, set()).add("" if restarted(pod) else _template_hash(pod))
    return {name: "" if "" in found else f"{_HASH} in ({','.join(sorted(found))})" for name, found in hashes.items()}


def _template_hash(pod: Pod) -> str:
    owner = pod.controller
    return pod.labels.get(_HASH, "") if owner is not None and owner.kind == "ReplicaSet" else ""
