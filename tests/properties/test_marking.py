"""Whatever rules measure: marks follow hysteresis, the share of nodes, and what is not known."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.marking.evaluation import Pressure, PressureReading, RuleAnswer, evaluate
from rebalancer.marking.rules import MarkingRules

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
EXPIRY = timedelta(minutes=10)
ABOVE, BELOW = 80, 70
NODES = tuple(f"n{number}" for number in range(8))
NAMES = ("cpu", "memory")

#: A reading by its present, lowest and highest value; around the bounds as a rule.
LEVELS = st.sampled_from((10.0, 69.9, 70.0, 75.0, 80.0, 80.1, 90.0, 99.0))
READINGS = st.tuples(LEVELS, LEVELS, LEVELS).map(lambda each: PressureReading(each[2], *sorted(each[:2])))


def rules(share=50, names=NAMES):
    rule = {"query": "load", "above": ABOVE, "below": BELOW}
    return MarkingRules.model_validate({"rules": dict.fromkeys(names, rule), "maxNodes": f"{share}%", "expiry": "10m"})


@st.composite
def standings(draw):
    """Marks as earlier evaluations have left them, expired ones too."""
    found = {}
    for node in draw(st.sets(st.sampled_from(NODES))):
        minutes = {name: draw(st.integers(-5, 10)) for name in draw(st.sets(st.sampled_from(NAMES), min_size=1))}
        found[node] = tuple(
            Pressure(name, NOW - timedelta(hours=1), NOW + timedelta(minutes=minutes[name]), 85.0)
            for name in NAMES
            if name in minutes
        )
    return found


@st.composite
def answers(draw, names=NAMES):
    found = {}
    for name in names:
        problem = draw(st.sampled_from(("", "", "", "no answer")))
        readings = draw(st.dictionaries(st.sampled_from(NODES), READINGS))
        found[name] = RuleAnswer({} if problem else readings, problem)
    return found


def unexpired(standing, node, name):
    return next((each for each in standing.get(node, ()) if each.rule == name and each.until > NOW), None)


@given(answers(), standings(), st.integers(1, 100))
def test_never_more_than_the_share_and_never_all(asked, standing, share):
    found = evaluate(rules(share), NODES, asked, standing, NOW)

    assert len(found.marks) <= len(NODES) * share // 100
    assert len(found.marks) < len(NODES)


@given(answers(), standings())
def test_a_mark_is_set_above_and_cleared_below(asked, standing):
    """And what is in between stays as it is; without a bound on the share, and not all nodes at once."""
    found = evaluate(rules(100), NODES, asked, standing, NOW)

    if found.all_pressed:
        assert not found.marks
        return
    for node in NODES:
        for name in NAMES:
            reading = None if name in found.unknown else asked[name].readings.get(node)
            before = unexpired(standing, node, name)
            after = next((each for each in found.marks.get(node, ()) if each.rule == name), None)
            if reading is None:
                assert after == before
            elif reading.highest < BELOW:
                assert after is None
            elif reading.lowest > ABOVE:
                assert after is not None
            else:
                assert bool(after) == bool(before)
            if after and before:
                assert after.since == before.since


@given(answers(), standings())
def test_without_samples_marks_stay_until_they_expire_and_none_is_new(asked, standing):
    """A source that does not answer, or that knows half of the nodes or fewer."""
    scarce = {
        name: RuleAnswer({node: each for node, each in answer.readings.items() if node in NODES[:4]}, answer.problem)
        for name, answer in asked.items()
    }
    found = evaluate(rules(100), NODES, scarce, standing, NOW)

    valid = {node: tuple(each for each in NAMES if unexpired(standing, node, each)) for node in NODES}
    expected = {node: names for node, names in valid.items() if names}
    assert set(found.unknown) == set(NAMES)
    if len(expected) < len(NODES):
        assert {node: tuple(each.rule for each in pressures) for node, pressures in found.marks.items()} == expected
        assert all(
            each.until == unexpired(standing, node, each.rule).until for node in expected for each in found.marks[node]
        )


@given(st.dictionaries(st.sampled_from(NODES), READINGS, min_size=len(NODES)), st.integers(1, 100))
def test_the_hottest_are_marked(readings, share):
    """No node that is left out was hotter than one that is marked."""
    hot = {node: PressureReading.of(each.value) for node, each in readings.items()}
    found = evaluate(rules(share, NAMES[:1]), NODES, {"cpu": RuleAnswer(hot)}, {}, NOW)

    pressed = {node for node, each in hot.items() if each.value > ABOVE}
    if len(pressed) == len(NODES):
        assert found.all_pressed
    else:
        assert set(found.marks) | set(found.left_out) == pressed
        coolest = min((hot[node].value for node in found.marks), default=100.0)
        assert all(hot[node].value <= coolest for node in found.left_out)
        assert len(found.marks) == min(len(pressed), len(NODES) * share // 100)


@given(answers(), standings(), st.integers(1, 100))
def test_a_second_evaluation_changes_nothing(asked, standing, share):
    """The same samples at the same moment: nothing is written twice."""
    given_rules = rules(share)
    once = evaluate(given_rules, NODES, asked, standing, NOW)

    if not once.all_pressed:
        assert evaluate(given_rules, NODES, asked, once.marks, NOW).marks == once.marks


@given(answers(), standings())
def test_every_mark_lasts_for_half_of_its_time_at_least_where_there_is_a_sample(asked, standing):
    """And never longer than the expiry, whatever an annotation says."""
    found = evaluate(rules(100), NODES, asked, standing, NOW)

    for node, pressures in found.marks.items():
        for each in pressures:
            if each.rule not in found.unknown and node in asked[each.rule].readings:
                assert EXPIRY / 2 < each.until - NOW <= EXPIRY
