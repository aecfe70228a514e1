"""Taints and tolerations."""

import pytest

from rebalancer.cluster.taints import Taint, Toleration, untolerated

TAINT = Taint("gpu", "a100", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        pytest.param(Toleration("gpu", "Equal", "a100", "NoSchedule"), True, id="everything equal"),
        pytest.param(Toleration("gpu", "", "a100"), True, id="no operator means Equal, no effect means any"),
        pytest.param(Toleration("gpu", "Equal", "h100"), False, id="another value"),
        pytest.param(Toleration("gpu", "Exists"), True, id="Exists asks for no value"),
        pytest.param(Toleration("", "Exists"), True, id="no key means any"),
        pytest.param(Toleration("", "Equal", "a100"), True, id="also with Equal, where only the value counts"),
        pytest.param(Toleration("tpu", "Exists"), False, id="another key"),
        pytest.param(Toleration("gpu", "Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(Toleration("gpu", "In", "a100"), False, id="an operator that Kubernetes does not know"),
    ],
)
def test_key_value_and_effect_must_agree(toleration: Toleration, tolerates: bool) -> None:
    """The rules of the Kubernetes documentation."""
    assert toleration.tolerates(TAINT) is tolerates


@pytest.mark.parametrize(
    ("value", "operator", "bound", "tolerates"),
    [
        pytest.param("4", "Lt", "5", True, id="less than the bound"),
        pytest.param("5", "Lt", "5", False, id="Lt is strict"),
        pytest.param("6", "Gt", "5", True, id="greater than the bound"),
        pytest.param("-6", "Lt", "-5", True, id="negative numbers"),
        pytest.param("10", "Gt", "9", True, id="numbers are compared and not texts"),
        pytest.param("04", "Lt", "5", False, id="a leading zero is not a number"),
        pytest.param("four", "Lt", "5", False, id="the taint's value is none"),
        pytest.param("4", "Lt", "five", False, id="the bound is none"),
        pytest.param("4", "Lt", "9" * 5000, False, id="the bound is beyond all limits"),
    ],
)
def test_numeric_operators_compare_the_taint_with_the_toleration(
    value: str, operator: str, bound: str, tolerates: bool
) -> None:
    """Lt: the taint's value is less than the toleration's."""
    assert Toleration("k", operator, bound).tolerates(Taint("k", value, "NoSchedule")) is tolerates


def test_every_hard_taint_needs_a_toleration_and_soft_ones_none() -> None:
    """The first hard taint that nothing tolerates is the answer."""
    soft, hard, harder = Taint("a", "", "PreferNoSchedule"), Taint("b", "", "NoSchedule"), Taint("c", "", "NoExecute")

    assert untolerated([], [soft, hard, harder]) == hard
    assert untolerated([Toleration("b", "Exists")], [soft, hard, harder]) == harder
    assert untolerated([Toleration("", "Exists")], [soft, hard, harder]) is None
    assert untolerated([], [soft, hard], counts=lambda _: True) == soft
