"""Spans over OTLP; comes with the extra `otel`, and is imported only where traces are asked for."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from rebalancer import __version__

_TRACER = "sigs.k8s.io/descheduler"
#: For delivering what is still waiting when the program ends (the descheduler's value).
_FLUSH_MILLISECONDS = 3000
_SECONDS = 5


@contextmanager
def sending(
    *, endpoint: str, ca_file: str, service: str, namespace: str, sample_rate: float
) -> Iterator[Callable[..., AbstractContextManager[object]]]:
    """Yield what makes spans; they are sent to a collector in batches, the last ones within three seconds at the end.

    The endpoint is the host:port of a collector that takes gRPC; empty to use OpenTelemetry's variables.  The file has
    the authorities that may have signed its certificate, as PEM; empty for no TLS.  Raises ImportError without the
    protocol's package, OSError for an unreadable file, ValueError or RuntimeError for a bad address or variable.
    """
    about = {"service.name": service, "service.version": __version__}
    about |= {"service.namespace": namespace} if namespace else {}
    provider = TracerProvider(
        resource=Resource.create(about),
        sampler=ParentBased(TraceIdRatioBased(min(1.0, max(0.0, sample_rate)))),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(_exporter(endpoint, ca_file)))
    try:
        yield provider.get_tracer(_TRACER).start_as_current_span
    finally:
        provider.force_flush(_FLUSH_MILLISECONDS)
        provider.shutdown()


def _exporter(endpoint: str, ca_file: str) -> SpanExporter:
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if not endpoint and protocol == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415  one of two
            OTLPSpanExporter as HttpExporter,
        )

        return HttpExporter(timeout=_SECONDS)
    from grpc import ssl_channel_credentials  # noqa: PLC0415  one of two
    from opentelemetry.exporter.otlp.proto.grpc.exporter import InvalidCompressionValueException  # noqa: PLC0415
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    try:
        if not endpoint:
            return OTLPSpanExporter(timeout=_SECONDS)
        credentials = ssl_channel_credentials(Path(ca_file).read_bytes()) if ca_file else None
        return OTLPSpanExporter(endpoint=endpoint, insecure=not ca_file, credentials=credentials, timeout=_SECONDS)
    except InvalidCompressionValueException as error:
        raise ValueError(str(error)) from None
