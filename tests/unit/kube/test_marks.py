"""What is ours on a node, and what is not."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.kube.marks import (
    ANNOTATION,
    Keys,
    Mark,
    MarkedNode,
    Wanted,
    marked,
    steering_marks,
    unmarked,
    without_run,
)
from rebalancer.kube.node_marks import patch
from tests.fake_patches import FailedError, patched
from tests.unit.kube.marked_nodes import after, as_object, taints

KEYS = Keys.of("kube-rebalancer/avoid", ["run-1"])
NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NAMES = (
    "spot",
    "kube-rebalancer/avoid",
    "kube-rebalancer/avoid-more",
    "old/avoid",
    "node.kubernetes.io/memory-pressure",
)

TAINTS = taints(NAMES, ("", "run-1", "run-2", "true"), EFFECTS)
MARKS = st.builds(
    Mark,
    st.sampled_from(("run-1", "run-2")),
    st.sampled_from((KEYS.at(1), KEYS.at(2), ("old/avoid",), ("spot",))),
    st.sampled_from((NOW, NOW + timedelta(minutes=5))),
)
NOTES = (
    st.none()
    | MARKS.map(Mark.text)
    | st.sampled_from(("", "{}", "null", '{"run": 1}', '{"run":"run-1","keys":[],"expires":"soon"}'))
)


@st.composite
def nodes(draw):
    note = draw(NOTES)
    others = draw(st.dictionaries(st.sampled_from(("a", "b/c")), st.just("x")))
    annotations = others | ({ANNOTATION: note} if note is not None else {})
    return MarkedNode("n1", "uid-of-n1", draw(TAINTS) or None, annotations or None, {"zone": "a"})


def others(node):
    """Taints that are nobody's but others'; a value that is a run on record makes any soft taint ours."""
    return [
        each
        for each in node.taints or ()
        if each["effect"] != "PreferNoSchedule" or not (each["key"] in KEYS.at(2) or each["value"] in KEYS.runs)
    ]


CHANGES = st.one_of(
    MARKS.map(lambda mark: lambda node: marked(node, mark.of(KEYS.at(len(mark.keys))), KEYS)),
    st.just(lambda node: unmarked(node, KEYS)),
    st.sampled_from(("run-1", "run-2")).map(lambda run: lambda node: without_run(node, run)),
    st.just(steering_marks(KEYS, lambda mark: mark.expires <= NOW).cleared),
)


@given(nodes(), CHANGES)
def test_a_change_leaves_all_of_others_as_it_was(node, change):
    """Their taints in their order, their annotations, labels, and the rest of the node."""
    before = as_object(node)

    done = patched(before, patch(node, change(node)))

    # A run's own value is on no taint of others, so taking off by value may look at it alone.
    foreign = [each for each in others(node) if not each["value"].startswith("run-")]
    kept = [each for each in done["spec"].get("taints", []) if each in foreign]
    assert kept == foreign
    for part in ("metadata", "spec"):
        rest = {"annotations", "taints"}
        assert {k: v for k, v in done[part].items() if k not in rest} == {
            k: v for k, v in before[part].items() if k not in rest
        }
    note = {ANNOTATION}
    annotations = [
        {k: v for k, v in each["metadata"].get("annotations", {}).items() if k not in note} for each in (before, done)
    ]
    assert annotations[0] == annotations[1]


@given(nodes(), CHANGES)
def test_a_change_is_done_after_one_patch(node, change):
    wanted = change(node)
    found = after(node, wanted)

    assert (list(found.taints or ()), found.note) == (list(wanted.taints), wanted.note)
    assert patch(found, wanted) == []


@given(nodes(), nodes(), CHANGES)
def test_a_patch_fails_on_any_node_but_the_one_that_was_read(read, other, change):
    """A difference in a taint, or in our annotation, is enough."""
    operations = patch(read, change(read))
    same = (list(read.taints or ()), read.note) == (list(other.taints or ()), other.note)

    if not operations or (same and bool(read.annotations) == bool(other.annotations)):
        return
    if same and other.note is None and read.annotations:
        return  # the map has gone or come with another's annotation: either outcome loses nothing
    with pytest.raises(FailedError):
        patched(as_object(other), operations)


@given(nodes())
def test_nothing_of_ours_is_left_when_a_mark_is_taken_off(node):
    """No taint of the keys in force or of a run on record; the annotation stays with a taint that it alone names."""
    wanted = unmarked(node, KEYS)

    assert wanted.note == (node.note if node.claimed(KEYS) else None)
    assert wanted.taints == others(node)


@given(nodes(), st.sampled_from(("run-1", "run-2")))
def test_a_run_takes_off_its_own_alone(node, run):
    wanted = without_run(node, run)

    gone = [each for each in node.taints or () if each not in wanted.taints]
    assert all(each["value"] == run and each["effect"] == "PreferNoSchedule" for each in gone)
    assert wanted.note == (None if node.mark and node.mark.run == run else node.note)


def test_a_mark_that_is_in_use_stays():
    """One that expired goes, and so does one that cannot be read: nobody lays claim to it."""
    taints = [{"key": KEYS.first, "value": "run-1", "effect": "PreferNoSchedule"}]
    mark = Mark("run-1", KEYS.at(1), NOW + timedelta(minutes=1))
    node = MarkedNode("n1", "uid", taints, {ANNOTATION: mark.text()})
    unreadable = MarkedNode("n1", "uid", taints, {ANNOTATION: "{"})

    assert steering_marks(KEYS, lambda mark: mark.expires < NOW).cleared(node) == Wanted(taints, mark.text())
    assert steering_marks(KEYS, lambda mark: mark.expires > NOW).cleared(node) == Wanted([], None)
    assert steering_marks(KEYS, lambda _: False).cleared(unreadable) == Wanted([], None)


def test_a_node_is_marked_by_either_sign():
    """A taint that lost its annotation, or the other way round: both are to be cleared up."""
    ours = {"key": KEYS.at(1)[0], "value": "run-1", "effect": "PreferNoSchedule"}

    assert MarkedNode("n1", "u", [ours], None).is_marked(KEYS)
    assert MarkedNode("n1", "u", None, {ANNOTATION: "{}"}).is_marked(KEYS)
    assert not MarkedNode("n1", "u", [{**ours, "effect": "NoSchedule"}], {"a": "x"}).is_marked(KEYS)
    assert not MarkedNode("n1", "u", None, None).is_marked(KEYS)


def test_a_node_with_an_empty_list_of_taints_can_be_marked():
    """The API server knows no such list: where it is empty, there is none."""
    node = MarkedNode("n1", "uid-of-n1", [], None)
    wanted = marked(node, Mark("run-1", KEYS.at(1), NOW), KEYS)

    assert after(node, wanted).taints == wanted.taints


def test_an_annotation_claims_the_taints_of_its_own_run_alone():
    """Another value under its key is another's, and is not even named."""
    note = Mark("run-9", ("dedicated",), NOW).text()
    taints = [{"key": "dedicated", "value": value, "effect": "PreferNoSchedule"} for value in ("run-9", "batch")]
    node = MarkedNode("n1", "7", taints, {ANNOTATION: note})

    assert [each["value"] for each in node.claimed(KEYS)] == ["run-9"]
