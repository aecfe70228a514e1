"""Whatever the text, reading a policy ends in a policy or in an error for its author."""

import json
from collections.abc import Mapping

import yaml
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import PolicyError
from rebalancer.policy.load import converted_policy, load_policy
from rebalancer.policy.values import LoadedPolicy
from tests.unit.policy.reading import PLUGINS

_KEYS = """
apiVersion kind profiles name pluginConfig plugins args enabled disabled deschedule balance filter sort
preEvictionFilter preevictionfilter nodeSelector maxNoOfPodsToEvictTotal gracePeriodSeconds metricsProviders
source prometheus url authToken secretReference metricsCollector strategies params namespaces include
labelSelector matchLabels matchExpressions key operator values podLifeTime states maxPodLifeTimeSeconds
thresholds cpu nodeResourceUtilizationThresholds thresholdPriority priorityThreshold PodLifeTime
LowNodeUtilization DefaultEvictor Profiles maxNoOfPodsToEvictTotl << =
"""
KEYS = st.sampled_from(_KEYS.split())
_WORDS = """
descheduler/v1alpha2 descheduler/v1alpha1 DeschedulerPolicy PodLifeTime LowNodeUtilization DefaultEvictor
Running Prometheus KubernetesMetrics http://a:b In Exists a=b a==,b !
"""
WORDS = st.sampled_from(_WORDS.split())
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


def mapped(**values: st.SearchStrategy) -> st.SearchStrategy:
    """A map that may lack keys, have others, or be something else altogether."""
    near = st.fixed_dictionaries({}, optional=values)
    return (
        near
        | st.tuples(near, st.dictionaries(KEYS, ANYTHING, max_size=1)).map(lambda two: {**two[0], **two[1]})
        | ANYTHING
    )


