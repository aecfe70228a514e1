"""What is ours on a node, of each kind of marks, and what is not."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.kube.marks import HoldMark, HoldMarks, Mark, MarkedNode, SteeringMarks, Wanted, without_run
from rebalancer.kube.node_marks import patch
from rebalancer.kube.pressure_marks import Occupied, PressureMark, PressureMarks, Shown, standing
from rebalancer.marking.evaluation import Pressure
from rebalancer.marking.rules import Sign, Signs
from tests.fake_patches import FailedError, patched
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

#: Keys and values of taints and labels on nodes: of each kind, of others, and of others that look like ours.
TAINTS = {
    STEERING: (("spot", "old", AVOID, f"{AVOID}-more"), ("", "run-1", "run-2")),
    HELD: ((HOLD, "spot"), ("", "run-1")),
    **dict.fromkeys((LABEL, TAINT), (("old", PRESSURE), ("", "cpu"))),
    BOTH: (("old", PRESSURE, "example.com/hot"), ("", "cpu", "yes")),
}
LABELS = (("status", PRESSURE, "old"), ("", "cpu", "presure"))
TIMES = st.sampled_from((NOW - timedelta(minutes=1), NOW, LATER))
RUNS = st.sampled_from(("run-1", "run-2"))
RULES = st.sampled_from((("cpu",), ("cpu", "memory"), ("memory", "cpu"))).map(
    lambda names: dict.fromkeys(names, Shown(NOW, LATER, 85.0))
)
PRESSURES = RULES.map(lambda rules: tuple(Pressure(name, NOW, LATER, 85.0) for name in rules))
NAMED = st.sampled_from(("", "old=cpu", "status=presure", "example.com/hot=yes", "no key", "old"))
UNREADABLE = ("", "{}", "null", '{"run": 1}', '{"run": "r", "rules": {}}', '{"run":"r","keys":[],"expires":"soon"}')
NO_ZONE = json.dumps({"run": "r", "keys": [], "expires": "2026-01-15T12:00:00"})
NOTES = {
    STEERING: st.builds(Mark, RUNS, st.sampled_from((STEERING.at(1), STEERING.at(2), ("old",), ("spot",))), TIMES),
    HELD: st.builds(HoldMark, RUNS, TIMES),
    **dict.fromkeys(
        (LABEL, TAINT, BOTH),
        st.builds(PressureMark, RUNS, RULES, NAMED, NAMED),
    ),
}

#: What each kind sets on a node for a run.
SETS = {
    STEERING: st.sampled_from((1, 2)).map(
        lambda level: lambda node, run: STEERING.on(node, Mark(run, STEERING.at(level), LATER))
    ),
    HELD: st.just(lambda node, run: HELD.on(node, HoldMark(run, LATER))),
    **{
        kind: PRESSURES.map(lambda pressures, kind=kind: partial(kind.on, pressures=pressures))
        for kind in (LABEL, TAINT, BOTH)
    },
}


def nodes(kind):
    """Nodes with something of ours and of others."""
    keys, values = map(st.sampled_from, TAINTS[kind])
    taint = st.fixed_dictionaries(
        {"key": keys, "effect": st.sampled_from((SOFT, SOFT, "NoSchedule"))}, optional={"value": values}
    )
    taints = st.lists(taint, unique_by=lambda each: (each["key"], each["effect"]), max_size=5)
    note = st.none() | NOTES[kind].map(lambda mark: mark.text()) | st.sampled_from((*UNREADABLE, NO_ZONE))
    notes = st.dictionaries(st.sampled_from(("a", "b/c")), st.just("x"))
    labels = st.dictionaries(*map(st.sampled_from, LABELS), max_size=3)
    return st.builds(
        lambda taints, notes, note, labels: MarkedNode(
            "n1",
            "uid",
            taints or None,
            notes | ({} if note is None else {kind.annotation: note}) or None,
            labels or None,
        ),
        *(taints, notes, note, labels),
    )


def ours(kind, node):
    """The taints and the keys of the labels that are ours, by what the user's guide says."""
    soft = [each for each in node.taints or () if each["effect"] == SOFT]
    labels = (node.labels or {}).items()
    if kind is STEERING:
        return [each for each in soft if each["key"] in STEERING.at(2) or each.get("value") == "run-1"], []
    if kind is HELD:
        return [each for each in soft if each["key"] == HOLD], []
    mark = PressureMarks.read(node)

    def is_one(key, value, in_force, noted):
        is_of_rules = in_force and key == in_force.key and value in ((in_force.value,) if in_force.value else (value,))
        return bool(key == PRESSURE or is_of_rules or (f"{key}={value}" == noted and noted in kind.earlier))

    by_taint, by_label = (kind.signs.taint, mark.taint if mark else ""), (kind.signs.label, mark.label if mark else "")
    return (
        [each for each in soft if is_one(each["key"], each.get("value", ""), *by_taint)],
        [key for key, value in labels if is_one(key, value, *by_label)],
    )


