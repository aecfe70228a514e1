"""The scheduler's configuration: what is understood, and what is said of what is not."""

import json

import pytest

from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import PolicyError
from rebalancer.policy.scheduler_configuration import load_scheduler_configuration
from rebalancer.scheduling.simulator.configuration import (
    DEFAULT_PLUGINS,
    OTHER_PLUGINS,
    ProfileConfig,
    enabled,
    read_configuration,
)
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.state import State
from tests import make

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
UNKNOWN = "where pods of default-scheduler go is unknown"
FULL = (
    HEAD
    + """
parallelism: 16
leaderElection: {leaderElect: true}
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
percentageOfNodesToScore: 50
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint:
        enabled: [{name: NodeResourcesFit, weight: 5}]
      score:
        disabled: [{name: ImageLocality}]
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  - schedulerName: packing
"""
)


IN_CONFIG_MAP = "kind: ConfigMap\napiVersion: v1\ndata:\n  other.yaml: 'a: b'\n  config.yaml: |\n" + "".join(
    f"    {line}\n" for line in (HEAD + "percentageOfNodesToScore: -1").splitlines()
)


def load(text: str):
    return load_scheduler_configuration(text, source="scheduler.yaml")


def problems(text: str) -> list[str]:
    """What is wrong, line by line."""
    with pytest.raises(PolicyError) as caught:
        load(text)
    first, *rest = str(caught.value).splitlines()
    assert first == "scheduler configuration scheduler.yaml cannot be used:"
    return [each.strip() for each in rest]


@pytest.mark.parametrize("text", [FULL, json.dumps(load(FULL).document)], ids=["YAML", "JSON"])
def test_a_configuration_as_the_scheduler_has_it_is_read(text: str) -> None:
    """With what has nothing to do with where pods go, and without a warning."""
    loaded = load(text)

    read = read_configuration(loaded.document)
    assert loaded.warnings == ()
    assert [each.scheduler_name for each in read.profiles] == ["default-scheduler", "packing"]
    assert read.percentage_of_nodes_to_score == 50


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1beta3"])
def test_an_older_version_is_read_with_a_warning(version: str) -> None:
    """As guides to a scheduler of one's own print it."""
    profile = "profiles: [{plugins: {score: {enabled: [{name: PodCapacityOfNode}]}}}]"
    loaded = load(HEAD.replace("/v1\n", f"/{version}\n") + profile)

    (read,) = read_configuration(loaded.document).profiles
    assert [each.name for each in read.plugins.score.enabled] == ["PodCapacityOfNode"]
    (warning,) = map(str, loaded.warnings)
    assert f"line 1, apiVersion: kubescheduler.config.k8s.io/{version} is read as kubescheduler.con" in warning


#: As a guide to Trimaran prints it.
VALUES = """
scheduler:
  name: trimaran
  leaderElect: false
plugins:
  enabled: ["TargetLoadPacking"]
  disabled: ["NodeResourcesBalancedAllocation", "NodeResourcesLeastAllocated"]
pluginConfig:
- name: TargetLoadPacking
  args:
    watcherAddress: http://load-watcher.loadwatcher.svc.cluster.local:2020
"""


def test_values_of_the_chart_of_a_second_scheduler_are_read_as_what_they_are() -> None:
    """Pods that ask for it go by its plugins, and all others by the default scheduler; it is said once."""
    loaded = load(VALUES)

    first, second = read_configuration(loaded.document).profiles
    assert first == ProfileConfig()
    assert second.scheduler_name == "trimaran"
    scores = enabled(second, "score")
    assert scores["TargetLoadPacking"] == 1
    assert "NodeResourcesBalancedAllocation" not in scores
    assert second.args("TargetLoadPacking")["watcherAddress"].endswith(":2020")
    (warning,) = map(str, loaded.warnings)
    assert "values of the chart as-a-second-scheduler: pods that ask for trimaran go by these plugins" in warning


