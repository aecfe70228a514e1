"""What moves bring, worked out for all pods and nodes at once, against the same one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attack.seeds import examples
from tests.measured import cluster, node, planner, pod, points

LOW, HIGH = {"cpu": 10, "memory": 10}, {"cpu": 12, "memory": 15}
LEAST = 1.5


@st.composite
def clusters(draw):
    names = [f"n{number}" for number in range(draw(st.integers(2, 4)))]
    nodes = [node(name, cpu=draw(st.sampled_from(["10", "20"]))) for name in names]
    pods = [pod(f"p{number}", draw(st.sampled_from(names))) for number in range(draw(st.integers(1, 6)))]
    amount = st.builds(points, st.integers(0, 20), st.integers(0, 20))
    rest = {name: points(draw(st.integers(0, 70)), draw(st.integers(0, 70))) for name in names}
    return cluster(nodes, pods, {each.name: draw(amount) for each in pods}, rest)


class Plain:
    """The points that nodes cost, as the module `goal` tells it."""

    def __init__(self, goal, node, fill, peak):
        self.goal, self.node, self.fill, self.peak = goal, node, fill, peak

    def edges(self):
        goal = self.goal
        return zip(goal.low, goal.inner_low, goal.mean, goal.inner_high, goal.high, strict=True)

    def outside(self, fill):
        inner = zip(fill, self.edges(), strict=True)
        return sum(max(each - high, low - each, 0) for each, (_, low, _, high, _) in inner)

    def uneven(self, fill):
        return sum(0.003 * (each - mean) ** 2 for each, (_, _, mean, _, _) in zip(fill, self.edges(), strict=True))

    def is_over(self, fill):
        return any(each > high + 1e-9 for each, (*_, high) in zip(fill, self.edges(), strict=True))

    @property
    def is_out(self):
        return self.is_over(self.fill) or any(
            each < low - 1e-9 for each, (low, *_) in zip(self.peak, self.edges(), strict=True)
        )

    def share(self, usage):
        return [usage[name] / self.node.allocatable[name] * 100 for name in self.goal.names]


def plain(parts, candidate, sides):
    """Return the gain of a pod by the node where it goes, without moves that bring too little."""
    source = sides[candidate.pod.node]
    left = [each - less for each, less in zip(source.fill, source.share(candidate.usage), strict=True)]
    for name, there in sides.items():
        joined = [each + more for each, more in zip(there.peak, there.share(candidate.usage), strict=True)]
        least = LEAST / 2 if source.is_out or there.is_out else LEAST
        brought = source.outside(source.fill) - source.outside(left) + there.outside(there.peak) - there.outside(joined)
        evened = source.uneven(source.fill) - source.uneven(left) + there.uneven(there.peak) - there.uneven(joined)
        may_go = name != candidate.pod.node and (source.is_out or there.is_out) and not there.is_over(joined)
        if may_go and brought >= least:
            yield name, max(brought + evened, least)


@examples(100)
@given(clusters())
def test_a_move_brings_what_its_two_nodes_cost_less(on):
    parts = planner(on, LOW, HIGH, deviation=True, min_gain=LEAST)
    fullness, names = parts.fullness, [each.name for each in on.nodes]
    sides = {
        each.name: Plain(parts.goal, each, fill, peak)
        for each, fill, peak in zip(on.nodes, fullness.fills(names).T, fullness.peak_fills(names).T, strict=True)
    }
    candidates = parts.pool.on(names)
    expected = {(each.pod.name, name): gain for each in candidates for name, gain in plain(parts, each, sides)}
    offers = list(parts.offers.offers(candidates, names))

    assert {(each.candidate.pod.name, each.destination): each.gain for each in offers} == pytest.approx(expected)
    assert [each.gain for each in offers] == sorted((each.gain for each in offers), reverse=True)