def of_others(kind, node):
    """What of a node is not ours: it stays, and in its order."""
    taints, labels = ours(kind, node)
    return (
        [each for each in node.taints or () if each not in taints],
        {key: value for key, value in (node.labels or {}).items() if key not in labels},
        {key: value for key, value in (node.annotations or {}).items() if key != kind.annotation},
    )


OF_EACH_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@OF_EACH_KIND
@given(st.data())
def test_a_cleared_node_has_nothing_of_ours_and_all_of_others(kind, data):
    """The annotation stays with a label or taint that it alone names; where nothing is ours nothing is written."""
    node = data.draw(nodes(kind))

    found = after(node, kind.off(node))

    assert (list(found.taints or ()), found.labels or {}, of_others(kind, found)[2]) == of_others(kind, node)
    assert kind.is_on(found) == bool(kind.claim(node))
    assert kind.is_on(node) or not patch(node, kind.off(node))
    assert found.annotation(kind.annotation) == (node.annotation(kind.annotation) if kind.claim(node) else None)


@OF_EACH_KIND
@given(st.data())
def test_a_marked_node_carries_the_mark_and_all_of_others(kind, data):
    """It is done after one patch.  Or others have the place, and nothing is changed."""
    node, change = data.draw(nodes(kind)), data.draw(SETS[kind])
    foreign, labels, notes = of_others(kind, node)
    try:
        wanted = change(node, "run-2")
    except Occupied:
        keys = {sign.key for sign in (kind.signs.label, kind.signs.taint) if sign}
        assert keys & {*labels, *(each["key"] for each in foreign if each["effect"] == SOFT)}
        return

    found = after(node, wanted)

    set_by_us = [each for each in found.taints or () if each not in foreign]
    assert [each for each in found.taints or () if each in foreign] == foreign
    assert set_by_us == ours(kind, found)[0] or kind is STEERING
    assert (found.labels or {}).items() >= labels.items()
    assert of_others(kind, found)[2] == notes
    assert patch(found, wanted) == patch(found, change(found, "run-2" if kind is STEERING else "run-3")) == []
    assert kind in (STEERING, HELD) or standing(found) == change.keywords["pressures"]


@OF_EACH_KIND
@given(st.data())
def test_a_patch_fails_if_what_is_ours_was_changed(kind, data):
    """A taint, our annotation or a label that is written: another has written since, so the node is read again."""
    read, other, change = (
        data.draw(nodes(kind)),
        data.draw(nodes(kind)),
        data.draw(SETS[kind] | st.just(lambda node, _: kind.off(node))),
    )
    try:
        operations = patch(read, wanted := change(read, "run-2"))
    except Occupied:
        return
    written = [[(each.labels or {}).get(key) for key in wanted.labels] for each in (read, other)]
    notes = [each.annotation(kind.annotation) for each in (read, other)]
    if operations and (written[0] != written[1] or notes[0] != notes[1] or read.taints != other.taints):
        with pytest.raises(FailedError):
            patched(as_object(other), operations)


