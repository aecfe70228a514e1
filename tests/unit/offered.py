"""What another package might offer as strategies, good and bad."""

from rebalancer.api import Args, Cluster, Deschedule, Evict


class Own(Deschedule[Args]):
    name = "Own"
    Args = Args

    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Do nothing."""


class Imitation(Own):
    name = "PodLifeTime"


class Nameless(Deschedule[Args]):
    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Do nothing."""


NOT_A_STRATEGY = Args
