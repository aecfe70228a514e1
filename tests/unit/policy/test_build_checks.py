"""What the descheduler finds out only when it builds the profiles is found on loading; decoding alone lets it be."""

import pytest

from tests.unit.policy.reading import LIFE_TIME, RUN_LIFE_TIME, decode, load, problems, profile, rows


@pytest.mark.parametrize(
    ("point", "name", "problem"),
    rows("""
    deschedule | PodLifetime | no plugin is called 'PodLifetime'; did you mean 'PodLifeTime'?
    balance | Nope | no plugin is called 'Nope'; known are HighNodeUtilization,
    deschedule | ~ | no plugin is called ''
    balance | PodLifeTime | PodLifeTime cannot be enabled under balance: it belongs under deschedule
    deschedule | DefaultEvictor | DefaultEvictor cannot be enabled under deschedule: it belongs under filter or preE
    filter | PodLifeTime | PodLifeTime cannot be enabled under filter
    preevictionfilter | Nope | no plugin is called 'Nope'; known are DefaultEvictor
    preEvictionFilter | Nope | no plugin is called 'Nope'
    balance | RemoveDuplicates | RemoveDuplicates has no entry in this profile's pluginConfig; add `- name: RemoveDu
    """),
)
def test_what_cannot_be_built_cannot_be_loaded(point, name, problem):
    """Unknown, in the wrong place, or without arguments; the descheduler's decoding step accepts all of these."""
    text = profile(LIFE_TIME, f"{point}: {{enabled: [{name}]}}")
    (found,) = problems(text)

    assert found.startswith(f"line 6, profiles[0].plugins.{point}.enabled[0]: {problem}")
    assert decode(text).warnings == ()


def test_arguments_in_another_profile_do_not_count():
    text = profile(LIFE_TIME, RUN_LIFE_TIME) + "- name: other\n  plugins: {deschedule: {enabled: [PodLifeTime]}}\n"
    (problem,) = problems(text)

    assert problem.startswith("line 8, profiles[1].plugins.deschedule.enabled[0]: PodLifeTime has no entry")


def test_the_evictor_needs_no_arguments():
    """DefaultEvictor is in every profile anyway, under both spellings of its second point."""
    evictor = "{enabled: [DefaultEvictor]}"
    points = f"{RUN_LIFE_TIME}, filter: {evictor}, preEvictionFilter: {evictor}, preevictionfilter: {evictor}"

    assert load(profile(LIFE_TIME, points)).warnings == ()


def test_problems_of_decoding_and_of_building_come_together():
    decoding, building = problems(profile("{name: PodLifeTime}", "balance: {enabled: [PodLifeTime]}"))

    assert decoding.startswith("line 5, profiles[0].pluginConfig[0].args: give maxPodLifeTimeSeconds, states,")
    assert building.startswith("line 6, profiles[0].plugins.balance.enabled[0]: PodLifeTime cannot be enabled")
