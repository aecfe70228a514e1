"""Effective requests agree with the formula as the documentation states it, and taints with the rules for them."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.resources import effective_requests
from rebalancer.cluster.taints import Taint, Toleration

NAMES = ("cpu", "memory", "hugepages-2Mi", "example.com/gpu")
AMOUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9))


def formula(name, containers, inits, pod_level, overhead):
    """For one resource, in the words of the specification."""
    main = sum(each.get(name, 0) for each in containers)
    side = peak = 0
    for requests, restartable in inits:
        if restartable:
            main += requests.get(name, 0)
            side += requests.get(name, 0)
            here = side
        else:
            here = requests.get(name, 0) + side
        peak = max(peak, here)
    effective = max(main, peak)
    if name in pod_level and (name in ("cpu", "memory") or name.startswith("hugepages-")):
        effective = pod_level[name]
    return effective + overhead.get(name, 0)


@given(st.lists(AMOUNTS, max_size=3), st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=4), AMOUNTS, AMOUNTS)
def test_effective_requests_follow_the_formula(containers, inits, pod_level, overhead):
    found = effective_requests(containers, inits, pod_level, overhead)

    assert {name: found.get(name, 0) for name in NAMES} == {
        name: formula(name, containers, inits, pod_level, overhead) for name in NAMES
    }


KEYS = st.sampled_from(("", "a", "b"))
TEXTS = st.sampled_from(("", "x", "1", "2", "10", "-3", "01", "+1", "9" * 5000))
EFFECTS = st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule"))


def number(text):
    fits = text.lstrip("-").isdigit() and len(text) < 20
    return int(text) if fits and str(int(text)) == text else None


@given(
    st.builds(
        Toleration, KEYS, st.sampled_from(("", "Equal", "Exists", "Lt", "Gt", "Near")), TEXTS, EFFECTS | st.just("")
    ),
    st.builds(Taint, st.sampled_from(("a", "b")), TEXTS, EFFECTS),
)
def test_tolerations_follow_the_rules(toleration, taint):
    effect = not toleration.effect or toleration.effect == taint.effect
    key = not toleration.key or toleration.key == taint.key
    there, bound = number(taint.value), number(toleration.value)
    both = there is not None and bound is not None
    by_operator = {
        "": toleration.value == taint.value,
        "Equal": toleration.value == taint.value,
        "Exists": True,
        "Lt": both and there < bound,
        "Gt": both and there > bound,
    }

    assert toleration.tolerates(taint) == (effect and key and by_operator.get(toleration.operator, False))
