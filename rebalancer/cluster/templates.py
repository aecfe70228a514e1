"""What owners make their pods from; immutable.

A template is what stands in the owner.  What the API server adds to every new pod is not in it: the number of its
priority, requests by a LimitRange, overhead of a RuntimeClass, containers of a webhook.
"""

import msgspec

from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.selectors import Labels


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner makes its pods from.

    Attributes:
        labels: of the pods.
        spec: theirs.
        claims: claims that the template names itself, for all pods.
        makes_claims: whether it has generic ephemeral volumes, so that every pod gets claims of its own.
        changing: whether a rollout or a scaling down is under way, so that nobody knows what comes.
        only_failed: whether a Job waits until a pod has ended.
    """

    labels: Labels
    spec: PodSpec
    claims: tuple[str, ...] = ()
    makes_claims: bool = False
    changing: bool = False
    only_failed: bool = False
