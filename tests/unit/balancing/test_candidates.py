"""Which pods of a node may still go."""

from tests.measured import cluster, node, pod
from tests.planner import planner


def test_a_pod_that_is_tried_is_no_candidate_until_it_is_back() -> None:
    """Other pods tried meanwhile change nothing of it."""
    pods = [pod("a", "n1", owners="red"), pod("b", "n1", owners="blue")]
    on = cluster([node("n1"), node("n2")], pods, {"a": 30, "b": 30})
    pool = planner(on, {"cpu": 20}, {"cpu": 50}).pool

    def names() -> list[str]:
        return sorted(each.pod.name for each in pool.on(["n1"]))

    seen = [names()]
    for tried in pods:
        with on.scope():
            on.remove(tried)
            seen.append(names())
    assert [*seen, names()] == [["a", "b"], ["b"], ["a"], ["a", "b"]]
