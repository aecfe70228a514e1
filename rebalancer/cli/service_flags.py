"""The flags of a run that serves, loops or takes turns: the descheduler's names and spellings, and our own.

They are packed into the option classes of `rebalancer.run.options`; the command line passes these on unchanged.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import click

from rebalancer.cli.completing import FILE
from rebalancer.run.options import ExportOptions, LeaseOptions, ServingOptions, TracingOptions
from rebalancer.untrusted.address import AmbiguousUserinfo, read_address

Command = Callable[..., None]


class Seconds(click.ParamType[float]):
    """A duration such as `90s` or `1h30m`, as seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        from rebalancer.policy.arguments import parse_duration  # noqa: PLC0415  not needed for `--help`

        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(value).total_seconds()
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Url(click.ParamType[str]):
    """A URL of http or https; without a scheme it is http.  A password is only taken for https."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the URL, with its scheme and its userinfo."""
        url = value if "://" in value or not value else f"http://{value}"
        try:
            address = read_address(url) if url else None
        except AmbiguousUserinfo as error:
            self.fail(str(error), param, ctx)
        except ValueError:
            self.fail("it is not a URL like http://HOST:PORT", param, ctx)
        if address and address.has_userinfo and not address.is_encrypted:
            self.fail(f"credentials are not sent to {address.url} over plain http: use https", param, ctx)
        return url


class _Target(click.ParamType[str]):
    """A host and a port, for gRPC."""

    name = "target"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return it as it is."""
        if "@" in value:
            self.fail("it is a host and a port, and has no user or password", param, ctx)
        return str(value)


@dataclass(frozen=True, slots=True)
class _Flag:
    """A flag and the field that it sets; the field has the default."""

    field: str
    name: str
    type: click.ParamType[Any] | type
    text: str
    metavar: str = ""
    hidden: bool = False


_SERVING = (
    _Flag(
        "secure_port",
        "--secure-port",
        click.IntRange(0, 65535),
        "Health and metrics; 0 serves nothing.  Default: 10258 inside a pod, else 0.",
        "PORT",
    ),
    _Flag("bind_address", "--bind-address", str, "The address to serve on; default: all.", "ADDRESS"),
    _Flag("disable_metrics", "--disable-metrics", bool, "Serve health only."),
    _Flag("insecure_http", "--insecure-http", bool, "Serve plain HTTP, without TLS."),
    _Flag(
        "tls_cert_file",
        "--tls-cert-file",
        FILE,
        "The certificate to serve with; default: one made at the start.",
        "FILE",
    ),
    _Flag("tls_private_key_file", "--tls-private-key-file", FILE, "The key of that certificate.", "FILE"),
    _Flag("tls_min_version", "--tls-min-version", str, "VersionTLS12 (default) or VersionTLS13.", "VERSION"),
    _Flag("tls_cipher_suites", "--tls-cipher-suites", str, "Suites of TLS 1.2, separated by commas.", "SUITES"),
)
_LEASE = (
    _Flag("leader_elect", "--leader-elect", bool, "Of the replicas of a loop, let the holder of a Lease work."),
    _Flag(
        "lease_duration",
        "--leader-elect-lease-duration",
        Seconds(),
        "When others may take it; default 15s, with --leader-elect 137s.",
        "DURATION",
    ),
    _Flag(
        "renew_deadline",
        "--leader-elect-renew-deadline",
        Seconds(),
        "When its holder gives up; default 10s, with --leader-elect 107s.",
        "DURATION",
    ),
    _Flag(
        "retry_period",
        "--leader-elect-retry-period",
        Seconds(),
        "Between two tries; default 2s, with --leader-elect 26s.",
        "DURATION",
    ),
    _Flag(
        "resource_lock",
        "--leader-elect-resource-lock",
        click.Choice(["leases"]),
        "There is only leases.",
        "KIND",
        hidden=True,
    ),
    _Flag(
        "resource_name",
        "--leader-elect-resource-name",
        str,
        "The Lease; default: rebalancer, of `rebalancer mark` rebalancer-mark.",
        "NAME",
    ),
    _Flag(
        "resource_namespace", "--leader-elect-resource-namespace", str, "Its namespace; default: kube-system.", "NAME"
    ),
    _Flag(
        "memory",
        "--memory",
        str,
        "The ConfigMap, beside the Lease, in which cycles remember; default: kube-rebalancer-memory.",
        "NAME",
    ),
    _Flag("no_lease", "--no-lease", bool, "Work without holding a Lease; another run may be at work at the same time."),
    _Flag("lease_wait", "--lease-wait", Seconds(), "How long to wait for another run to end; default 30s.", "DURATION"),
)
_EXPORT = (
    _Flag("metrics_textfile", "--metrics-textfile", FILE, "Write the metrics here too, for node-exporter.", "FILE"),
    _Flag("pushgateway", "--pushgateway", _Url(), "Push the metrics here too.", "URL"),
)
_TRACING = (
    _Flag(
        "collector_endpoint",
        "--otel-collector-endpoint",
        _Target(),
        "Send traces to this OTLP collector (gRPC).",
        "HOST:PORT",
    ),
    _Flag(
        "transport_ca_cert",
        "--otel-transport-ca-cert",
        FILE,
        "The authorities of its certificate; without: no TLS.",
        "FILE",
    ),
    _Flag("service_name", "--otel-service-name", str, "The service that spans name; default: descheduler.", "NAME"),
    _Flag("trace_namespace", "--otel-trace-namespace", str, "The namespace of that service.", "NAME"),
    _Flag("sample_rate", "--otel-sample-rate", float, "The share of cycles that are traced; default 1.", "RATE"),
    _Flag(
        "fallback_no_op",
        "--otel-fallback-no-op-on-error",
        bool,
        "No traces where they cannot be set up; always so.",
        hidden=True,
    ),
)
_GROUPS: tuple[tuple[str, type[Any], tuple[_Flag, ...]], ...] = (
    ("serving", ServingOptions, _SERVING),
    ("lease", LeaseOptions, _LEASE),
    ("export", ExportOptions, _EXPORT),
    ("tracing", TracingOptions, _TRACING),
)


def service_flags(command: Command) -> Command:
    """Give a command the flags, and hand them to it as `serving`, `lease`, `export` and `tracing`."""

    @wraps(command)
    def packed(*args: Any, **given: Any) -> None:
        for group, kind, flags in _GROUPS:
            values = {flag.field: given.pop(flag.field) for flag in flags}
            known = {field.name for field in fields(kind)}
            values = {name: value for name, value in values.items() if value is not None and name in known}
            given[group] = kind(**values)
        command(*args, **given)

    flagged: Command = packed
    for _, _, flags in reversed(_GROUPS):
        for flag in reversed(flags):
            flagged = _option(flag)(flagged)
    return flagged


def _option(flag: _Flag) -> Callable[[Command], Command]:
    if flag.type is bool:
        # `--flag` and `--flag=true`, as programs in Go accept it
        return click.option(
            flag.name,
            flag.field,
            type=bool,
            is_flag=False,
            flag_value=True,
            help=flag.text,
            hidden=flag.hidden,
            metavar="[=true|false]",
        )
    return click.option(flag.name, flag.field, type=flag.type, help=flag.text, metavar=flag.metavar, hidden=flag.hidden)
