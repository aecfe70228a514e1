"""The descheduler's flags that have no meaning of their own here: accepted, so that manifests carry over.

Source: descheduler v0.36.0, its command line.  Each says in a line what became of it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag that is accepted and changes nothing.

    Attributes:
        name: with its dashes.
        outcome: what became of it, after the flag's name and a colon.
        switch: whether it takes no value.
    """

    name: str
    outcome: str
    switch: bool = False


_NO_THROTTLE = "requests are not throttled here; the API server's own fairness has the last word"
_HTTP2 = "health and metrics are served over HTTP/1.1"
_LOG_STREAM = "all logs go to standard error at once"

ACCEPTED = (
    Flag("--client-connection-qps", _NO_THROTTLE),
    Flag("--client-connection-burst", _NO_THROTTLE),
    Flag("--feature-gates", "there are no gates; evictions in the background are understood where a server makes them"),
    Flag("--enable-http2", _HTTP2, switch=True),
    Flag("--disable-http2-serving", _HTTP2, switch=True),
    Flag("--http2-max-streams-per-connection", _HTTP2),
    Flag("--permit-address-sharing", "the port is taken for this program alone", switch=True),
    Flag("--permit-port-sharing", "the port is taken for this program alone", switch=True),
    Flag("--cert-dir", "it has no effect in the descheduler either; give --tls-cert-file and --tls-private-key-file"),
    Flag("--tls-sni-cert-key", "one certificate is served whatever the name; give --tls-cert-file"),
    Flag("--tls-curve-preferences", "the curves are those that OpenSSL prefers"),
    Flag("--vmodule", "verbosity is one for all modules; use -v"),
    Flag("--log-flush-frequency", _LOG_STREAM),
    Flag("--log-text-split-stream", _LOG_STREAM, switch=True),
    Flag("--log-json-split-stream", _LOG_STREAM, switch=True),
    Flag("--log-text-info-buffer-size", _LOG_STREAM),
    Flag("--log-json-info-buffer-size", _LOG_STREAM),
)
"""In the order of the descheduler's help."""

#: Flags that very old versions of the descheduler had and v0.36.0 refuses, with what replaces each in a policy.
GONE = {
    "--evict-local-storage-pods": "set podProtections.defaultDisabled: [PodsWithLocalStorage] of DefaultEvictor",
    "--node-selector": "set nodeSelector at the top of the policy",
    "--max-pods-to-evict-per-node": "set maxNoOfPodsToEvictPerNode at the top of the policy",
}
