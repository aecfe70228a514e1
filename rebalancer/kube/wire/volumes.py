"""The volumes of a pod as the API server writes them."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec


class _ClaimByName(msgspec.Struct, gc=False, rename="camel"):
    claim_name: str = ""


class _ImageVolume(msgspec.Struct, gc=False):
    reference: str | None = None


class PodVolumeWire(msgspec.Struct, gc=False, rename="camel"):
    """A volume of a pod, narrowed to what is used."""

    host_path: msgspec.Raw = msgspec.Raw()
    empty_dir: msgspec.Raw = msgspec.Raw()
    persistent_volume_claim: _ClaimByName | None = None
    name: str = ""
    ephemeral: dict[str, msgspec.Raw] | None = None
    image: _ImageVolume | None = None
    gce_persistent_disk: msgspec.Raw = msgspec.Raw()
    aws_elastic_block_store: msgspec.Raw = msgspec.Raw()
    iscsi: msgspec.Raw = msgspec.Raw()
    rbd: msgspec.Raw = msgspec.Raw()


_REMOVED = ("gcePersistentDisk", "awsElasticBlockStore", "rbd")
#: The removed kinds in this order, and then the others.
_SOURCES = attrgetter("gce_persistent_disk", "aws_elastic_block_store", "rbd", "iscsi", "host_path", "empty_dir")


def claims(volumes: Iterable[PodVolumeWire] | None) -> tuple[str, ...]:
    """Return the names of the claims that volumes name."""
    named = [each.persistent_volume_claim for each in volumes or ()]
    return tuple([each.claim_name for each in named if each is not None])


def own_claims(pod: str, volumes: Iterable[PodVolumeWire] | None) -> tuple[str, ...]:
    """Return the claims of generic ephemeral volumes, which are made for the pod and named after it."""
    return tuple([f"{pod}-{each.name}" for each in volumes or () if each.ephemeral is not None])


class OfSpec(NamedTuple):
    """What matters of a spec's volumes beside claims.

    Attributes:
        local: whether one is on the node itself: a hostPath or an emptyDir.
        images: the images that are mounted.
        disks: the iSCSI disks that are named in the pod itself, without a claim; this is rare.
        removed: the kinds that Kubernetes has removed (1.27, 1.28 and 1.31) and nobody simulates.  Their plugin kept
            two pods of one node from the same disk.
    """

    local: bool = False
    images: tuple[str, ...] = ()
    disks: tuple[bytes, ...] = ()
    removed: tuple[str, ...] = ()


_NOTHING = OfSpec()


def of_spec(volumes: Sequence[PodVolumeWire] | None) -> OfSpec:
    """Return what matters of a spec's volumes."""
    given = [each for each in volumes or () if each.image is not None or any(map(_is_given, _SOURCES(each)))]
    if not given:
        return _NOTHING
    return OfSpec(
        local=any(_is_given(each.host_path) or _is_given(each.empty_dir) for each in given),
        images=tuple(each.image.reference or "" for each in given if each.image is not None),
        disks=tuple(bytes(each.iscsi) for each in given if _is_given(each.iscsi)),
        removed=tuple(
            kind for each in given for kind, raw in zip(_REMOVED, _SOURCES(each), strict=False) if _is_given(raw)
        ),
    )


def _is_given(raw: msgspec.Raw) -> bool:
    return bool(raw) and bytes(raw) != b"null"
