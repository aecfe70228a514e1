"""What a policy may say about real usage: its sources (`metricsProviders`), and the arguments about how full nodes are.

The descheduler's keys are source, prometheus.url, prometheus.authToken, metricsServer and prometheus.query; the others
are ours.  What a number means is declared, never guessed: unit and base stand beside each query.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from rebalancer.cluster.resources import CONTENTION, CPU, MEMORY, METRIC_RESOURCE, PODS
from rebalancer.policy.arguments import Args, Duration, Int, Namespaces, Part, Percent, ResourceName, Thresholds

#: A replacement is not moved again for so long by default: longer than three cycles five minutes apart.
REST = timedelta(minutes=20)
KUBERNETES_METRICS = "KubernetesMetrics"
PROMETHEUS = "Prometheus"
LOAD_WATCHER = "LoadWatcher"
_SHORTEST_WINDOW = timedelta(minutes=1)
_BYTES = (MEMORY, "ephemeral-storage")
_WEEK, _MOST_DAYS = timedelta(days=7), timedelta(days=31)
Quantile = Annotated[Percent, Field(ge=0, le=1)]


class NodeLabel(Part):
    """How a series says which node it is about."""

    label: str = Field("instance", min_length=1, description="The label; a port at the end of its value is left out.")
    match: Literal["name", "hostname", "internalIP"] = Field(
        "name", description="What its value is of the node: its name, or its address of this type."
    )


class UsageQuery(Part):
    """A query with a value for each node or pod, and what the value means."""

    query: str = Field(min_length=1, description="In PromQL; its result is an instant vector.")
    unit: Literal["ratio", "percent", "cores", "bytes"] = Field(
        description="Of the value: ratio (0 to 1) and percent are shares of the base."
    )
    base: Literal["capacity", "allocatable", "time"] | None = Field(
        None,
        description="What of the node a ratio or percent is a share of; needed with these, and only with them. time: "
        "of contention.",
    )

    @model_validator(mode="after")
    def _shares_have_a_base(self) -> Self:
        share = self.unit in ("ratio", "percent")
        if share and self.base is None:
            cure = "Write base: allocatable, or capacity"
            raise ValueError(f"the unit {self.unit} needs a base: what is it a share of? {cure}")
        if not share and self.base is not None:
            raise ValueError(f"the unit {self.unit} has no base: leave it out")
        return self

    def mismatch(self, resource: str) -> str:
        """Return why a resource is not measured in this unit; empty if it can be."""
        if (resource == CONTENTION) != (self.base == "time"):
            return f"{CONTENTION} is a share of the time: write `unit: ratio` and `base: time`, and not elsewhere"
        if self.unit == "cores" and resource != CPU:
            return f"cores are a unit of {CPU}, not of {resource}"
        if self.unit == "bytes" and resource not in _BYTES:
            return f"bytes are a unit of {' and '.join(_BYTES)}, not of {resource}"
        return ""


class NodeQuery(UsageQuery):
    """What nodes use of one resource."""

    node: NodeLabel = Field(NodeLabel(), description="How a series names its node.")


Q = TypeVar("Q", bound=UsageQuery)


class PodLabels(Part):
    """The labels that name a pod."""

    namespace: str = Field("namespace", min_length=1, description="The label with the pod's namespace.")
    pod: str = Field("pod", min_length=1, description="The label with the pod's name.")


class PodQuery(UsageQuery):
    """What pods use of one resource."""

    labels: PodLabels = Field(PodLabels(), description="The labels that name the pod.")
    node: NodeLabel | None = Field(
        None, description="How a series names the node of its pod, if it does; tells apart pods of one name that moved."
    )


def _days(value: object) -> object:
    days = re.fullmatch(r"(\d{1,3})d", value, re.ASCII) if isinstance(value, str) else None
    return f"{int(days[1]) * 24}h" if days else value


class Coming(Part):
    """Judge nodes by what the coming hours looked like on earlier days too."""

    same_hour: Annotated[
        Duration, BeforeValidator(_days), WithJsonSchema({"type": "string", "pattern": r"^\d+(d|h)$"})
    ] = Field(_WEEK, description="So many days back, like 7d or 168h.")
    quantile: Quantile = Field(0.9, description="Which value of the coming hours counts for destinations.")

    @property
    def days(self) -> int:
        """How many days are looked at."""
        return self.same_hour // timedelta(days=1)

    @field_validator("same_hour")
    @classmethod
    def _whole_days(cls, given: timedelta) -> timedelta:
        if given % timedelta(days=1) or not timedelta(days=1) <= given <= _MOST_DAYS:
            raise ValueError(f"sameHour is a number of whole days, from 1d to {_MOST_DAYS.days}d")
        return given


class PrometheusUsage(Part):
    """How usage is read from Prometheus: by one query as in the descheduler, or by one for each resource."""

    query: str = Field(
        "", description="The descheduler's form: a value from 0 to 1 for each node, the label instance its name."
    )
    window: Duration | None = Field(
        None, description="Sum up so much time, instead of taking the value of the moment; at least 1m."
    )
    source_quantile: Quantile = Field(
        0.5, description="Which value of the window counts for nodes that may lose pods, and for pods."
    )
    destination_quantile: Quantile = Field(
        0.95, description="Which value of the window counts for nodes that may get pods."
    )
    coming: Coming | None = Field(
        None,
        description="For selection: relief. Leave nodes alone whose load falls by itself within the hour as on earlier "
        "days, and fill none that were full then.",
    )
    nodes: dict[ResourceName, NodeQuery] = Field({}, description="What nodes use, by resource.")
    pods: dict[ResourceName, PodQuery] = Field({}, description="What pods use, for all resources of nodes or none.")

    @field_validator("nodes", "pods")
    @classmethod
    def _units_fit(cls, queries: dict[str, Q]) -> dict[str, Q]:
        wrong = [text for name, query in queries.items() if (text := query.mismatch(name))]
        if CONTENTION in queries and CPU not in queries:
            wrong.append(f"{CONTENTION} goes with {CPU}: by its use of that a pod has its part in it")
        wrong += [f"{name} needs no query" for name in (PODS, METRIC_RESOURCE) if name in queries]
        if wrong:
            raise ValueError("\n".join(wrong))
        return queries

    @field_validator("window")
    @classmethod
    def _long_enough(cls, window: timedelta | None) -> timedelta | None:
        if window is not None and window < _SHORTEST_WINDOW:
            raise ValueError("a window is at least 1m; leave it out for the value of the moment")
        return window

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        ours = [name for name in ("window", "coming", "nodes", "pods") if getattr(self, name)]
        if self.query and ours:
            raise ValueError(f"give either query (the descheduler's form) or nodes; {', '.join(ours)} goes with nodes")
        if self.window is None and {"source_quantile", "destination_quantile"} & self.model_fields_set:
            raise ValueError("sourceQuantile and destinationQuantile choose from a window: give window too")
        if self.source_quantile > self.destination_quantile:
            raise ValueError("sourceQuantile is above destinationQuantile: a node would be source and destination")
        if CONTENTION in self.pods:
            raise ValueError(f"{CONTENTION} needs no query about pods: their part follows from what they use of {CPU}")
        if self.pods and self.pods.keys() != self.nodes.keys() - {CONTENTION}:
            names = ", ".join(sorted(self.pods.keys() ^ (self.nodes.keys() - {CONTENTION})))
            raise ValueError(f"nodes and pods must have queries for the same resources; only one has {names}")
        return self


class Pools(Part):
    """Nodes that are compared among themselves only, like those of one instance type."""

    label: str = Field(
        min_length=1, max_length=317, description="Nodes with the same value are a pool; those without it are one too."
    )
    moves: Literal["within", "across"] = Field(
        "within", description="within: pods stay in their pool; across: they may go to a node of another pool."
    )


class MetricsUtilization(Part):
    """Decide on measured usage instead of requests."""

    metrics_server: bool = Field(False, description=f"Deprecated: the source {KUBERNETES_METRICS}.")
    source: Literal["", "KubernetesMetrics", "Prometheus", "LoadWatcher"] = Field(
        "", description=f"{KUBERNETES_METRICS}, {PROMETHEUS} or {LOAD_WATCHER}."
    )
    selection: Literal["relief"] | None = Field(
        None, description="relief: as few moves as bring a node within target; absent: the descheduler's rules."
    )
    max_sample_age: Duration | None = Field(
        None,
        description="An older sample is stale; 3m unless given, for the source Prometheus no bound, "
        "for LoadWatcher 5m since the end of its window.",
    )
    min_fresh_nodes: Annotated[Percent, Field(ge=0, le=100)] = Field(
        80, description="With fresh usage of a smaller percentage of nodes the strategy fails."
    )
    when_missing: Literal["fail", "requests"] = Field(
        "fail", description="requests: what nodes request stands in for usage that is missing, also for all of it."
    )
    scheduler: Literal["default", "unknown"] = Field(
        "default",
        description="For selection: relief. default: pods that would come back, or land on a full node by "
        "kube-scheduler's default scores, stay; unknown: a destination with room is enough.",
    )
    rest: Duration = Field(
        REST,
        description="For selection: relief. How long a replacement is not moved again: longer than three times the "
        "time between two runs.",
    )
    pools: Pools | None = Field(
        None, description="For LowNodeUtilization with selection: relief. Each pool of nodes has a mean of its own."
    )
    prometheus: PrometheusUsage | None = Field(None, description=f"For the source {PROMETHEUS}.")

    @property
    def origin(self) -> str:
        """The source, also where the deprecated switch names it."""
        return KUBERNETES_METRICS if self.metrics_server else self.source

    @property
    def shares_only(self) -> bool:
        """Whether the source only says how full a node is, in all (the descheduler's form of Prometheus)."""
        return self.prometheus is not None and bool(self.prometheus.query)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.metrics_server and self.source:
            raise ValueError(f"give source or the deprecated metricsServer, not both: {KUBERNETES_METRICS} is the same")
        if not self.origin:
            raise ValueError(f"give source: {KUBERNETES_METRICS}, {PROMETHEUS} or {LOAD_WATCHER}")
        if self.origin != PROMETHEUS and self.prometheus is not None:
            raise ValueError(f"prometheus goes with the source {PROMETHEUS} only")
        if self.origin == PROMETHEUS and not (self.prometheus and (self.prometheus.query or self.prometheus.nodes)):
            raise ValueError(f"the source {PROMETHEUS} needs prometheus.query, or prometheus.nodes with its queries")
        if self.prometheus and self.prometheus.coming and not self.selection:
            raise ValueError("prometheus.coming goes with selection: relief")
        if self.pools and not self.selection:
            raise ValueError("pools goes with selection: relief")
        if self.shares_only and self.when_missing == "requests":
            raise ValueError("whenMissing: requests needs prometheus.nodes: a share of a node is in no request")
        return self

    def mismatch(self, thresholds: Mapping[str, float]) -> str:
        """Return why thresholds do not go with this source; empty if they do, as far as is known without a cluster."""
        if self.origin != PROMETHEUS or self.prometheus is None:
            return ""
        if self.shares_only:
            only = thresholds.keys() == {METRIC_RESOURCE}
            return "" if only else f"with prometheus.query thresholds name {METRIC_RESOURCE} and nothing else"
        missing = sorted(thresholds.keys() - self.prometheus.nodes.keys() - {PODS})
        return f"thresholds name {', '.join(missing)}, without a query in prometheus.nodes" if missing else ""


class SecretReference(Part):
    """The Secret that holds a bearer token, under its key `prometheusAuthToken`."""

    namespace: str = Field(min_length=1, description="Namespace of the Secret.")
    name: str = Field(min_length=1, description="Name of the Secret.")


class AuthToken(Part):
    """Where the bearer token for Prometheus lives."""

    secret_reference: SecretReference = Field(description="The Secret with the token.")


class BasicAuth(Part):
    """A name and a password."""

    username: str = Field(min_length=1, description="The name.")
    password_file: str = Field(min_length=1, description="A file with the password.")


class Prometheus(Part):
    """A Prometheus server, or another that answers PromQL."""

    url: str = Field("", description="Base URL, like http://prometheus.monitoring:9090.")
    auth_token: AuthToken | None = Field(
        None, description="Absent: over https in a pod its service account's token, if no other way is given."
    )
    token_file: str = Field("", description="A file with a bearer token, instead of authToken.")
    basic_auth: BasicAuth | None = Field(None, description="Instead of a token.")
    ca_file: str = Field("", description="Certificates to trust; absent: those of the system and of the cluster.")
    allow_token_over_http: bool = Field(
        False, alias="allowTokenOverHTTP", description="Send the token or password also over plain http."
    )
    timeout: Duration = Field(timedelta(seconds=30), description="For all that a strategy asks of it.")

    @property
    def credentials(self) -> tuple[str, ...]:
        """The keys that say how to log in; more than one is a mistake."""
        given = {"authToken": self.auth_token, "tokenFile": self.token_file, "basicAuth": self.basic_auth}
        return tuple(key for key, value in given.items() if value)


class LoadWatcher(Part):
    """A load-watcher."""

    url: str = Field("", description="Base URL, like http://load-watcher.loadwatcher:2020.")
    timeout: Duration = Field(timedelta(seconds=30), description="For its answer.")


class MetricsProvider(Part):
    """A source of real usage; each source at most once."""

    source: str = Field("", description="KubernetesMetrics, Prometheus or LoadWatcher.")
    prometheus: Prometheus | None = Field(None, description="Needed by the source Prometheus.")
    load_watcher: LoadWatcher | None = Field(None, description="Needed by the source LoadWatcher.")


class UtilizationArgs(Args):
    """The arguments by which strategies tell full nodes from idle ones."""

    thresholds: Thresholds = Field(
        {}, validate_default=True, description="A node is underutilized if all these resources are at most so full."
    )
    number_of_nodes: Int = Field(0, description="Act only if more nodes than this are underutilized.")
    evictable_namespaces: Namespaces = Field(Namespaces(), description="No pods from these namespaces: exclude.")
    metrics_utilization: MetricsUtilization | None = Field(None, description="Measured usage instead of requests.")

    @property
    def relief(self) -> bool:
        """Whether pods are selected by relief, on measured usage."""
        return self.metrics_utilization is not None and self.metrics_utilization.selection is not None

    @property
    def compacts(self) -> bool:
        """Whether nodes are emptied whole, so that they can be held."""
        return False

    @property
    def asks_scheduler(self) -> bool:
        """Whether moves depend on where the scheduler would put pods."""
        metrics = self.metrics_utilization
        return metrics is not None and self.relief and metrics.scheduler != "unknown"

    @property
    def rest(self) -> timedelta:
        """How long a replacement rests."""
        return self.metrics_utilization.rest if self.metrics_utilization else REST

    @field_validator("evictable_namespaces")
    @classmethod
    def _no_include(cls, namespaces: Namespaces) -> Namespaces:
        if namespaces.include:
            raise ValueError("only exclude can be given here: list the namespaces to leave alone")
        return namespaces

    @model_validator(mode="after")
    def _measurable(self) -> Self:
        if CONTENTION in self.thresholds and not self.relief:
            raise ValueError(f"{CONTENTION} goes with metricsUtilization and selection: relief, since it is measured")
        mismatch = self.metrics_utilization.mismatch(self.thresholds) if self.metrics_utilization else ""
        if mismatch:
            raise ValueError(mismatch)
        return self
