"""Label selectors agree with an obvious model, in both of their forms."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.selectors import parse_label_selector, parse_selector_text

KEYS = st.sampled_from(("a", "b", "example.com/c"))
VALUES = st.sampled_from(("", "x", "y", "10"))
LABELS = st.dictionaries(KEYS, VALUES)
VALUE_LISTS = st.lists(VALUES, min_size=1, max_size=3)
BLANKS = st.sampled_from(("", " ", "  "))

#: key, operator, values
CONDITIONS = st.lists(
    st.one_of(
        st.tuples(KEYS, st.sampled_from(("In", "NotIn")), VALUE_LISTS),
        st.tuples(KEYS, st.sampled_from(("Exists", "DoesNotExist")), st.just([])),
    ),
    max_size=4,
)


def holds(key, operator, values, labels):
    match operator:
        case "In":
            return any(labels.get(key) == value for value in values)
        case "NotIn":
            return all(labels.get(key) != value for value in values)
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def text_of(key, operator, values, blank):
    listed = f"({blank}{f'{blank},{blank}'.join(values)}{blank})"
    match operator:
        case "In" if len(values) == 1 and values[0]:
            return f"{key}{blank}={blank}{values[0]}"
        case "NotIn" if len(values) == 1 and values[0]:
            return f"{key}{blank}!={blank}{values[0]}"
        case "In":
            return f"{key} in {blank}{listed}"
        case "NotIn":
            return f"{key} notin {blank}{listed}"
        case "Exists":
            return key
        case _:
            return f"!{blank}{key}"


@given(LABELS, LABELS)
def test_match_labels_are_equalities(wanted, labels):
    assert parse_label_selector({"matchLabels": wanted}).matches(labels) == (wanted.items() <= labels.items())


@given(CONDITIONS, LABELS, BLANKS)
def test_both_forms_mean_what_their_conditions_say(conditions, labels, blank):
    """All of them must hold; with blanks where kubectl allows them."""
    text = f"{blank},{blank}".join(text_of(*each, blank) for each in conditions)
    expressions = [{"key": key, "operator": operator, "values": values} for key, operator, values in conditions]

    selector = parse_selector_text(text)

    assert selector == parse_label_selector({"matchExpressions": expressions})
    assert selector.matches(labels) == all(holds(*each, labels) for each in conditions)


@given(st.text("ab=!,() in<>1-.", max_size=12))
def test_every_text_is_a_selector_or_refused(text):
    """Nothing but ValueError is raised, and what is read can be asked."""
    with suppress(ValueError):
        assert parse_selector_text(text).matches({}) in (True, False)
