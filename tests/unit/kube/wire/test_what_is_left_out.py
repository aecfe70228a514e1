"""What an object leaves out, or says in the least amount, means what Kubernetes takes it for."""

from typing import Any

import pytest

from rebalancer.cluster.taints import Toleration
from tests.unit.kube.wire.documents import pod_document, read, read_pod

CPU_AND_MEMORY = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("wire", "model"),
    [
        pytest.param({"operator": "Exists"}, Toleration("", "Exists", "", ""), id="everything"),
        pytest.param({"key": "k", "operator": "Equal"}, Toleration("k", "Equal", "", ""), id="the operator"),
        pytest.param({"key": "k", "value": None, "effect": None}, Toleration("k", "", "", ""), id="null is nothing"),
    ],
)
def test_a_toleration(wire: dict[str, Any], model: Toleration) -> None:
    """Its operator is kept, and null is not a value."""
    assert read_pod(spec={"tolerations": [wire]}).spec.tolerations == (model,)


def test_a_spread_constraint() -> None:
    """By one pod at the most, and not in any other way."""
    (found,) = read_pod(spec={"topologySpreadConstraints": [{"topologyKey": "zone"}]}).spec.spread

    assert (found.max_skew, found.when_unsatisfiable) == (1, "DoNotSchedule")
    assert (found.node_affinity_policy, found.node_taints_policy) == ("Honor", "Ignore")


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        pytest.param([{"requests": CPU_AND_MEMORY}, {"limits": CPU_AND_MEMORY}], "Burstable", id="one has no limits"),
        pytest.param([{"requests": {"cpu": "1m"}}], "Burstable", id="the least there is"),
    ],
)
def test_quality_of_service_looks_at_each_container(resources: list[Any], quality: str) -> None:
    """Sums that agree are not enough, and a thousandth of a CPU is something."""
    containers = [{"name": f"c{number}", "resources": each} for number, each in enumerate(resources)]

    assert read_pod(spec={"containers": containers}).qos == quality


@pytest.mark.parametrize(
    ("metadata", "shown"), [({"namespace": "shop"}, "shop/bad"), ({"namespace": None}, "default/bad")]
)
def test_a_malformed_pod_without_a_node_is_on_none(metadata: dict[str, Any], shown: str) -> None:
    """It stays in its namespace, and on no node, also not on one that is called None."""
    (pod,) = read("Pod", pod_document("bad", **metadata, labels={"a": 1})).pods

    assert (str(pod), pod.node) == (shown, "")
