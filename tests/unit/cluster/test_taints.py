"""Which of several taints keeps a pod away; what a toleration matches is a property."""

from rebalancer.cluster.taints import Taint, Toleration, untolerated


def test_every_hard_taint_needs_a_toleration_and_soft_ones_none() -> None:
    soft, hard, harder = Taint("a", "", "PreferNoSchedule"), Taint("b", "", "NoSchedule"), Taint("c", "", "NoExecute")

    assert untolerated([], [soft, hard, harder]) == hard
    assert untolerated([Toleration("b", "Exists")], [soft, hard, harder]) == harder
    assert untolerated([Toleration("", "Exists")], [soft, hard, harder]) is None
    assert untolerated([], [soft, hard], counts=lambda _: True) == soft
