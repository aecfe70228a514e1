"""What owners make their pods from; immutable.

A template is what the owner contains.  What the API server adds to every new pod is not in it: the priority as a
number, requests from a LimitRange, the overhead of a RuntimeClass, containers from a webhook.
"""

import msgspec

from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.selectors import Labels


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner makes its pods from.

    Attributes:
        labels: the labels of the pods.
        spec: the spec of the pods.
        claims: claims that the template names itself, for all pods.
        makes_claims: whether it has generic ephemeral volumes, so that every pod gets claims of its own.
        changing: whether a rollout or a scaling down is under way, so that the next pod is not known.
        only_failed: whether a Job replaces a pod only after it has ended.
    """

    labels: Labels
    spec: PodSpec
    claims: tuple[str, ...] = ()
    makes_claims: bool = False
    changing: bool = False
    only_failed: bool = False
