"""Quantities, requests, tolerations and selectors agree with an obvious reading of Kubernetes' rules."""

from contextlib import suppress
from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.resources import effective_requests, parse_milli_quantity, parse_quantity
from rebalancer.cluster.selectors import parse_label_selector, parse_selector_text
from rebalancer.cluster.taints import Taint, Toleration

BINARY = {suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
DECIMAL = {
    suffix: Fraction(1000) ** power
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
DIGITS = st.text("0123456789", min_size=1, max_size=8)
NUMBERS = st.one_of(
    DIGITS, st.builds("{}.{}".format, DIGITS, DIGITS), st.builds(".{}".format, DIGITS), st.builds("{}.".format, DIGITS)
)


def value_of(number: str) -> Fraction:
    whole, _, fraction = number.partition(".")
    return Fraction(int(whole or "0")) + Fraction(int(fraction or "0"), 10 ** len(fraction))


def units_and_thousandths(text: str) -> tuple[int, int]:
    return parse_quantity(text), parse_milli_quantity(text)


def rounded_up(value: Fraction) -> tuple[int, int]:
    return ceil(value), ceil(value * 1000)


@given(st.sampled_from(("", "+")), NUMBERS, st.sampled_from(sorted((BINARY | DECIMAL).items())))
def test_a_suffix_is_a_factor_and_fractions_are_rounded_up(sign, number, suffix):
    name, factor = suffix
    assert units_and_thousandths(sign + number + name) == rounded_up(value_of(number) * factor)


@given(NUMBERS, st.sampled_from("eE"), st.sampled_from(("", "+", "-")), st.integers(0, 18))
def test_an_exponent_is_a_power_of_ten(number, letter, sign, exponent):
    value = value_of(number) * Fraction(10) ** int(f"{sign}{exponent}")

    assert units_and_thousandths(f"{number}{letter}{sign}{exponent}") == rounded_up(value)


@given(st.just(0.0) | st.floats(1e-9, 1e15))
def test_numbers_of_yaml_are_read_as_they_stand(number):
    """A fraction is not an error, and it is rounded up as any other."""
    assert parse_quantity(number) == ceil(Fraction(str(number)))


@given(st.text(max_size=12))
def test_every_text_is_a_quantity_or_refused(text):
    with suppress(ValueError):
        assert parse_quantity(text) is not None


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


TAINT_KEYS = st.sampled_from(("", "a", "b"))
TEXTS = st.sampled_from(("", "x", "1", "2", "10", "-3", "01", "+1", "9" * 5000))
EFFECTS = st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule"))


def number(text):
    fits = text.lstrip("-").isdigit() and len(text) < 20
    return int(text) if fits and str(int(text)) == text else None


@given(
    st.builds(
        Toleration,
        TAINT_KEYS,
        st.sampled_from(("", "Equal", "Exists", "Lt", "Gt", "Near")),
        TEXTS,
        EFFECTS | st.just(""),
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