def test_mistakes_in_such_values_have_their_place() -> None:
    wrong = VALUES.replace("watcherAddress:", "defaultRequestsMultiplier: lots #")
    assert [each.split(": ")[0] for each in problems(wrong)] == ["line 10, pluginConfig[0].args"]

    unnamed = load('plugins: {enabled: ["Coscheduling"]}')
    assert read_configuration(unnamed.document).profiles[1].scheduler_name == "scheduler-plugins-scheduler"
    assert "nothing is known of the plugin Coscheduling" in str(unnamed.warnings[1])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: this is not a KubeSchedulerConfiguration, which begins with `apiVersion: kubescheduler"),
        ("a: [b", "this is neither YAML nor JSON"),
        ("kind: KubeSchedulerConfiguration", "line 1: apiVersion is missing: write `apiVersion: kubescheduler.config"),
        (HEAD.replace("v1", "v2"), "line 1, apiVersion: 'kubescheduler.config.k8s.io/v2' is not understood"),
        (HEAD.replace("KubeS", "S"), "line 2, kind: 'SchedulerConfiguration' is not understood here: write KubeSched"),
        (HEAD + "profiles: {}", "line 3, profiles: a list is expected, not a map"),
        (HEAD + "profiles: [a]", "line 3, profiles[0]: a map (key: value) is expected, not 'a'"),
        (
            HEAD + "profiles: [{plugins: {score: {enabled: [{name: 1}]}}}]",
            "profiles[0].plugins.score.enabled[0].name: ",
        ),
        (HEAD + "profiles: [{pluginConfig: [{args: {}}]}]", "profiles[0].pluginConfig[0]: the name of the plugin is"),
        (HEAD + "extenders: [{filterVerb: 1}]", "line 3, extenders[0].filterVerb: expected `str`, got `int`"),
        (HEAD + "percentageOfNodesToScore: true", "line 3, percentageOfNodesToScore: a number is expected, not true"),
        (
            HEAD + "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 10000000000}]}}}]",
            "profiles[0].plugins.score.enabled[0].weight: expected `int` <= 2147483647",
        ),
        (
            HEAD + "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 3000000000}}]}]",
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: expected `int` <= 2147483647",
        ),
        (IN_CONFIG_MAP, "line 8, percentageOfNodesToScore: -1 is out of range: at least 0"),
        ("kind: ConfigMap\ndata: {a: b, c: d}", "of this ConfigMap is a scheduler configuration; its keys are a, c"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_place_and_cure(text: str, problem: str) -> None:
    (found,) = problems(text)

    assert problem in found


def test_all_is_said_at_once() -> None:
    """Each profile and each plugin's arguments by itself, keys that mean nothing among them."""
    text = (
        HEAD
        + """
profilles: []
profiles:
  - plugins:
      scoer: {}
      score: {enabled: [{name: NodeAffinity, weight: many}]}
  - schedulerName: a
    pluginConfig:
      - {name: NodeResourcesFit, args: {scoringStrategy: {type: Best}}}
      - {name: InterPodAffinity, args: {hardPodAffinityWeight: many}}
      - {name: TargetLoadPacking, args: {defaultRequestsMultiplier: lots}}
      - {name: InterPodAffinity}
  - schedulerName: a
"""
    )

    assert [each.split(": ")[0] for each in problems(text)] == [
        "line 4, profilles",
        "line 7, profiles[0].plugins.scoer",
        "line 8, profiles[0].plugins.score.enabled[0].weight",
        "line 11, profiles[1].pluginConfig[0].args",
        "line 12, profiles[1].pluginConfig[1].args.hardPodAffinityWeight",
        "line 13, profiles[1].pluginConfig[2].args",
        "line 14, profiles[1].pluginConfig[3]",
        "line 15, profiles[2].schedulerName",
    ]


def test_empty_keys_are_as_good_as_none() -> None:
    loaded = load(HEAD + "profiles:\n  - plugins:\n    pluginConfig: [{name: NodeAffinity, args: }]\nextenders:\n")

    assert loaded.document["profiles"] == [{"pluginConfig": [{"name": "NodeAffinity"}]}]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "profiles: [{plugins: {score: {enabled: [{name: Coscheduling}]}}}]",
            "line 3, profiles[0].plugins.score.enabled[0]: nothing is known of the plugin Coscheduling: " + UNKNOWN,
        ),
        (
            "extenders: [{urlPrefix: 'https://x', filterVerb: filter}]",
            "line 3, extenders[0]: nothing is known of what an extender says: where pods go is unknown",
        ),
        ("profilles: []", "line 3, profilles: unknown key 'profilles' has no effect; did you mean 'profiles'?"),
    ],
)
def test_what_nothing_is_known_of_is_a_warning(text: str, warning: str) -> None:
    """The pods that it concerns are left to the rules for an unknown scheduler."""
    assert [str(each) for each in load(HEAD + text).warnings] == [warning]


def test_every_plugin_that_passes_without_a_warning_is_simulated() -> None:
    everything = [{"name": each} for each in (*DEFAULT_PLUGINS, *OTHER_PLUGINS)]
    document = {"plugins": {"multiPoint": {"enabled": everything}}}
    loaded = load(HEAD + f"profiles: [{json.dumps(document)}]")

    state = State(Snapshot(now=make.NOW, nodes=(make.node("n1"),), pods=()))
    (profile,) = profiles(state, read_configuration(loaded.document)).values()
    assert (loaded.warnings, profile.unknown) == ((), "")
