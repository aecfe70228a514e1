"""What another package might offer as strategies, good and bad."""

from rebalancer.api import Args, Cluster, Deschedule, Evict


class Own(Deschedule[Args]):
    """A strategy of one's own."""

    name = "Own"
    Args = Args

    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Do nothing."""


class Imitation(Own):
    """Claims a name that is taken."""

    name = "PodLifeTime"


class Nameless(Deschedule[Args]):
    """Lacks its name and its arguments' model."""

    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Do nothing."""


NOT_A_STRATEGY = Args
