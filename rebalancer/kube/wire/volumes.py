"""The volumes of a pod as the API server writes them."""

from collections.abc import Iterable, Iterator

import msgspec


class _Claim(msgspec.Struct, gc=False, rename="camel"):
    claim_name: str = ""


class _ImageVolume(msgspec.Struct, gc=False):
    reference: str | None = None


class VolumeWire(msgspec.Struct, gc=False, rename="camel"):
    """A volume of a pod, narrowed to what is used."""

    host_path: msgspec.Raw = msgspec.Raw()
    empty_dir: msgspec.Raw = msgspec.Raw()
    persistent_volume_claim: _Claim | None = None
    name: str = ""
    ephemeral: dict[str, msgspec.Raw] | None = None
    image: _ImageVolume | None = None
    gce_persistent_disk: msgspec.Raw = msgspec.Raw()
    aws_elastic_block_store: msgspec.Raw = msgspec.Raw()
    iscsi: msgspec.Raw = msgspec.Raw()
    rbd: msgspec.Raw = msgspec.Raw()


def is_local(volume: VolumeWire) -> bool:
    """Return whether a volume is on the node itself: a hostPath or an emptyDir."""
    return any(map(_is_given, (volume.host_path, volume.empty_dir)))


def claims(volumes: Iterable[VolumeWire] | None) -> tuple[str, ...]:
    """Return the names of the claims that volumes name."""
    return tuple(
        each.persistent_volume_claim.claim_name for each in volumes or () if each.persistent_volume_claim is not None
    )


def own_claims(pod: str, volumes: Iterable[VolumeWire] | None) -> tuple[str, ...]:
    """Return the claims of generic ephemeral volumes, which are made for the pod and named after it."""
    return tuple(f"{pod}-{each.name}" for each in volumes or () if each.ephemeral is not None)


def disks(volume: VolumeWire) -> Iterator[tuple[str, bytes]]:
    """Yield the disk that a volume names in the pod itself, without a claim; this is rare."""
    kinds = (
        ("gcePersistentDisk", volume.gce_persistent_disk),
        ("awsElasticBlockStore", volume.aws_elastic_block_store),
        ("iscsi", volume.iscsi),
        ("rbd", volume.rbd),
    )
    return ((kind, bytes(raw)) for kind, raw in kinds if _is_given(raw))


def _is_given(raw: msgspec.Raw) -> bool:
    return bool(raw) and bytes(raw) != b"null"
