"""Arguments about pods."""

from pydantic import Field

from rebalancer.cluster.pod import Pod
from rebalancer.policy.arguments import Args, Namespaces, Selector


class PodArgs(Args):
    """The arguments by which most strategies narrow the pods they look at."""

    namespaces: Namespaces = Field(Namespaces(), description="Namespaces to look at: include or exclude.")
    label_selector: Selector | None = Field(None, description="Only pods with matching labels.")

    def selects(self, pod: Pod) -> bool:
        """Return whether namespace and labels of the pod are among those to look at."""
        return pod.namespace in self.namespaces and (
            self.label_selector is None or self.label_selector.matches(pod.labels)
        )
