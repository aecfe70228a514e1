"""RemovePodsViolatingNodeTaints: which pods do not tolerate their node (strategies.md 8)."""

import pytest
from pydantic import ValidationError

from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.remove_pods_violating_node_taints import (
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingNodeTaintsArgs,
)
from tests.make import cluster, decide, evicted, node, pod, refused


def run(taints, pods, args=None, other=None, **settings):
    """n1 has these taints, and n2 is another node."""
    strategy = RemovePodsViolatingNodeTaints(RemovePodsViolatingNodeTaintsArgs.model_validate(args or {}))
    return decide(cluster([node("n1", taints=taints), other or node("n2")], pods), strategy, **settings)


def goes(taints, args=None, **fields):
    return evicted(run(taints, [pod("a", **fields)], args)) == ["a"]


@pytest.mark.parametrize(
    ("taints", "args", "expected"),
    [
        pytest.param([], {}, False, id="no taints"),
        pytest.param(["k=v:NoSchedule"], {}, True, id="NoSchedule"),
        pytest.param(["k=v:NoExecute"], {}, False, id="NoExecute is Kubernetes' own business"),
        pytest.param(["k=v:PreferNoSchedule"], {}, False, id="PreferNoSchedule does not count"),
        pytest.param(["k=v:PreferNoSchedule"], {"includePreferNoSchedule": True}, True, id="unless asked"),
        pytest.param(["k=v:NoSchedule"], {"excludedTaints": ["k"]}, False, id="excluded by key"),
        pytest.param(["k=v:NoSchedule"], {"excludedTaints": ["k=v"]}, False, id="excluded by key and value"),
        pytest.param(["k=v:NoSchedule"], {"excludedTaints": ["k=w"]}, True, id="another value"),
        pytest.param(["k:NoSchedule"], {"excludedTaints": ["k="]}, True, id="an empty value excludes nothing"),
        pytest.param(["k=v:NoSchedule", "l:NoSchedule"], {"excludedTaints": ["k"]}, True, id="another taint counts"),
        pytest.param(["k=v:NoSchedule"], {"includedTaints": ["k"]}, True, id="included by key"),
        pytest.param(["k=v:NoSchedule"], {"includedTaints": ["k=v"]}, True, id="included by key and value"),
        pytest.param(["k=v:NoSchedule"], {"includedTaints": ["l"]}, False, id="only another one is included"),
        pytest.param(["k=v:NoSchedule"], {"includedTaints": []}, False, id="nothing is included"),
        pytest.param(["k=v:NoSchedule"], {"includedTaints": None}, True, id="null is not given"),
    ],
)
def test_which_taints_count(taints, args, expected):
    """For a pod without tolerations."""
    assert goes(taints, args) is expected


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param(["k=v"], False, id="the taint"),
        pytest.param(["*"], False, id="everything"),
        pytest.param(["other"], True, id="another one"),
        pytest.param(["k:NoExecute"], True, id="another effect"),
    ],
)
def test_tolerated_taints_are_no_reason(tolerations, expected):
    """Each counting taint needs a toleration."""
    assert goes(["k=v:NoSchedule"], tolerations=tolerations) is expected


def test_one_taint_that_is_not_tolerated_is_enough():
    """The reason names it, and the node."""
    ledger = run(["k:NoSchedule", "l=w:NoSchedule"], [pod("a", tolerations=["k"])])

    assert text(ledger.evictions[0].because) == "does not tolerate taint l=w:NoSchedule of n1"


def test_a_tolerated_taint_among_the_included_leaves_the_others_uncounted():
    """They are not included."""
    taints = ["k=v:NoSchedule", "l=w:NoSchedule"]

    assert not goes(taints, {"includedTaints": ["k=v"]}, tolerations=["k"])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_stay(phase):
    """They take no room."""
    assert not goes(["k:NoSchedule"], phase=phase)


def test_namespaces_and_labels_narrow_the_choice():
    """As everywhere."""
    args = {"namespaces": {"include": ["x"]}, "labelSelector": {"matchLabels": {"x": "y"}}}

    assert goes(["k:NoSchedule"], args, namespace="x", labels={"x": "y"})
    assert not goes(["k:NoSchedule"], args, namespace="x")
    assert not goes(["k:NoSchedule"], args, labels={"x": "y"})


def test_the_oldest_go_first_and_limits_hold():
    """Node by node."""
    pods = [pod("young", age=1), pod("old", age=9), pod("elsewhere", node="n2")]
    other = node("n2", taints=["k:NoSchedule"])

    assert evicted(run(["k:NoSchedule"], pods, other=other)) == ["old", "young", "elsewhere"]
    assert evicted(run(["k:NoSchedule"], pods, other=other, limits=Limits(per_node=1))) == ["old", "elsewhere"]
    assert evicted(run(["k:NoSchedule"], pods, other=other, limits=Limits(total=1))) == ["old"]


def test_a_pod_that_tolerates_no_other_node_either_stays_with_node_fit():
    """The other node is tainted too."""
    other = node("n2", taints=["k:NoSchedule"])

    ledger = run(["k:NoSchedule"], [pod("a")], other=other, evictor={"nodeFit": True})

    assert refused(ledger) == {"a": "NodeFit"}


def test_both_lists_of_taints_are_refused():
    """One of them says it all."""
    with pytest.raises(ValidationError, match="not both"):
        RemovePodsViolatingNodeTaintsArgs.model_validate({"includedTaints": ["a"], "excludedTaints": ["b"]})
