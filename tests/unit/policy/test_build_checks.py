"""What the descheduler finds out only when it builds the profiles is found on loading; decoding alone lets it be."""

import pytest

from tests.unit.policy.stand_ins import LIFE_TIME, RUN_LIFE_TIME, decode, load, problems, profile

PLUGINS = "line 6, profiles[0].plugins"

UNBUILDABLE = [
    (
        "deschedule: {enabled: [PodLifetime]}",
        f"{PLUGINS}.deschedule.enabled[0]: no plugin is called 'PodLifetime'; did you mean 'PodLifeTime'?",
    ),
    (
        "balance: {enabled: [Nope]}",
        f"{PLUGINS}.balance.enabled[0]: no plugin is called 'Nope'; known are LowNodeUtilization, ",
    ),
    ("deschedule: {enabled: [~]}", f"{PLUGINS}.deschedule.enabled[0]: no plugin is called ''"),
    (
        "balance: {enabled: [PodLifeTime]}",
        f"{PLUGINS}.balance.enabled[0]: PodLifeTime cannot be enabled under balance: it belongs under deschedule",
    ),
    (
        "deschedule: {enabled: [DefaultEvictor]}",
        (
            f"{PLUGINS}.deschedule.enabled[0]: DefaultEvictor cannot be enabled under deschedule: "
            "it belongs under filter or preEvictionFilter"
        ),
    ),
    (
        "filter: {enabled: [PodLifeTime]}",
        f"{PLUGINS}.filter.enabled[0]: PodLifeTime cannot be enabled under filter",
    ),
    (
        "preevictionfilter: {enabled: [Nope]}",
        f"{PLUGINS}.preevictionfilter.enabled[0]: no plugin is called 'Nope'; known are DefaultEvictor",
    ),
    (
        "preEvictionFilter: {enabled: [Nope]}",
        f"{PLUGINS}.preEvictionFilter.enabled[0]: no plugin is called 'Nope'",
    ),
    (
        "balance: {enabled: [RemoveDuplicates]}",
        (
            f"{PLUGINS}.balance.enabled[0]: RemoveDuplicates has no entry in this profile's pluginConfig; add "
            "`- name: RemoveDuplicates` there"
        ),
    ),
]


@pytest.mark.parametrize(("plugins", "problem"), UNBUILDABLE)
def test_what_cannot_be_built_cannot_be_loaded(plugins, problem):
    """Unknown, in the wrong place, or without arguments; the descheduler's decoding step accepts all of these."""
    (found,) = problems(profile(LIFE_TIME, plugins))

    assert found.startswith(problem)
    assert decode(profile(LIFE_TIME, plugins)).warnings == ()


def test_arguments_in_another_profile_do_not_count():
    """Each profile has its own configuration."""
    text = profile(LIFE_TIME, RUN_LIFE_TIME) + "- name: other\n  plugins: {deschedule: {enabled: [PodLifeTime]}}\n"
    (problem,) = problems(text)

    assert problem.startswith("line 8, profiles[1].plugins.deschedule.enabled[0]: PodLifeTime has no entry")


def test_the_evictor_needs_no_arguments():
    """DefaultEvictor is in every profile anyway, under both spellings of its second point."""
    evictor = "{enabled: [DefaultEvictor]}"
    points = f"{RUN_LIFE_TIME}, filter: {evictor}, preEvictionFilter: {evictor}, preevictionfilter: {evictor}"

    assert load(profile(LIFE_TIME, points)).warnings == ()


def test_problems_of_decoding_and_of_building_come_together():
    """One reading tells of both."""
    decoding, building = problems(profile("{name: PodLifeTime}", "balance: {enabled: [PodLifeTime]}"))[1:]

    assert decoding.startswith("line 5, profiles[0].pluginConfig[0].args: give states")
    assert building.startswith("line 6, profiles[0].plugins.balance.enabled[0]: PodLifeTime cannot be enabled")
