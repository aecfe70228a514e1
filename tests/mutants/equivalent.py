"""Changes that change nothing anybody could see, each with its reason; `mutants.py` does not try them."""

from collections.abc import Mapping

_PROXY = (
    'rebalancer/kube/credentials.py: configuration.proxy or "" -> (configuration.proxy) on: '
    'configuration.proxy_headers = credentials_for(str(configuration.proxy or ""))'
)
_CERTIFICATE = "status.client_certificate_data and status.client_key_data"

EQUIVALENT: Mapping[str, str] = {
    "rebalancer/kube/client.py: 1 -> (2) on: _CHUNK = 1 << 18": "how much is read at once is a matter of speed",
    _PROXY: "a text without http:// before it gives no header",
    "rebalancer/kube/credentials.py: datetime.now(UTC) >= self.expires -> (datetime.now(UTC) > self.expires) on: "
    "return self.expires is not None and datetime.now(UTC) >= self.expires": "one microsecond decides nothing",
    **{
        f"rebalancer/kube/exec_plugin.py: {_CERTIFICATE} -> ({changed}) on: if {_CERTIFICATE}:": (
            "`answer` refuses one without the other"
        )
        for changed in (
            "status.client_certificate_data",
            "status.client_key_data",
            "status.client_certificate_data or status.client_key_data",
        )
    },
    "rebalancer/engine/closures.py: 0 -> (1) on: self._length = 0": "the first failure sets it anew",
    "rebalancer/engine/limits.py: owner is None or self._lost[owner] < self._most(self._had[owner]) -> "
    "(self._lost[owner] < self._most(self._had[owner])) on: "
    "if owner is None or self._lost[owner] < self._most(self._had[owner]):": (
        "nothing is counted for pods without an owner, so that they have always lost less than one"
    ),
    "rebalancer/kube/wire/pages.py: first is not item and _fields(first) != _fields(item) -> "
    "(_fields(first) != _fields(item)) on: if first is not item and _fields(first) != _fields(item):": (
        "an object does not differ from itself; not comparing it is a matter of speed"
    ),
    "rebalancer/kube/wire/workloads.py: False -> (True) on: changing: bool = False": (
        "it is read of Deployments alone, of which it is always given"
    ),
}
