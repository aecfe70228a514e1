"""What a run is asked to do, and its outcome."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rebalancer.errors import UsageError

if TYPE_CHECKING:
    from rebalancer.cluster.cluster import Cluster
    from rebalancer.run.planned import ChosenPart  # which needs pydantic
    from rebalancer.run.work import Work


def in_pod() -> bool:
    """Return whether this is a pod, also one that has a kubeconfig mounted."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Health and metrics over HTTP; names as on the command line."""

    secure_port: int | None = None  # None for 10258 inside a pod and 0 elsewhere; 0 serves nothing
    bind_address: str = "0.0.0.0"  # noqa: S104  the descheduler's default: the kubelet asks from outside the pod
    disable_metrics: bool = False
    insecure_http: bool = False  # serve without TLS
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_min_version: str = ""
    tls_cipher_suites: str = ""  # separated by commas; empty for the usual ones


MARKING_LEASE = "rebalancer-mark"  # the Lease of `rebalancer mark`: marking and evicting need not wait for each other


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """Taking turns with other runs; durations in seconds, None for the default of this kind of run."""

    leader_elect: bool = False
    lease_duration: float | None = None
    renew_deadline: float | None = None
    retry_period: float | None = None
    resource_name: str = "rebalancer"
    resource_namespace: str = "kube-system"
    memory: str = "kube-rebalancer-memory"  # the ConfigMap in which cycles remember, in the namespace of the Lease
    no_lease: bool = False
    lease_wait: float = 30.0


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Where metrics are sent, besides being served; empty for nowhere."""

    metrics_textfile: str = ""
    pushgateway: str = ""


@dataclass(frozen=True, slots=True)
class TracingOptions:
    """Traces over OTLP; without an endpoint OpenTelemetry's environment variables decide."""

    collector_endpoint: str = ""
    transport_ca_cert: str = ""
    service_name: str = "descheduler"
    trace_namespace: str = ""
    sample_rate: float = 1.0


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How the API server is found and asked; names as on the command line, durations in seconds.

    Without a kubeconfig one is found as kubectl does; a `request_timeout` of 0 is the longest possible.
    """

    kubeconfig: str | None = None
    context: str | None = None
    as_user: str = ""
    as_group: tuple[str, ...] = ()
    request_timeout: float = 30.0
    exec_timeout: float = 60.0
    insecure_skip_tls_verify: bool = False


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """Where a history is, at a URL or by a policy's metricsProviders, and how it is asked for; durations in seconds."""

    prometheus: str | None = None
    policy: str | None = None
    history: float = 336 * 3600.0
    step: float = 300.0
    queries: str | None = None
    cpu_query: str | None = None
    memory_query: str | None = None
    now: str | None = None


CHANGES = 10  # the exit code, if it was asked for, of a dry run with something to do


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked to do; names as on the command line, durations in seconds.

    The text of the policy is there where it was read already: standard input can be read once only.  None for
    `max_evictions` and `hold` leaves them to the policy.
    """

    policy: str
    policy_text: str | None = None
    dry_run: bool = False
    snapshot: str | None = None
    now: str | None = None
    strict: bool = False
    deadline: float = 300.0
    fail_on_error: bool = False
    detailed_exitcode: bool = False
    interval: float = 0.0  # from start to start of cycles; 0 for one cycle
    max_evictions: int | None = None
    client: ClientOptions = field(default_factory=ClientOptions)
    max_parallel: int = 1
    steer: bool = False
    hold: timedelta | None = None
    scheduler_config: str | None = None
    chosen: "ChosenPart | None" = None  # what of a plan is to be applied; None for whatever the policy picks
    identify: bool = False  # whether to read which cluster it is
    explains: bool = False  # whether to read all that the scheduler looks at, whatever the policy needs, windows or not
    serving: ServingOptions = field(default_factory=ServingOptions)
    lease: LeaseOptions = field(default_factory=LeaseOptions)
    export: ExportOptions = field(default_factory=ExportOptions)
    tracing: TracingOptions = field(default_factory=TracingOptions)

    def demand_no_conflict(self) -> None:
        """Raise UsageError for options that contradict each other."""
        offline, standard_inputs = self.snapshot is not None, [self.policy, self.scheduler_config, self.snapshot]
        live = (self.client, self.export) != (ClientOptions(), ExportOptions())
        detailed = self.detailed_exitcode and (self.interval or not (self.dry_run or self.snapshot))
        inputs = "--policy, --scheduler-config and --snapshot"
        alone = "--descheduling-interval: a single cycle holds the Lease by itself"
        of_live = (
            "--kubeconfig, --context, --as, --as-group, --request-timeout, --exec-timeout, --insecure-skip-tls-verify, "
            "--metrics-textfile and --pushgateway are about a live cluster: leave them out, or --snapshot"
        )
        for is_wrong, message in (
            (not offline and self.now is not None, "--now goes with --snapshot: a live cluster has its own time"),
            (offline and live, of_live),
            (offline and self.interval, "--descheduling-interval is for a live cluster: a snapshot stays as it is"),
            (detailed, "--detailed-exitcode goes with a single --dry-run or --snapshot"),
            (standard_inputs.count("-") > 1, f"only one of {inputs} can be standard input"),
            (self.lease.leader_elect and not self.interval, f"--leader-elect goes with {alone}"),
        ):
            if is_wrong:
                raise UsageError(message)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run: its report, its exit code, the cluster it worked on, and what the policy asked for."""

    report: dict[str, Any]
    exit_code: int
    cluster: "Cluster | None" = None
    work: "Work | None" = None


#: Shows the outcome of a cycle, and returns the exit code of a run that consists of it.
Deliver = Callable[[Outcome], int]
