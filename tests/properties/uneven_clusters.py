"""Random clusters of up to 20 small nodes, some full and some idle, so that there is something to even out.

Hypothesis chooses sizes and a seed; the rest follows from the seed, since lists drawn item by item come out nearly
empty most of the time.
"""

from random import Random
from typing import Any

import msgspec
from hypothesis import strategies as st

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from tests import make

GPU = "example.com/gpu"
World = tuple[list[Node], list[Pod]]

WEB, DB, JOB = make.owner("web"), make.owner("db"), make.owner("job", kind="Job")
OWNERS = (*((WEB,), (DB,), (JOB,)) * 2, (), (WEB, DB), (JOB, WEB))


def worlds() -> st.SearchStrategy[World]:
    return st.builds(_world, st.integers(2, 20), st.integers(0, 120), st.integers(0, 2**32))


def _world(node_count: int, pod_count: int, seed: int) -> World:
    choose = Random(seed)
    nodes = [_node(choose, f"n{number}") for number in range(node_count)]
    weights = [choose.choice((0, 1, 8)) for _ in nodes]
    weights[choose.randrange(node_count)] = 8
    templates = [_template(choose) for _ in range(choose.randint(1, 6))]
    where = choose.choices(nodes, weights, k=pod_count)
    return nodes, [_pod(choose, f"p{number}", node, templates) for number, node in enumerate(where)]


def _node(choose: Random, name: str) -> Node:
    return make.node(
        name,
        cpu=choose.choice(("1", "2", "3500m")),
        memory=choose.choice(("4Gi", "5000M")),
        pods=choose.choice((9, 20, 20)),
        labels={"disk": choose.choice(("ssd", "ssd", "hdd"))},
        taints=choose.choice(
            ((),) * 4
            + (("k=v:NoSchedule",), ("k:NoExecute",), ("k:PreferNoSchedule",), ("k:NoSchedule", "l:NoSchedule"))
        ),
        unschedulable=choose.random() < 0.15,
        extra=choose.choice(({}, {GPU: "4"}, {GPU: "9"}, {GPU: "0"})),
    )


def _template(choose: Random) -> Pod:
    """What replicas share."""
    on_ssd = NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),))
    fields: dict[str, Any] = {
        "cpu": choose.choice(("100m", "200m", "500m", "0", None)),
        "memory": choose.choice((None, None, "100Mi", "800Mi")),
        "requests": choose.choice(({}, {}, {GPU: "1"})),
        "images": choose.choice((("a",), ("a",), ("b", "a"), ("a", "b"))),
        "tolerations": choose.choice(((), (), ("k",), ("*",), ("*", "l"), ("k=v:NoSchedule", "l"))),
        "node_selector": choose.choice((None, None, {}, {"disk": "ssd"})),
        "node_terms": choose.choice((None, None, (on_ssd,), ())),
        "priority": choose.choice((None, 0, 7)),
        "local_storage": choose.random() < 0.1,
    }
    return make.pod("template", **fields)


def _pod(choose: Random, name: str, node: Node, templates: list[Pod]) -> Pod:
    one = make.pod(
        name,
        node=node.name,
        namespace=choose.choice(("bank", "shop")),
        age=choose.choice((60, 3600)),
        owners=choose.choice(OWNERS),
        terminating=choose.random() < 0.05,
        phase=choose.choices(("Running", "Pending", "Succeeded"), (8, 1, 1))[0],
        qos=choose.choice(("Burstable", "BestEffort")),
        prefer_no_eviction=choose.random() < 0.1,
    )
    return msgspec.structs.replace(one, spec=choose.choice(templates).spec)


def percents(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, float]]:
    """Thresholds for these resources."""
    return st.fixed_dictionaries(dict.fromkeys(names, st.sampled_from((0, 5, 10, 20, 30, 33.3, 45, 60, 80, 100))))


THRESHOLDS = st.sampled_from((("cpu",), ("pods",), ("cpu", "memory"), ("cpu", "memory", "pods"), ("cpu", GPU)))
LIMITS = st.fixed_dictionaries({}, optional={"node": st.integers(0, 3)})
