"""The descheduler's command line: the group of commands, its spellings, its flags, and those without a meaning here.

The descheduler's command line follows Go's: `--policy_config_file`, `--dry-run=true`, `-v=2`, no subcommand.
kubectl's habits are understood too: `-vv`.  A flag that changes nothing is accepted, and a line of log says what became
of it.  Source of the flags: descheduler v0.36.0, its command line.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import click

from rebalancer.cli.options import FILE, GRPC_TARGET, URL, Decorator, accept, duration, options, packed, switch, value
from rebalancer.run.options import ExportOptions, LeaseOptions, ServingOptions, TracingOptions

#: Source: Go's strconv.ParseBool.
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_REPEATED_V = re.compile(r"-v{2,}")
_PORTS = click.IntRange(0, 65535)


def spelled(arguments: Sequence[str], switches: Collection[str]) -> Iterator[str]:
    """Yield the arguments with dashes for underscores, and switches without a value; not what follows `--`."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    for argument, following in zip_longest(arguments[:end], arguments[1:end], fillvalue=""):
        name, equals, value = argument.partition("=")
        name = name.replace("_", "-")
        if _REPEATED_V.fullmatch(argument):
            yield from ("-v", str(len(argument) - 1))
        elif argument == "-v" and not re.fullmatch(r"=?\d+", following):
            yield from ("-v", "1")
        elif not argument.startswith("--"):
            yield argument
        elif name not in switches or value not in _TRUE | _FALSE:
            yield name + equals + value
        elif value in _TRUE:
            yield name
    yield from arguments[end:]


def with_command(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments beginning with a command: `run` where there is none, unless one is the program's own.

    `help COMMAND` is `COMMAND --help`, as programs in Go have it.
    """
    first = arguments[0] if arguments else ""
    if first == "help":
        return [*arguments[1:], "--help"]
    return ["run", *arguments] if first.startswith("-") and first not in _OWN else arguments


_OWN = ("--help", "-h", "--version")


class Spelled(click.Group):
    """A group that understands `--policy_config_file`, `--dry-run=true`, `-vv`, `help`, and flags without a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, each in the spelling that is declared."""
        options = (each for command in self.commands.values() for each in command.params)
        found = {name for each in options if isinstance(each, click.Option) and each.is_flag for name in each.opts}
        return super().parse_args(ctx, list(spelled(with_command(args), found)))


_UNUSED: Any = {"hidden": True, "expose_value": False}
_serving = (
    value("--secure-port", "PORT", "Health and metrics; 0: none.  Default: 10258 inside a pod, else 0.", _PORTS),
    value("--bind-address", "ADDRESS", "The address to serve on; default: all."),
    switch("--disable-metrics", "Serve health only."),
    switch("--insecure-http", "Serve plain HTTP, without TLS."),
    value("--tls-cert-file", "FILE", "The certificate to serve with; default: one made at the start.", FILE),
    value("--tls-private-key-file", "FILE", "The key of that certificate.", FILE),
    value("--tls-min-version", "VERSION", "VersionTLS12 (default) or VersionTLS13."),
    value("--tls-cipher-suites", "SUITES", "Suites of TLS 1.2, separated by commas."),
)
_lease = (
    switch("--leader-elect", "Of the replicas of a loop, let the holder of a Lease work."),
    duration("--leader-elect-lease-duration", "When others may take it; default 15s, with --leader-elect 137s."),
    duration("--leader-elect-renew-deadline", "When its holder gives up; default 10s, with --leader-elect 107s."),
    duration("--leader-elect-retry-period", "Between two tries; default 2s, with --leader-elect 26s."),
    value("--leader-elect-resource-lock", "KIND", "There is only leases.", click.Choice(["leases"]), **_UNUSED),
    value("--leader-elect-resource-name", "NAME", "The Lease; default: rebalancer, of `mark` rebalancer-mark."),
    value("--leader-elect-resource-namespace", "NAME", "Its namespace; default: kube-system."),
    value("--memory", "NAME", "The ConfigMap beside it in which cycles remember; default: kube-rebalancer-memory."),
    switch("--no-lease", "Work without holding a Lease; another run may be at work at the same time."),
    duration("--lease-wait", "How long to wait for another run to end; default 30s."),
)
_export = (
    value("--metrics-textfile", "FILE", "Write the metrics here too, for node-exporter.", FILE),
    value("--pushgateway", "URL", "Push the metrics here too.", URL),
)
_tracing = (
    value("--otel-collector-endpoint", "HOST:PORT", "Send traces to this OTLP collector (gRPC).", GRPC_TARGET),
    value("--otel-transport-ca-cert", "FILE", "The authorities of its certificate; without: no TLS.", FILE),
    value("--otel-service-name", "NAME", "The service that spans name; default: descheduler."),
    value("--otel-trace-namespace", "NAME", "The namespace of that service."),
    value("--otel-sample-rate", "RATE", "The share of cycles that are traced; default 1.", float),
    switch("--otel-fallback-no-op-on-error", "No traces where they cannot be set up; always so.", **_UNUSED),
)
#: Flags of a run that serves, loops or takes turns: the descheduler's, and our own.
service_flags = options(
    packed("serving", ServingOptions, *_serving),
    packed("lease", LeaseOptions, *_lease, prefix="leader_elect_"),
    packed("export", ExportOptions, *_export),
    packed("tracing", TracingOptions, *_tracing, prefix="otel_"),
)

#: Flags that are accepted and change nothing, by what became of them.
_WITHOUT_EFFECT = {
    "requests are not throttled here; the API server's own fairness has the last word": (
        "--client-connection-qps --client-connection-burst"
    ),
    "there are no gates; evictions in the background are understood where a server makes them": "--feature-gates",
    "health and metrics are served over HTTP/1.1": (
        "--enable-http2 --disable-http2-serving --http2-max-streams-per-connection"
    ),
    "the port is taken for this program alone": "--permit-address-sharing --permit-port-sharing",
    "it has no effect in the descheduler either; give --tls-cert-file and --tls-private-key-file": "--cert-dir",
    "one certificate is served whatever the name; give --tls-cert-file": "--tls-sni-cert-key",
    "the curves are those that OpenSSL prefers": "--tls-curve-preferences",
    "verbosity is one for all modules; use -v": "--vmodule",
    "all logs go to standard error at once": (
        "--log-flush-frequency --log-text-split-stream --log-json-split-stream "
        "--log-text-info-buffer-size --log-json-info-buffer-size"
    ),
}
#: Those of them that take no value, or one as programs in Go accept it: `--flag=true`.
_SWITCHES = {
    *("--enable-http2", "--disable-http2-serving", "--permit-address-sharing", "--permit-port-sharing"),
    *("--log-text-split-stream", "--log-json-split-stream"),
}


def _without_meaning(name: str, told: str) -> Decorator:
    """Return a hidden flag that changes nothing; `told` is what became of it."""

    def hear(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            accept(context, f"{name} changes nothing: {told}")

    switch: Any = {"is_flag": False, "flag_value": "true"} if name in _SWITCHES else {}
    return click.option(name, hidden=True, expose_value=False, callback=hear, **switch)


descheduler_flags = options(
    *(_without_meaning(name, outcome) for outcome, names in _WITHOUT_EFFECT.items() for name in names.split())
)
