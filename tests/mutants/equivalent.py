"""Changes that change nothing anybody could see, each with its reason; `mutants.py` does not try them."""

from collections.abc import Mapping

EQUIVALENT: Mapping[str, str] = {
    "rebalancer/kube/client.py: 1 -> (2) on: _CHUNK = 1 << 18": "how much is read at once is a matter of speed",
    "rebalancer/wire/placement.py: decode(raw, _DiskWire) or _DiskWire() -> (decode(raw, _DiskWire)) on: "
    "wire = decode(raw, _DiskWire) or _DiskWire()": "a disk that is null does not come so far",
}
