"""The volumes of a pod as the API server writes them."""

from collections.abc import Iterable

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


def is_local(volume: PodVolumeWire) -> bool:
    """Return whether a volume is on the node itself: a hostPath or an emptyDir."""
    return _is_given(volume.host_path) or _is_given(volume.empty_dir)


def claims(volumes: Iterable[PodVolumeWire] | None) -> tuple[str, ...]:
    """Return the names of the claims that volumes name."""
    named = [each.persistent_volume_claim for each in volumes or ()]
    return tuple([each.claim_name for each in named if each is not None])


def own_claims(pod: str, volumes: Iterable[PodVolumeWire] | None) -> tuple[str, ...]:
    """Return the claims of generic ephemeral volumes, which are made for the pod and named after it."""
    return tuple([f"{pod}-{each.name}" for each in volumes or () if each.ephemeral is not None])


def disks(volume: PodVolumeWire) -> tuple[bytes, ...]:
    """Return the iSCSI disk that a volume names in the pod itself, without a claim; this is rare."""
    return (bytes(volume.iscsi),) if _is_given(volume.iscsi) else ()


def removed_kinds(volume: PodVolumeWire) -> list[str]:
    """Return the kind of a volume if it is one that Kubernetes has removed (1.27, 1.28 and 1.31) and nobody simulates.

    Their plugin kept two pods of one node from the same disk.
    """
    removed = (
        ("gcePersistentDisk", volume.gce_persistent_disk),
        ("awsElasticBlockStore", volume.aws_elastic_block_store),
        ("rbd", volume.rbd),
    )
    return [kind for kind, raw in removed if _is_given(raw)]


def _is_given(raw: msgspec.Raw) -> bool:
    return bool(raw) and bytes(raw) != b"null"
