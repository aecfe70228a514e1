"""Groups of constraints give the same answer as asking every node, and ask nodes that are alike only once."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.scheduling.fit import ConstraintGroups, why_placement_fails
from tests.make import node, toleration

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
TAINTS = st.lists(
    st.sampled_from(["k=1:NoSchedule", "k=1:NoExecute", "l:NoSchedule", "k:PreferNoSchedule"]), max_size=2
)
TOLERATIONS = st.lists(st.sampled_from(["*", "k", "k=1:NoSchedule", "l"]), max_size=2)
EXPRESSIONS = st.one_of(
    st.builds(Requirement, st.sampled_from("abc"), st.sampled_from(["In", "NotIn"]), st.just(("x",))),
    st.builds(Requirement, st.sampled_from("abc"), st.sampled_from(["Exists", "DoesNotExist"])),
)
FIELDS = st.builds(Requirement, st.just("metadata.name"), st.just("In"), st.just(("n0", "n2")))
TERMS = st.builds(
    NodeSelectorTerm,
    st.lists(EXPRESSIONS, max_size=2).map(tuple),
    st.lists(FIELDS, max_size=1).map(tuple),
)
SPECS = st.builds(
    PodSpec,
    requests=st.just({}),
    tolerations=TOLERATIONS.map(lambda each: tuple(map(toleration, each))),
    node_selector=st.none() | LABELS,
    node_terms=st.none() | st.lists(TERMS, max_size=2).map(tuple),
)


@given(st.lists(st.tuples(LABELS, TAINTS), max_size=6), st.lists(SPECS, min_size=1, max_size=6))
def test_it_is_as_if_each_node_were_asked(nodes, specs):
    """Whatever was asked before."""
    made = [node(f"n{i}", labels=labels, taints=taints) for i, (labels, taints) in enumerate(nodes)]
    groups = ConstraintGroups(made)

    for spec in specs:
        assert groups.of(spec).names == {each.name for each in made if not why_placement_fails(spec, each)}


def test_equal_constraints_share_one_answer():
    """Tolerations in another order, and labels that a spec does not ask about, make no difference."""
    groups = ConstraintGroups([node(f"n{i}", labels={"a": "x"}) for i in range(3)])
    one = PodSpec(requests={}, tolerations=(toleration("a"), toleration("b")))
    other = PodSpec(requests={"cpu": 5}, tolerations=(toleration("b"), toleration("a")))

    assert groups.of(one).names is groups.of(other).names
