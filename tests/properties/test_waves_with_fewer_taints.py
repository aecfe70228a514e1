"""Taints that a wave does not need are left out; where all answers show that its pods land as before, none is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.balancing.steering import waves
from rebalancer.balancing.steering.waves import Waves
from tests.attack.seeds import examples
from tests.measured import cluster, node, pod
from tests.planner import planner

OWNERS = ("red", "green", "blue", None)


class AskingWaves(Waves):
    """Asks about each pod once more, whatever the answers were."""

    def _land_as_before(self, *_):
        return False


@st.composite
def uneven(draw):
    """Six to ten nodes; some carry a soft taint of others, and are avoided already by one or two of ours.

    Any nodes may be said to need no taint, so that pods land elsewhere without it.
    """
    names = [f"n{number}" for number in range(draw(st.integers(6, 10)))]
    soft = [["slow:PreferNoSchedule"] if draw(st.integers(0, 20)) == 7 else [] for _ in names]
    pods, usage = [], {}
    for name in names:
        for number in range(draw(st.integers(0, 4))):
            cpu = draw(st.sampled_from(["100m", "500m", "2"]))
            each = pod(f"{name}-{number}", name, owners=draw(st.sampled_from(OWNERS)), cpu=cpu)
            pods.append(each)
            usage[each.name] = draw(st.integers(5, 30))
    nodes = [node(name, taints=taints) for name, taints in zip(names, soft, strict=True)]
    former = draw(st.dictionaries(st.sampled_from(names), st.integers(1, 2)))
    return cluster(nodes, pods, usage), former, draw(st.just(set(names)) | st.sets(st.sampled_from(names)))


def drafted(planned, former):
    draft = planned.next_wave(former)
    return draft and (draft.expected, draft.avoid, {pod: dict(each) for pod, each in draft.shares.items()})


@examples(50)
@given(uneven())
def test_a_wave_is_the_same_as_if_each_pod_were_asked_about_again(case):
    on, former, unneeded = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waves, "needless", lambda *_: unneeded)
        plain = drafted(AskingWaves(planner(on, {"cpu": 20}, {"cpu": 40})), former)

        assert drafted(Waves(planner(on, {"cpu": 20}, {"cpu": 40})), former) == plain
