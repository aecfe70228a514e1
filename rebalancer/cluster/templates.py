"""What owners make their pods from; immutable."""

import msgspec

from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.selectors import Labels


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner makes its pods from.

    Attributes:
        labels: of the pods.
        spec: theirs.
        claims: claims that the template names itself, for all pods.
        changing: whether a rollout is under way, so that nobody knows which template counts.
        only_failed: whether a Job waits until a pod has ended.
    """

    labels: Labels
    spec: PodSpec
    claims: tuple[str, ...] = ()
    changing: bool = False
    only_failed: bool = False
