"""What the snapshot keeps in mind is what working it out anew would give, whatever has left since."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.scheduling import fit
from rebalancer.scheduling.eligibility import EligibleNodes
from tests import make
from tests.properties.crowds import NODES, pods

APART = PodAffinityTerm("kubernetes.io/hostname", make.selector(app="x"))


def anew(pod, node, remaining):
    """Every rule asked again, over the pods that remain."""
    residents = [each for each in remaining if each.node == node.name and each.active]
    used = {"pods": len(residents)}
    for each in residents:
        for name, amount in each.spec.requests.items():
            used[name] = used.get(name, 0) + amount

    def free(name):
        return node.allocatable.get(name, 0) - used.get(name, 0)

    return (
        fit.why_placement_fails(pod.spec, node)
        or fit.why_repelled(pod, node, sorted(residents, key=lambda each: each.age_order))
        or (None if pod.node == node.name else fit.why_too_full(pod.spec, free))
    )


@given(NODES, pods(), st.data())
def test_fit_is_the_same_after_any_removals(nodes, crowd, data):
    """Asked before and after, so that anything kept too long would show."""
    crowd += [make.pod(f"shy{number}", node=each.name, anti_affinity=(APART,)) for number, each in enumerate(nodes)]
    on = make.cluster(nodes, crowd)
    eligible = on.index(EligibleNodes)
    others = eligible.among(nodes)
    leaving = data.draw(st.lists(st.sampled_from(crowd), unique=True), label="leaving")

    for gone in [None, *leaving]:
        if gone is not None:
            on.evicted(gone)
        remaining = [pod for pod in crowd if on.contains(pod)]
        for pod in crowd:
            expected = {node.name: anew(pod, node, remaining) for node in nodes}
            assert {node.name: eligible.why_not(pod, node) for node in nodes} == expected
            assert others.any_for(pod) == any(not why for name, why in expected.items() if name != pod.node)
