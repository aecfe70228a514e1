"""Why a pod goes or stays, and what the scheduler thinks of its replacement."""

from rebalancer.run.explain import explained
from tests import make

NOTHING = {"evictions": [], "refusals": [], "strategies": []}


def test_a_node_that_takes_the_replacement_only_later_counts_as_feasible():
    """A Job may wait until its pod is gone: then there is room on n1, and never on n2."""
    pod = make.pod("a", "n1", cpu="2", owners=[make.owner("job", "Job")])
    on = make.cluster([make.node("n1", cpu="2"), make.node("n2", cpu="1")], [pod])

    view = explained(pod, on, [], NOTHING)["scheduler"]

    assert ([each["node"] for each in view["scores"]], view["feasible"]) == (["n1"], 1)
    assert [each["node"] for each in view["refused"]] == ["n2"]