@given(nodes(STEERING), RUNS)
def test_a_run_takes_off_its_own_alone(node, run):
    found, mark = after(node, without_run(node, run)), STEERING.read(node)

    kept = [each for each in node.taints or () if each["effect"] != SOFT or each.get("value") != run]
    assert (list(found.taints or ()), found.labels) == (kept, node.labels)
    assert of_others(STEERING, found)[2] == of_others(STEERING, node)[2]
    assert found.annotation(AVOID) == (None if mark and mark.run == run else node.annotation(AVOID))


def test_a_hold_that_ends_later_stays():
    node = MarkedNode("n1", "uid", None, {HOLD: (longer := HoldMark("run-0", LATER)).text()})

    assert HELD.on(node, HoldMark("run-1", NOW)).annotations == {HOLD: longer.text()}


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
            PressureMark("r", {"cpu": Shown(NOW, LATER)}, label="status=hot", taint="hot=yes"),
            f"the label status=hot, the taint hot=yes:{SOFT}, which nobody has noted as ours",
        ),
        (TAINT, PressureMark("r", {"cpu": Shown(NOW, LATER)}, label="status", taint="hot"), ""),
    ],
)
def test_what_an_annotation_alone_says_to_be_ours_is_told(kind, mark, claim):
    """Another value under its key is another's, and is not even named; without a value nothing is said."""
    taints = [
        {"key": "hot", "value": value, "effect": effect} for value, effect in (("yes", SOFT), ("no", "NoExecute"))
    ]
    node = MarkedNode("n1", "7", taints, {kind.annotation: mark.text()}, {"status": "hot", "zone": "a"})

    assert kind.claim(node) == (f"node n1 keeps {claim}" if claim else "")
    assert not kind.claim(MarkedNode("n1", "7", taints[1:], node.annotations, {"status": "cold"}))


def test_a_taint_that_is_already_as_wanted_keeps_its_place():
    """Also with a taint of others behind it, so that nothing is written."""
    taints = [{"key": "example.com/hot", "value": "yes", "effect": SOFT}, {"key": "spot", "effect": "NoSchedule"}]

    assert BOTH.on(MarkedNode("n1", "u", taints, None), "r", (Pressure("cpu", NOW, LATER, 1.0),)).taints == taints


def test_what_the_annotation_names_is_taken_off_after_the_rules_were_changed():
    """Label and taint; from then on it names what the new rules set."""
    pressures = (Pressure("cpu", NOW, LATER, 1.0),)
    bare, new = MarkedNode("n1", "u", None, None), PressureMarks(LABEL.signs, BOTH.earlier)
    marked = after(bare, BOTH.on(bare, "run-1", pressures))
    assert (marked.labels, len(marked.taints)) == ({"status": "presure"}, 1)

    found = after(marked, new.on(marked, "run-2", pressures))

    assert (found.taints, found.labels) == (None, {PRESSURE: "cpu"})
    mark = PressureMarks.read(found)
    assert (mark.label, mark.taint) == (f"{PRESSURE}=cpu", "")


def test_a_place_that_others_have_is_named():
    taken = MarkedNode("n1", "u", None, None, {"status": "mine"})
    with pytest.raises(Occupied, match=r"node n1 has the label status=mine, which is not ours: it stays as it is"):
        BOTH.on(taken, "run-1", (Pressure("cpu", NOW, LATER, 1.0),))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, (Pressure("cpu", NOW, LATER, 0.0),)),
        ({"since": "2026-01-15T12:00:00"}, ()),
        ({"until": "2026-01-15T12:15:00"}, ()),
    ],
    ids=["no value, which is only shown", "no zone", "no zone of the end"],
)
def test_a_mark_of_which_can_be_told_when_it_ends_is_one(change, found):
    """A time without a zone says nothing."""
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
