"""What is ours on a node, of each kind of marks, and what is not."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.kube.marks import HoldMark, HoldMarks, Mark, MarkedNode, SteeringMarks, Wanted
from rebalancer.kube.node_marks import patch
from rebalancer.kube.pressure_marks import Occupied, PressureMark, PressureMarks, Shown, standing
from rebalancer.marking.evaluation import Pressure
from rebalancer.marking.rules import Sign, Signs
from tests.fake_rules import FailedError, patched
from tests.unit.kube.marked_nodes import after, as_object

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=15)
SOFT = "PreferNoSchedule"
AVOID, HOLD, PRESSURE = (f"kube-rebalancer/{each}" for each in ("avoid", "hold", "pressure"))

STEERING = SteeringMarks.of(AVOID, [Mark("run-1", (), NOW)])
HELD = HoldMarks()
LABEL, TAINT = (PressureMarks(Signs(**{form: Sign(PRESSURE)})) for form in ("label", "taint"))
BOTH = PressureMarks(
    Signs(label=Sign("status", "presure"), taint=Sign("example.com/hot", "yes")),
    earlier=("old=cpu", "status=presure", "example.com/hot=yes"),
)
KINDS = {"steering": STEERING, "holding": HELD, "a label": LABEL, "a taint": TAINT, "both, and before others": BOTH}

CPU = (Pressure("cpu", NOW, LATER, 85.0),)


def soft(key, value=None):
    return {"key": key, "effect": SOFT} | ({"value": value} if value else {})


#: What is ours on a node: taints, and keys of labels.
OURS = {
    STEERING: ([soft(AVOID), soft(f"{AVOID}-more", "run-2"), soft("old", "run-1")], ()),
    HELD: ([soft(HOLD)], ()),
    **dict.fromkeys((LABEL, TAINT), ([soft(PRESSURE, "memory")], (PRESSURE,))),
    BOTH: ([soft(PRESSURE, "memory"), soft("example.com/hot", "yes")], (PRESSURE, "status")),
}
OF_OTHERS = [
    *(soft("spot", "run-2"), soft("status", "presure")),
    *({"key": key, "value": "run-1", "effect": "NoSchedule"} for key in (AVOID, HOLD, PRESSURE, "example.com/hot")),
]
LABELS = {"zone": "a", PRESSURE: "memory", "status": "presure"}
RULES = {"cpu": Shown(NOW, LATER, 85.0)}
NOTES = {
    STEERING: Mark("run-2", STEERING.at(1), NOW),
    HELD: HoldMark("run-1", NOW),
    **dict.fromkeys((LABEL, TAINT, BOTH), PressureMark("run-1", RULES)),
}
UNREADABLE = ("", "{}", "null", '{"run": 1}', '{"run": "r", "rules": {}}', '{"run":"r","keys":[],"expires":"soon"}')
NO_ZONE = json.dumps({"run": "r", "keys": [], "expires": "2026-01-15T12:00:00"})
#: How each kind marks a node for run-3, and the taints and labels that it then carries.
SETS = {
    STEERING: (lambda node, run: STEERING.on(node, Mark(run, STEERING.at(2), LATER)), STEERING.at(2), {}),
    HELD: (lambda node, run: HELD.on(node, HoldMark(run, LATER)), (HOLD,), {}),
    LABEL: (partial(LABEL.on, pressures=CPU), (), {PRESSURE: "cpu"}),
    TAINT: (partial(TAINT.on, pressures=CPU), (PRESSURE,), {}),
    BOTH: (partial(BOTH.on, pressures=CPU), ("example.com/hot",), {"status": "presure"}),
}
VALUES = {STEERING: "run-3", HELD: None, TAINT: "cpu", BOTH: "yes"}


def nodes(kind):
    """Nodes with something of ours and of others."""
    taints = st.lists(
        st.sampled_from([*OURS[kind][0], *OF_OTHERS]), unique_by=lambda each: (each["key"], each["effect"])
    )
    note = st.sampled_from((None, NOTES[kind].text(), *UNREADABLE, NO_ZONE))
    labels = st.lists(st.sampled_from(list(LABELS.items())), unique=True).map(dict)
    return st.builds(
        lambda taints, note, labels: MarkedNode(
            *(
                "n1",
                "uid",
                taints or None,
                {"a": "x"} | ({} if note is None else {kind.annotation: note}),
                labels or None,
            )
        ),
        *(taints, note, labels),
    )


def of_others(kind, node):
    """What of a node is not ours: it stays, and in its order."""
    taints, labels = OURS[kind]
    return (
        [each for each in node.taints or () if each not in taints],
        {key: value for key, value in (node.labels or {}).items() if key not in labels},
    )


OF_EACH_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@OF_EACH_KIND
@given(st.data())
def test_a_cleared_node_has_nothing_of_ours_and_all_of_others(kind, data):
    """Where nothing is ours nothing is written."""
    node = data.draw(nodes(kind))

    found = after(node, kind.off(node))

    assert (list(found.taints or ()), found.labels or {}) == of_others(kind, node)
    assert found.annotations == {"a": "x"}
    assert (kind.is_on(found), kind.is_on(node)) == (False, bool(patch(node, kind.off(node))))


@OF_EACH_KIND
@given(st.data())
def test_a_marked_node_carries_the_mark_and_all_of_others(kind, data):
    """It is done after one patch, and another run has nothing to change."""
    node, (change, keys, shown) = data.draw(nodes(kind)), SETS[kind]
    foreign, labels = of_others(kind, node)

    found = after(node, change(node, "run-3"))

    assert [each for each in found.taints or () if each in foreign] == foreign
    assert [each for each in found.taints or () if each not in foreign] == [soft(key, VALUES[kind]) for key in keys]
    assert found.labels == (labels | shown or None)
    assert found.annotations.keys() == {"a", kind.annotation}
    assert patch(found, change(found, "run-3" if kind is STEERING else "run-4")) == []
    assert kind in (STEERING, HELD) or standing(found) == CPU


@OF_EACH_KIND
@given(st.data())
def test_a_patch_fails_if_what_is_ours_was_changed(kind, data):
    """A taint, our annotation or a label that is written: another has written since, so the node is read again."""
    read, other = data.draw(nodes(kind)), data.draw(nodes(kind))
    wanted = SETS[kind][0](read, "run-3") if data.draw(st.booleans()) else kind.off(read)
    operations = patch(read, wanted)
    looked_at = [
        (each.taints, each.annotation(kind.annotation), [(each.labels or {}).get(key) for key in wanted.labels])
        for each in (read, other)
    ]
    if operations and looked_at[0] != looked_at[1]:
        with pytest.raises(FailedError):
            patched(as_object(other), operations)


def test_what_is_already_as_wanted_stays():
    """A hold that ends later, and a taint in its place, also with one of others behind it: so nothing is written."""
    held = {HOLD: HoldMark("run-0", LATER).text()}
    taints = [soft("example.com/hot", "yes"), {"key": "spot", "effect": "NoSchedule"}]

    assert HELD.on(MarkedNode("n1", "u", None, held), HoldMark("run-1", NOW)).annotations == held
    assert BOTH.on(MarkedNode("n1", "u", taints, None), "r", CPU).taints == taints


def test_a_node_with_an_empty_list_of_taints_can_be_marked():
    """The API server knows no such list: where it is empty, there is none."""
    node = MarkedNode("n1", "uid-of-n1", [], None)
    wanted = STEERING.on(node, Mark("run-1", STEERING.at(1), NOW))

    assert after(node, wanted).taints == wanted.taints


@pytest.mark.parametrize(
    ("kind", "mark", "claim"),
    [
        (STEERING, Mark("yes", ("hot",), NOW), f"hot=yes:{SOFT}, which no run has noted as its own"),
        (
            LABEL,
            PressureMark("r", RULES, label="status=hot", taint="hot=yes"),
            f"the label status=hot, the taint hot=yes:{SOFT}, which nobody has noted as ours",
        ),
        (TAINT, PressureMark("r", RULES, label="status", taint="hot"), ""),
        (LABEL, PressureMark("r", RULES, label=f"{PRESSURE}=cpu"), ""),
    ],
)
def test_what_an_annotation_alone_says_to_be_ours_is_told(kind, mark, claim):
    """And the annotation stays.  Another value under its key is not even named; without a value nothing is said."""
    taints = [
        {"key": "hot", "value": value, "effect": effect} for value, effect in (("yes", SOFT), ("no", "NoExecute"))
    ]
    labels = {"status": "hot", "zone": "a", PRESSURE: "cpu"}
    node = MarkedNode("n1", "7", taints, {kind.annotation: mark.text()}, labels)

    assert kind.claim(node) == (f"node n1 keeps {claim}" if claim else "")
    assert kind.off(node).annotations == {kind.annotation: mark.text() if claim else None}
    assert not kind.claim(MarkedNode("n1", "7", taints[1:], node.annotations, {"status": "cold"}))


def test_what_the_annotation_names_is_taken_off_after_the_rules_were_changed():
    """Label and taint; from then on it names what the new rules set."""
    bare, new = MarkedNode("n1", "u", None, None), PressureMarks(LABEL.signs, BOTH.earlier)
    marked = after(bare, BOTH.on(bare, "run-1", CPU))
    assert (marked.labels, len(marked.taints)) == ({"status": "presure"}, 1)

    found = after(marked, new.on(marked, "run-2", CPU))

    assert (found.taints, found.labels) == (None, {PRESSURE: "cpu"})
    mark = PressureMarks.read(found)
    assert (mark.label, mark.taint) == (f"{PRESSURE}=cpu", "")


@pytest.mark.parametrize(
    ("taints", "labels", "words"),
    [
        (None, {"status": "mine"}, "the label status=mine"),
        ([soft("example.com/hot", "no")], None, f"the taint example.com/hot=no:{SOFT}"),
    ],
)
def test_a_place_that_others_have_is_named(taints, labels, words):
    with pytest.raises(Occupied, match=f"node n1 has {words}, which is not ours: it stays as it is"):
        BOTH.on(MarkedNode("n1", "u", taints, None, labels), "run-1", CPU)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, (Pressure("cpu", NOW, LATER, 0.0),)),
        ({"since": "2026-01-15T12:00:00"}, ()),
        ({"until": "2026-01-15T12:15:00"}, ()),
        ({"until": "9999-12-31T23:59:59-14:00"}, ()),
    ],
    ids=["no value, which is only shown", "no zone", "no zone of the end", "a time that UTC does not have"],
)
def test_a_mark_of_which_can_be_told_when_it_ends_is_one(change, found):
    """A time without a zone says nothing; one that cannot be written again would stop all marking."""
    times = {"since": "2026-01-15T12:00:00Z", "until": "2026-01-15T12:15:00Z", **change}
    note = json.dumps({"run": "r", "rules": {"cpu": times}})

    assert standing(MarkedNode("n1", "u", None, {PRESSURE: note})) == found


@pytest.mark.parametrize("value", [{}, {"value": None}, {"value": ""}])
def test_a_taint_without_a_value_has_none_of_ours(value):
    """Whatever word we have chosen for ours."""
    bare = {"key": "example.com/hot", "effect": SOFT} | value

    for word in ("None", "yes"):
        kind = PressureMarks(Signs(taint=Sign("example.com/hot", word)))
        assert kind.off(MarkedNode("n1", "u", [bare], None)) == Wanted([bare], {PRESSURE: None})
