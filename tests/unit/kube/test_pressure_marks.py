"""What a mark of pressure changes on a node, and what it does not."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rebalancer.kube.marks import MarkedNode, Wanted
from rebalancer.kube.node_marks import patch
from rebalancer.kube.pressure_marks import ANNOTATION, Occupied, PressureMark, PressureMarks, Shown, mark_of, standing
from rebalancer.marking.evaluation import Pressure
from rebalancer.marking.rules import Sign, Signs
from tests.fake_patches import FailedError, patched
from tests.unit.kube.marked_nodes import after, as_object, as_read, taints

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
UNTIL = NOW + timedelta(minutes=15)
OURS = Sign("kube-rebalancer/pressure")
SIGNS = (
    Signs(label=OURS),
    Signs(taint=OURS),
    Signs(label=OURS, taint=OURS),
    Signs(label=Sign("status", "presure"), taint=Sign("example.com/hot", "yes")),
)
EARLIER = ("status=presure", "example.com/hot=yes")
KEYS = ("kube-rebalancer/pressure", "status", "example.com/hot", "spot")
VALUES = ("", "cpu", "presure", "yes", "mine")


def marks(signs, earlier=()):
    return PressureMarks(signs, earlier)


HARD = {"key": "example.com/hot", "value": "yes", "effect": "NoSchedule"}
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
TAINTS = taints(KEYS, VALUES)
NAMED = st.sampled_from(("", "status=presure", "example.com/hot=yes", "kubernetes.io/os=linux", "no key", "spot"))
NOTES = st.sampled_from(("", "{}", "null", '{"run": 1}', '{"run": "r", "rules": {}}')) | st.builds(
    lambda label, taint: PressureMark("run-1", {"cpu": Shown(NOW, UNTIL, 85.0)}, label, taint).text(), NAMED, NAMED
)
PRESSURE = (Pressure("cpu", NOW, UNTIL, 85.0),)
PRESSURES = st.sampled_from(
    ((Pressure("cpu", NOW, UNTIL, 85.0),), (Pressure("memory", NOW, UNTIL, 0.5), Pressure("cpu", NOW, UNTIL, 1.0)))
)


@st.composite
def nodes(draw):
    annotations = draw(st.dictionaries(st.sampled_from(("a", "b/c")), st.just("x")))
    annotations |= {ANNOTATION: draw(NOTES)} if draw(st.booleans()) else {}
    return MarkedNode("n1", "uid", draw(TAINTS) or None, annotations or None, draw(LABELS) or None)


def ours(node, signs):
    """Labels and taints that are ours, by the rules in force, or by the annotation and the record."""
    mark = mark_of(node)
    labels = {each for each in (str(OURS), str(signs.label or ""), mark.label if mark else "") if each}
    taints = {each for each in (str(OURS), str(signs.taint or ""), mark.taint if mark else "") if each}
    named = {*EARLIER, str(OURS)}

    def is_one(key, value, wanted):
        return bool({key, f"{key}={value}"} & wanted & named)

    return (
        {key for key, value in (node.labels or {}).items() if is_one(key, value, labels)},
        [
            each
            for each in node.taints or ()
            if each["effect"] != "NoSchedule" and is_one(each["key"], each["value"], taints)
        ],
    )


@given(nodes(), st.sampled_from(SIGNS))
def test_a_cleared_node_has_nothing_of_ours_and_all_of_others(node, signs):
    """Labels, taints in their order, annotations, the rest of the node."""
    labels, taints = ours(node, signs)

    found = after(node, marks(signs, EARLIER).off(node))

    assert found.labels == ({key: value for key, value in (node.labels or {}).items() if key not in labels} or None)
    assert list(found.taints or ()) == [each for each in node.taints or () if each not in taints]
    assert found.annotations == ({k: v for k, v in (node.annotations or {}).items() if k != ANNOTATION} or None)


@given(nodes(), st.sampled_from(SIGNS))
@example(MarkedNode("n1", "uid", None, {ANNOTATION: "{}"}), SIGNS[0])
@example(MarkedNode("n1", "uid", [{"key": OURS.key, "effect": "PreferNoSchedule"}], None), SIGNS[1])
def test_a_node_that_carries_nothing_of_ours_needs_no_clearing(node, signs):
    assert marks(signs, EARLIER).is_on(node) == bool(patch(node, marks(signs, EARLIER).off(node)))


@given(nodes(), st.sampled_from(SIGNS), PRESSURES)
@example(MarkedNode("n1", "uid", [HARD], None), SIGNS[3], PRESSURE)
def test_a_marked_node_carries_the_mark_and_all_of_others(node, signs, pressures):
    """Once; or nothing is changed, since others have the place; a hard taint of theirs is beside ours."""
    labels, taints = ours(node, signs)
    try:
        wanted = marks(signs, EARLIER).on(node, "run-2", pressures)
    except Occupied:
        assert {sign.key for sign in (signs.label, signs.taint) if sign} & {
            *(set(node.labels or ()) - labels),
            *(each["key"] for each in node.taints or () if each not in taints and each["effect"] != HARD["effect"]),
        }
        return
    found = after(node, wanted)

    rest = {key: value for key, value in (node.labels or {}).items() if key not in labels}
    rule = pressures[0].rule
    assert (found.labels or {}) == rest | ({signs.label.key: signs.label.on(rule).value} if signs.label else {})
    foreign = [each for each in node.taints or () if each not in taints]
    assert [each for each in found.taints or () if each in foreign] == foreign
    assert len(found.taints or ()) == len(foreign) + bool(signs.taint)
    assert mark_of(found).pressures == pressures
    assert patch(found, marks(signs, EARLIER).on(found, "run-3", pressures)) == []
    assert after(found, marks(signs, EARLIER).off(found)).labels == (rest or None)


def labels_tested(node, operations):
    """Labels of the keys that a patch names, or all of them if it tests that there are none."""
    labels, whole = node.labels or {}, "/metadata/labels"
    paths = {operation["path"] for operation in operations}
    below = {path.removeprefix(f"{whole}/").replace("~1", "/") for path in paths if path.startswith(f"{whole}/")}
    return {key: value for key, value in labels.items() if whole in paths or key in below}


@given(nodes(), nodes(), st.sampled_from(SIGNS), PRESSURES)
@example(  # a taint alone is ours: the label of that key is not
    MarkedNode("n1", "uid", [{"key": OURS.key, "value": "presure", "effect": "NoSchedule"}], None, None),
    MarkedNode("n1", "uid", [{"key": OURS.key, "value": "presure", "effect": "NoSchedule"}], None, {OURS.key: ""}),
    Signs(taint=OURS),
    PRESSURE,
)
def test_a_patch_fails_if_what_is_ours_was_changed(read, other, signs, pressures):
    """A label of the key, a taint, or the annotation: another has written since, so the node is read again."""
    try:
        operations = patch(read, marks(signs, EARLIER).on(read, "run-2", pressures))
    except Occupied:
        return
    labels = [labels_tested(each, operations) for each in (read, other)]
    notes = [(each.annotations or {}).get(ANNOTATION) for each in (read, other)]
    same = labels[0] == labels[1] and notes[0] == notes[1] and read.taints == other.taints
    if operations and not same:
        with pytest.raises(FailedError):
            patched(as_object(other), operations)


def test_a_place_that_others_have_is_named():
    taken = MarkedNode("n1", "u", None, None, {"status": "mine"})
    with pytest.raises(Occupied, match=r"node n1 has the label status=mine, which is not ours: it stays as it is"):
        marks(SIGNS[3]).on(taken, "run-1", (Pressure("cpu", NOW, UNTIL, 1.0),))


def test_a_taint_that_is_already_as_wanted_keeps_its_place():
    """Also with a taint of others behind it, so that nothing is written."""
    foreign = {"key": "spot", "value": "", "effect": "NoSchedule"}
    before = as_object(MarkedNode("n1", "uid", None, None))
    one = patched(before, patch(as_read(before), marks(SIGNS[3]).on(as_read(before), "run-1", PRESSURE)))
    one["spec"]["taints"].append(foreign)

    assert patch(as_read(one), marks(SIGNS[3]).on(as_read(one), "run-2", PRESSURE)) == []


@pytest.mark.parametrize(("old", "new"), [("label", Signs(taint=OURS)), ("taint", Signs(label=OURS))])
def test_what_the_annotation_names_is_taken_off_after_the_rules_were_changed(old, new):
    """Label or taint; from then on it names none."""
    marked = marks(SIGNS[3]).on(MarkedNode("n1", "u", None, None), "run-1", PRESSURE)
    labels = {"status": "presure"} if old == "label" else None
    node = MarkedNode("n1", "u", marked.taints, {ANNOTATION: marked.note}, labels)

    wanted = marks(new, EARLIER).on(node, "run-2", PRESSURE)
    assert old == "taint" or wanted.labels == {"status": None}
    assert old == "label" or wanted.taints == marks(new, EARLIER).off(node).taints == []
    assert getattr(mark_of(MarkedNode("n1", "u", None, {ANNOTATION: wanted.note})), old) == ""


@pytest.mark.parametrize("value", [{}, {"value": None}, {"value": ""}])
def test_a_taint_without_a_value_has_none_of_ours(value):
    """Whatever word we have chosen for ours."""
    bare = {"key": "example.com/hot", "effect": "PreferNoSchedule"} | value

    for word in ("None", "yes"):
        signs = Signs(taint=Sign("example.com/hot", word))
        assert marks(signs).off(MarkedNode("n1", "u", [bare], None)).taints == [bare]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, (Pressure("cpu", NOW, UNTIL, 0.0),)),
        ({"since": "2026-01-15T12:00:00"}, ()),
        ({"until": "2026-01-15T12:15:00"}, ()),
    ],
    ids=["no value, which is only shown", "no zone", "no zone of the end"],
)
def test_a_mark_of_which_can_be_told_when_it_ends_is_one(change, found):
    """A time without a zone says nothing."""
    times = {"since": "2026-01-15T12:00:00Z", "until": "2026-01-15T12:15:00Z", **change}
    note = json.dumps({"run": "r", "rules": {"cpu": times}})

    assert standing(MarkedNode("n1", "u", None, {ANNOTATION: note})) == found


def test_a_mark_of_pressure_that_is_in_use_stays():
    """One that has expired is taken off, and so is one that cannot be read: nobody renews it."""
    taints = [{"key": OURS.key, "value": "cpu", "effect": "PreferNoSchedule"}]
    note = PressureMark("run-1", {"cpu": Shown(NOW, UNTIL, 85.0)}, "", f"{OURS}=cpu").text()
    node = MarkedNode("n1", "u", taints, {ANNOTATION: note})
    unreadable = MarkedNode("n1", "u", taints, {ANNOTATION: "{"})
    fresh, over = (PressureMarks(SIGNS[1]).kind(lambda _, is_over=each: is_over) for each in (False, True))

    assert patch(node, fresh.cleared(node)) == []
    for each, kind in ((node, over), (unreadable, fresh)):
        assert kind.cleared(each) == Wanted([], None, ANNOTATION)
