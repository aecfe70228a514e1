"""Whether a run is traced, and where its spans go."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rebalancer.run.options import TracingOptions
from rebalancer.run.telemetry import Tracing, Untraced

_LOG = logging.getLogger(__name__)

#: OpenTelemetry's environment variables for where to send traces.
_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@contextmanager
def traced(options: TracingOptions, environ: Mapping[str, str] = os.environ) -> Iterator[Tracing]:
    """Send spans while this is entered, if an option or a variable says where to; failures are only logged."""
    if not options.collector_endpoint and not any(environ.get(name) for name in _VARIABLES):
        yield Untraced()
        return
    try:
        from rebalancer.telemetry.tracing import OpenTelemetry  # noqa: PLC0415  an extra

        tracing = OpenTelemetry(
            endpoint=options.collector_endpoint,
            ca_file=options.transport_ca_cert,
            service=options.service_name,
            namespace=options.trace_namespace,
            sample_rate=options.sample_rate,
        )
    except ImportError as error:
        _LOG.error("there will be no traces: %s; install kube-rebalancer[otel]", error)
        yield Untraced()
        return
    except (OSError, ValueError) as error:
        _LOG.error("there will be no traces: %s", error)
        yield Untraced()
        return
    try:
        yield tracing
    finally:
        tracing.close()
