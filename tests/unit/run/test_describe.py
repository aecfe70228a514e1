"""What `strategies` and `presets` tell: arguments with their sub-keys, types and defaults, and examples that run."""

import pytest

from rebalancer.errors import UsageError
from rebalancer.policy.load import load_policy
from rebalancer.run.interruption import Interruption
from rebalancer.run.policies import (
    describe_preset,
    describe_strategy,
    example,
    known_plugins,
    list_presets,
    policy_text,
    presets,
)
from rebalancer.run.start import Options, run

EVERY_PLUGIN = sorted(known_plugins())


def lines_of(name):
    return list(describe_strategy(name))


@pytest.mark.parametrize("name", EVERY_PLUGIN)
def test_the_example_of_a_manual_runs_without_a_single_warning(name, tmp_path):
    """On the example cluster, to its end; read strictly, and the plugin is in it."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(example(name))
    asked = Options(policy=str(policy), snapshot="examples/cluster.json", strict=True)

    outcome = run(asked, None, Interruption())

    assert outcome.exit_code == 0
    assert [each["error"] for each in outcome.report["strategies"]] == [None]
    assert name in outcome.work.policy.profiles[0].args


def test_keys_inside_an_argument_are_indented_with_type_and_default():
    lines = lines_of("LowNodeUtilization")

    assert "  evictionLimits (map): The most evictions." in lines
    assert "    node (whole number): The most evictions from each node." in lines
    (rest,) = [line for line in lines if line.startswith("    rest ")]
    assert rest.startswith('    rest (duration, default "20m"): ')
    assert "    metricsServer (true or false, default false): Deprecated: the source KubernetesMetrics." in lines


@pytest.mark.parametrize(
    ("describe", "kind", "name", "nearest"),
    [
        (lines_of, "strategy", "podlifetim", "; did you mean 'PodLifeTime'"),
        (describe_preset, "preset", "usage-metric-server", "; did you mean"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest_one(describe, kind, name, nearest):
    with pytest.raises(UsageError, match=f"there is no {kind} '{name}'{nearest}"):
        describe(name)


def test_every_preset_has_a_line_that_says_whom_it_suits():
    lines = dict(line.split("  ", 1) for line in list_presets())

    assert sorted(name.strip() for name in lines) == list(presets())
    assert all(text.strip().startswith("For ") and text.endswith(".") for text in lines.values())


def test_a_preset_is_shown_as_it_is():
    """Comments and all, so that it can be changed and used."""
    text = describe_preset("demo")

    assert load_policy(text + "\n", known_plugins(), source="demo", strict=True).policy.profiles[0].name == "demo"


def test_a_folder_does_not_hide_a_preset(tmp_path, monkeypatch):
    (tmp_path / "safe").mkdir()
    monkeypatch.chdir(tmp_path)

    assert policy_text("safe").startswith("#")
