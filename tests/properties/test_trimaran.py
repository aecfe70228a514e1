"""Trimaran's plugins score as the slow models do, whatever comes and goes in between."""

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.measured import LoadFigure, NodeLoads
from rebalancer.cluster.pod import Condition, ContainerCpu, Placement, Pod
from rebalancer.scheduling.simulator.plugin import Nodes
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.trimaran import (
    LoadVariationRiskBalancing,
    PackingArgs,
    TargetLoadPacking,
    VariationArgs,
)
from tests import make
from tests.models import trimaran

NAMES = ("n1", "n2", "n3")
PERCENT = st.one_of(st.integers(0, 120), st.floats(0, 120))
FIGURES = st.builds(
    LoadFigure,
    st.sampled_from(["CPU", "Memory", "Storage"]),
    st.sampled_from(["AVG", "STD", "Latest", "", "Unknown"]),
    PERCENT,
)
AMOUNT = st.none() | st.sampled_from([0, 1, 99, 100, 250, 333, 1000, 4000])
NODES = [
    msgspec.structs.replace(make.node(name, cpu="3", memory="12Gi"), capacity={"cpu": cpu, "memory": 16 << 30})
    for name, cpu in zip(NAMES, (4000, 3000, 8000), strict=True)
]


@st.composite
def all_loads(draw: st.DrawFn) -> NodeLoads:
    figures = draw(st.dictionaries(st.sampled_from(NAMES), st.lists(FIGURES, max_size=4)))
    return NodeLoads(figures, make.NOW + timedelta(seconds=draw(st.integers(-300, 60))))


@st.composite
def pods(draw: st.DrawFn, name: str) -> Pod:
    """Bound at any time around the end of the window; some say so only by their creation."""
    cpus = draw(st.lists(st.builds(ContainerCpu, AMOUNT, AMOUNT), min_size=1, max_size=2))
    pod = make.pod(
        name,
        node="",
        cpu=draw(st.sampled_from(["0", "100m", "1500m"])),
        memory=draw(st.sampled_from([None, "1Gi", "5Gi"])),
        age=draw(st.integers(-60, 400)),
        placement=Placement(cpus=tuple(cpus), overhead_cpu=draw(st.sampled_from([0, 50]))),
    )
    if draw(st.booleans()):
        changed = make.NOW - timedelta(seconds=draw(st.integers(-60, 400)))
        return msgspec.structs.replace(pod, conditions=(Condition("PodScheduled", "True", changed=changed),))
    return msgspec.structs.replace(pod, started=None) if draw(st.booleans()) else pod


@given(st.data())
def test_load_is_packed_as_the_slow_model_packs_it(data: st.DataObject) -> None:
    """Pods that run, and pods that the plan expects on a node; some leave again."""
    loads = data.draw(all_loads())
    target, multiplier = data.draw(st.integers(1, 100)), data.draw(st.sampled_from([0.0, 1.0, 1.5]))
    args = PackingArgs(target_utilization=target, default_requests_multiplier=str(multiplier))
    state = State(make.snapshot(NODES, []))
    plugin = TargetLoadPacking(state, args, lambda: loads)
    there: dict[str, list[Pod]] = {name: [] for name in NAMES}
    for number in range(data.draw(st.integers(1, 6))):
        pod = data.draw(pods(f"p{number}"))
        assert list(plugin.scores(pod, Nodes(range(len(NODES))))) == [
            trimaran.packing(pod, node, there[node.name], loads, target, multiplier, 1000) for node in NODES
        ]
        home = data.draw(st.sampled_from(NAMES))
        runs = data.draw(st.booleans())
        comes = msgspec.structs.replace(pod, node=home) if runs else pod
        state.place(comes, home)
        there[home].append(comes)
        if data.draw(st.booleans()):
            gone = there[home].pop(0)
            state.remove(gone, home)


@given(st.data())
def test_risk_is_what_the_slow_model_finds(data: st.DataObject) -> None:
    """With means, samples, deviations, any margin and any sensitivity but 0."""
    loads, pod = data.draw(all_loads()), data.draw(pods("p"))
    margin, sensitivity = data.draw(st.floats(0, 5)), data.draw(st.floats(0.25, 4))
    args = VariationArgs(safe_variance_margin=margin, safe_variance_sensitivity=sensitivity)
    plugin = LoadVariationRiskBalancing(State(make.snapshot(NODES, [])), args, lambda: loads)

    expected = [trimaran.balancing(pod, node, loads, margin, sensitivity) for node in NODES]

    assert list(plugin.scores(pod, Nodes(range(len(NODES))))) == expected
