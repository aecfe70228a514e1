"""Traces, sent to a collector in this process by the descheduler's flags and by the usual variables."""

from concurrent import futures
from dataclasses import replace

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from rebalancer.telemetry import tracing
from tests.fake_api_server import CERTIFICATE
from tests.fake_servers import FakeServer
from tests.functional.objects import ONE
from tests.ports import free_port


class Collector(TraceServiceServicer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.received: list[ExportTraceServiceRequest] = []

    def Export(self, request, context):  # noqa: N802  the protocol's name
        self.received.append(request)
        return ExportTraceServiceResponse()

    def spans(self):
        resources = [resource for request in self.received for resource in request.resource_spans]
        return {span.name: span for each in resources for scope in each.scope_spans for span in scope.spans}


def attributes(part):
    return {each.key: each.value.string_value for each in part.attributes}


@pytest.fixture
def collect():
    servers = []

    def start(credentials=None):
        collector = Collector()
        server = grpc.server(futures.ThreadPoolExecutor(2))
        add_TraceServiceServicer_to_server(collector, server)
        add = server.add_secure_port if credentials else server.add_insecure_port
        port = add("127.0.0.1:0", *([credentials] if credentials else []))
        server.start()
        servers.append(server)
        return collector, f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(None).wait(120)


def test_a_cycle_its_strategies_and_evictions_are_spans(three, rebalancer, collect):
    """One inside of the other, with the descheduler's names and attributes."""
    collector, address = collect()

    outcome = rebalancer.run(three, ONE, "--otel-collector-endpoint", address, "--otel-trace-namespace", "ops")

    spans = collector.spans()
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert set(spans) == {"cycle", "read", "evict", "PodLifeTime", "EvictPod", "events"}
    assert spans["EvictPod"].parent_span_id == spans["PodLifeTime"].span_id
    assert spans["PodLifeTime"].parent_span_id == spans["evict"].span_id
    assert spans["evict"].parent_span_id == spans["cycle"].span_id
    assert attributes(spans["PodLifeTime"]) == {"plugin": "PodLifeTime", "profile": "tidy"}
    assert attributes(spans["EvictPod"])["podName"] == "a"
    resource = attributes(collector.received[0].resource_spans[0].resource)
    assert (resource["service.name"], resource["service.namespace"]) == ("descheduler", "ops")


def test_with_authorities_it_is_tls(three, rebalancer, collect):
    """The file that is given decides whom to trust.  A rate of none sends nothing."""
    pem = CERTIFICATE.read_bytes()
    collector, address = collect(grpc.ssl_server_credentials([(pem, pem)]))
    flags = ("--otel-collector-endpoint", address, "--otel-transport-ca-cert", CERTIFICATE)

    rebalancer.run(three, ONE, *flags, "--otel-sample-rate", "0")
    assert collector.received == []
    rebalancer.run(three, ONE, *flags)
    assert "EvictPod" in collector.spans()


def test_the_usual_variables_do_too(three, rebalancer, collect):
    """Without a flag: over gRPC as is usual, or over HTTP for collectors that speak no gRPC."""
    collector, address = collect()

    replace(rebalancer, environment={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address}"}).run(three, ONE)
    with FakeServer() as server:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        replace(rebalancer, environment=variables).run(three, ONE)

    assert "EvictPod" in collector.spans()
    (taken,) = server.requests
    assert (taken.path, taken.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
    assert b"EvictPod" in taken.body or taken.body[:2] == b"\x1f\x8b"


@pytest.mark.parametrize(
    ("more", "variables"),
    [
        ([], {}),
        (["--otel-transport-ca-cert", "/absent.crt"], {}),
        ([], {"OTEL_EXPORTER_OTLP_COMPRESSION": "none"}),  # which is a word of the standard, and not of the package
    ],
)
def test_without_a_collector_the_run_goes_on(three, rebalancer, more, variables, monkeypatch):
    """Untraced; what is wrong is logged and nothing more, after some seconds for the last try."""
    monkeypatch.setattr(tracing, "_SECONDS", 0.2)
    rebalancer = replace(rebalancer, environment=variables)

    outcome = rebalancer.run(three, ONE, "--otel-collector-endpoint", f"127.0.0.1:{free_port()}", *more)

    assert outcome.exit_code == 0
    assert outcome.evicted() == ["default/a"]
    assert "Traceback" not in outcome.stderr
