"""The index by labels finds what looking at every pod would find."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.label_index import SelectorIndex, of_pods
from rebalancer.cluster.selectors import LabelSelector, Requirement
from tests.make import pod

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"))
VALUES = st.lists(st.sampled_from("1239"), min_size=1, max_size=3).map(tuple)
REQUIREMENTS = st.one_of(
    st.builds(Requirement, st.sampled_from("abcd"), st.sampled_from(("In", "NotIn")), VALUES),
    st.builds(Requirement, st.sampled_from("abcd"), st.sampled_from(("Exists", "DoesNotExist"))),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=3).map(lambda each: LabelSelector(tuple(each)))


@given(st.lists(LABELS, max_size=4), st.data(), SELECTORS)
def test_the_index_finds_what_a_scan_finds(labels, data, selector):
    """Nothing that was taken out, whether pods share labels, values are listed twice, or no label is asked for."""
    shared = data.draw(st.lists(st.sampled_from(labels or [{}]), max_size=8))
    pods = [pod(f"p{number}", labels=each) for number, each in enumerate(shared)]
    gone = data.draw(st.sets(st.sampled_from(pods))) if pods else set()
    index = of_pods(pods)
    for each in gone:
        index.remove(each.labels, each)

    assert {*index.matching(selector)} == {each for each in pods if selector.matches(each.labels)} - gone


@given(st.lists(SELECTORS, max_size=6), LABELS)
def test_selectors_are_found_as_a_scan_finds_them(selectors, labels):
    index = SelectorIndex()
    for number, selector in enumerate(selectors):
        index.add(selector, number)

    assert sorted(index.matching(labels)) == [
        number for number, selector in enumerate(selectors) if selector.matches(labels)
    ]