def listed(item: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(item, max_size=3) | ANYTHING


NAMES = st.sampled_from(sorted(PLUGINS)) | WORDS | SCALARS
ARGS = mapped(
    namespaces=mapped(include=listed(WORDS), exclude=listed(WORDS)),
    labelSelector=mapped(
        matchLabels=mapped(a=SCALARS), matchExpressions=listed(mapped(key=WORDS, operator=WORDS, values=listed(WORDS)))
    ),
    states=listed(WORDS),
    thresholds=mapped(cpu=SCALARS),
    maxPodLifeTimeSeconds=SCALARS,
    priorityThreshold=mapped(value=SCALARS, name=SCALARS),
)
POINT = mapped(enabled=listed(NAMES), disabled=listed(NAMES))
PROVIDER = mapped(
    source=WORDS, prometheus=mapped(url=WORDS, authToken=mapped(secretReference=mapped(name=WORDS, namespace=SCALARS)))
)
POLICIES = mapped(
    apiVersion=st.just("descheduler/v1alpha2"),
    profiles=listed(
        mapped(
            name=SCALARS,
            pluginConfig=listed(mapped(name=NAMES, args=ARGS)),
            plugins=mapped(deschedule=POINT, balance=POINT, sort=POINT, preEvictionFilter=POINT),
        )
    ),
    nodeSelector=WORDS,
    gracePeriodSeconds=SCALARS,
    metricsProviders=listed(PROVIDER),
)
PARAMS = mapped(
    podLifeTime=mapped(states=listed(WORDS), podStatusPhases=listed(WORDS), maxPodLifeTimeSeconds=SCALARS),
    nodeResourceUtilizationThresholds=mapped(thresholds=mapped(cpu=SCALARS)),
    thresholdPriority=SCALARS,
    thresholdPriorityClassName=SCALARS,
    nodeFit=SCALARS,
)
OLD_POLICIES = mapped(
    apiVersion=st.just("descheduler/v1alpha1"),
    strategies=st.dictionaries(
        st.sampled_from(sorted(PLUGINS)) | WORDS, mapped(enabled=st.booleans(), params=PARAMS), max_size=4
    )
    | ANYTHING,
    evictLocalStoragePods=SCALARS,
)

#: Most of those above are refused as soon as they have a profile; none of these is.
SOUND = st.lists(st.sampled_from(("RemoveFailedPods", "RemovePodsViolatingNodeTaints")), min_size=1, unique=True).map(
    lambda names: {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "maxNoOfPodsToEvictTotal": 1,
        "profiles": [{"name": each, "plugins": {"deschedule": {"enabled": names}}} for each in names],
    }
)


def outcome(text: str, *, strict: bool = False, live: bool = False) -> LoadedPolicy | PolicyError:
    try:
        return load_policy(text, PLUGINS, source="policy.yaml", strict=strict, live=live)
    except PolicyError as error:
        refused = error
    assert refused.problems
    assert all(each.line and each.message and "\n" not in each.message for each in refused.problems)
    return refused


@given(OLD_POLICIES | POLICIES | SOUND)
def test_a_converted_policy_says_the_same_in_the_present_form(document):
    """Whatever a live run could use; a second conversion changes nothing."""
    text = json.dumps(document)
    before = outcome(text, live=True)
    if isinstance(before, PolicyError):
        return

    written = converted_policy(text, PLUGINS, source="old.yaml")

    assert outcome(written).policy == before.policy
    assert uncommented(converted_policy(written, PLUGINS, source="new.yaml")) == uncommented(written)


def uncommented(text: str) -> list[str]:
    """The lines of a policy without what is told of it: that may have another line after a second conversion."""
    return [line for line in text.splitlines() if not line.startswith("# ")]


@given(POLICIES | OLD_POLICIES)
def test_any_document_is_a_policy_or_an_error(document):
    """Nothing but PolicyError is raised, near policies of both versions, in YAML and in JSON."""
    for text in (yaml.safe_dump(document), json.dumps(document)):
        assert isinstance(outcome(text), LoadedPolicy | PolicyError)


@given(POLICIES | OLD_POLICIES | SOUND)
def test_strict_reading_is_lenient_reading_without_what_is_ignored(document):
    """What the strict accepts the lenient reads as the same; what the lenient refuses the strict does too."""
    text = yaml.safe_dump(document)
    lenient, strict = outcome(text), outcome(text, strict=True)

    if isinstance(strict, LoadedPolicy):
        assert lenient == strict
    if isinstance(lenient, PolicyError):
        assert isinstance(strict, PolicyError)


@given(POLICIES | OLD_POLICIES | SOUND)
def test_what_can_be_loaded_can_be_decoded_to_the_same_policy(document):
    """Loading adds checks, it changes nothing."""
    text = yaml.safe_dump(document)
    loaded = outcome(text)

    if isinstance(loaded, LoadedPolicy):
        assert load_policy(text, PLUGINS, source="policy.yaml", runs=False).policy == loaded.policy
        assert all("DefaultEvictor" in profile.args for profile in loaded.policy.profiles)


@given(st.permutations(sorted(set(PLUGINS) - {"DefaultEvictor"})), st.sets(st.sampled_from(sorted(PLUGINS))))
def test_converted_profiles_are_the_enabled_strategies_in_document_order(names, enabled):
    text = yaml.safe_dump(
        {
            "apiVersion": "descheduler/v1alpha1",
            "strategies": {name: {"enabled": name in enabled, "params": _params(name)} for name in names},
        },
        sort_keys=False,
    )
    loaded = load_policy(text, PLUGINS, source="policy.yaml")

    ran = [name for profile in loaded.policy.profiles for name in (*profile.deschedule, *profile.balance)]
    assert ran == [name for name in names if name in enabled]
    written = converted_policy(text, PLUGINS, source="old.yaml")
    assert outcome(written, strict=True).policy == loaded.policy
    assert written.count(" is not enabled and left out\n") == len(names) - len(ran)


def _params(name: str) -> Mapping[str, object]:
    """The params without which a strategy has nothing to go by."""
    thresholds = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
    if name == "HighNodeUtilization":
        thresholds.pop("targetThresholds")
    needed: dict[str, Mapping[str, object]] = {
        "PodLifeTime": {"podLifeTime": {"maxPodLifeTimeSeconds": 5}},
        "RemovePodsHavingTooManyRestarts": {"podsHavingTooManyRestarts": {"podRestartThreshold": 1}},
        "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": ["x"]},
        "LowNodeUtilization": {"nodeResourceUtilizationThresholds": thresholds},
        "HighNodeUtilization": {"nodeResourceUtilizationThresholds": thresholds},
    }
    return needed.get(name, {})
