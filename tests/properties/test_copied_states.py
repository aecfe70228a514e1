"""A copy of the scheduler's picture of the cluster, and the one it was copied from, go their own ways."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.pod import Pod, PodAffinityTerm
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import HOSTNAME, State
from tests import make
from tests.properties.test_simulated_scheduler import READ

NAMES = ("n1", "n2", "n3")
NODES = [make.node(name, cpu="4", memory="8Gi", labels={HOSTNAME: name}) for name in NAMES]


def pods(data: st.DataObject, kind: str) -> list[Pod]:
    """Some pods of two owners on the nodes, one owner's apart from each other."""
    apart = (PodAffinityTerm(HOSTNAME, make.selector(app="a")),)
    owners = [data.draw(st.sampled_from("ab")) for _ in range(data.draw(st.integers(0, 4)))]
    return [
        make.pod(
            f"{kind}{number}",
            node=data.draw(st.sampled_from(NAMES)),
            cpu=data.draw(st.sampled_from(("100m", "2"))),
            labels={"app": owner},
            owners=owner,
            anti_affinity=apart if owner == "a" else (),
        )
        for number, owner in enumerate(owners)
    ]


def answers(state: State) -> Any:
    simulator = Simulator(state, profiles)
    fields: tuple[dict[str, Any], ...] = ({"labels": {"app": "a"}}, {"labels": {"app": "b"}, "cpu": "2"})
    found = [simulator.ask(make.pod("p", node="", **each)) for each in fields]
    return [(each, [each.scores(name) for name in NAMES]) for each in found]


def fresh(running: list[Pod]) -> Any:
    return answers(State(make.snapshot(NODES, running, namespaces={"default": {}}), READ))


@given(st.data())
def test_what_comes_to_one_does_not_come_to_the_other(data: st.DataObject) -> None:
    running, more, others = (pods(data, kind) for kind in ("r", "m", "o"))
    state = State(make.snapshot(NODES, running, namespaces={"default": {}}), READ)
    if data.draw(st.booleans()):
        answers(state)  # caches are filled by then
    copied = state.copy()
    gone = running[: data.draw(st.integers(0, len(running)))]
    for pod in more:
        copied.place(pod, pod.node)
    for pod in others:
        state.place(pod, pod.node)
    for pod in gone:
        state.remove(pod, pod.node)

    assert answers(copied) == fresh([*running, *more])
    assert answers(state) == fresh([*(pod for pod in running if pod not in gone), *others])
