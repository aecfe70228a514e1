"""Arguments about how full nodes are."""

from datetime import timedelta
from typing import Self

from pydantic import Field, field_validator, model_validator

from rebalancer.cluster.resources import CONTENTION
from rebalancer.policy.arguments import Args, Int, Namespaces, Thresholds
from rebalancer.policy.usage import REST, MetricsUtilization


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
