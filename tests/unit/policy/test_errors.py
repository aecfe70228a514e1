"""A policy that cannot be used: every problem at once, with its place and what to do about it."""

import pytest

from rebalancer.policy.findings import did_you_mean
from tests.unit.policy.reading import HEAD, LIFE_TIME, RUN_LIFE_TIME, problems, profile, rows

ARGS = "line 5, profiles[0].pluginConfig[0].args"


def args_problems(plugin: str, args: str) -> list[str]:
    return problems(profile(f"{{name: {plugin}, args: {args}}}"))


def test_all_problems_come_at_once_in_the_order_of_the_file():
    text = """\
    apiVersion: descheduler/v1alpha2
    maxNoOfPodsToEvictPerNod: 5
    maxNoOfPodsToEvictTotal: -1
    nodeSelector: a==b,,c
    gracePeriodSeconds: !!int x
    metricsProviders: [{source: Prometeus}]
    profiles:
    - name: p
      pluginConfig:
      - name: PodLifeTime
        args:
          maxPodLifeTimeSecond: 5
          exitCodes:
          - 1
          - one
          namespaces:
            include: [a]
            exclud: [b]
      - name: RemoveDuplicate
      plugins:
        deschedule:
          enabled:
          - PodLifeTime
          - LowNodeUtilization
          - RemoveFailedPods
    """
    assert [each.split(": ")[0] for each in problems(text)] == [
        "line 2, maxNoOfPodsToEvictPerNod",
        "line 3, maxNoOfPodsToEvictTotal",
        "line 4, nodeSelector",
        "line 5, gracePeriodSeconds",
        "line 6, metricsProviders[0].source",
        "line 12, profiles[0].pluginConfig[0].args.maxPodLifeTimeSecond",
        "line 15, profiles[0].pluginConfig[0].args.exitCodes[1]",
        "line 18, profiles[0].pluginConfig[0].args.namespaces.exclud",
        "line 19, profiles[0].pluginConfig[1].name",
        "line 24, profiles[0].plugins.deschedule.enabled[1]",
        "line 25, profiles[0].plugins.deschedule.enabled[2]",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: the policy is empty; a minimal one is `apiVersion: descheduler/v1alpha2`, "),
        ("# only a comment\n", "line 1: the policy is empty"),
        ("a: [", "line 2: this is neither YAML nor JSON"),
        ("--- \n---\na: 1", "line 1: the policy is empty"),
        ("- a", "line 1: a policy is a map of keys; a minimal one is"),
        ("{}", "line 1: apiVersion is missing; begin with `apiVersion: descheduler/v1alpha2`"),
        ("apiVersion: descheduler/v1alpha3", "line 1, apiVersion: apiVersion 'descheduler/v1alpha3' is not known; did"),
        ("apiVersion: [v1]", "line 1, apiVersion: apiVersion of this kind is not known"),
        (HEAD.replace("DeschedulerP", "P"), "line 2, kind: this is not a policy: its kind should be Desch"),
    ],
)
def test_a_file_that_is_no_policy_is_told_what_it_lacks(text, problem):
    """Nothing is taken for an empty policy in silence: version and kind must be a policy's."""
    found, *others = problems(text)

    assert found.startswith(problem)
    assert all("only the first document" in each for each in others)


@pytest.mark.parametrize(
    ("text", "missing", "other"),
    [
        ("profiles: [{pluginConfig: [{name: PodLifetime}]}]", "line 1: apiVersion is missing", "mean 'PodLifeTime'?"),
        (
            HEAD
            + "metricsProviders: [{source: Prometheus, prometheus: {url: 'http://a', authToken: {}}}, {source: P}]",
            "line 3, metricsProviders[0].prometheus.authToken: 'secretReference' is missing",
            "'P' is not a source of metrics",
        ),
    ],
)
def test_what_is_missing_hides_no_other_problem(text, missing, other):
    first, second = problems(text)

    assert first.startswith(missing)
    assert other in second


@pytest.mark.parametrize(
    ("field", "problem"),
    rows("""
    maxNoOfPodsToEvictPerNode: 1.5 | maxNoOfPodsToEvictPerNode: a whole number is expected, not 1.5
    maxNoOfPodsToEvictPerNode: true | maxNoOfPodsToEvictPerNode: a number is expected, not true
    maxNoOfPodsToEvictPerNamespace: [1] | maxNoOfPodsToEvictPerNamespace: a whole number is expected, not a list
    gracePeriodSeconds: -1 | gracePeriodSeconds: -1 is out of range: at least 0
    nodeSelector: {a: b} | nodeSelector: text is expected, not a map
    nodeSelector: a==b,,c | nodeSelector: 'a==b,,c' is not a label selector (at ',c'): try a=b,c in (d,e),!f
    metricsCollector: {enabled: "true"} | metricsCollector.enabled: true or false is expected, not 'true'; write true
    metricsCollector: true | metricsCollector: a map (key: value) is expected, not true
    profiles: {name: a} | profiles: a list is expected, not a map
    profiles: [a] | profiles[0]: a map (key: value) is expected, not 'a'
    profiles: [{name: 5}] | profiles[0].name: text is expected, not 5
    profiles: [{pluginConfig: [{name: 5}]}] | profiles[0].pluginConfig[0].name: text is expected, not 5
    profiles: [{pluginConfig: [{args: {}}]}] | profiles[0].pluginConfig[0]: the name of the plugin is missing
    profiles: [{plugins: {sort: a}}] | profiles[0].plugins.sort: a map (key: value) is expected, not 'a'
    profiles: [{plugins: {sort: {enabled: a}}}] | profiles[0].plugins.sort.enabled: a list is expected, not 'a'
    """),
)
def test_wrong_types_are_errors_at_every_level(field, problem):
    assert [each for each in problems(HEAD + field) if each.startswith(f"line 3, {problem}")]


def test_profiles_of_one_name_have_the_same_windows():
    """A live run looks again whether the profile that asks is open, and knows its name."""
    nights = "windows: [{cron: 0 22 * * *, for: 6h}]"
    two = HEAD + "profiles: [{name: tidy, %s}, {name: %s, %s}]"

    assert not problems(two % (nights, "tidy", nights))
    assert not problems(two % (nights, "other", "freeze: []"))
    told = problems(two % (nights, "tidy", "freeze: []"))
    assert [each.partition(": ")[0] for each in told] == ["line 3, profiles[0]", "line 3, profiles[1]"]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "profiles: [{plugins: {deschedule: {enabled: [5]}}}]",
        HEAD + "metricsProviders: 5",
        HEAD + "windows: [{cron: '0 22 * * *'}]",
        profile("{name: RemoveDuplicates, args: 5}"),
    ],
)
def test_one_wrong_value_is_one_problem(text):
    """What cannot be read counts as absent afterwards, and is not complained of again."""
    assert len(problems(text)) == 1


@pytest.mark.parametrize(
    ("args", "problem"),
    rows("""
    [1] | : a map (key: value) is expected, not a list
    {max_pod_life_time_seconds: 5, states: [Running]} | .max_pod_life_time_seconds: unknown key
    {bogus: ~, states: [Running]} | .bogus: unknown key 'bogus'; known are namespaces, labelSelector,
    {matchLabels: {}, states: [Running]} | .matchLabels: unknown key 'matchLabels'
    {include: [a], states: [Running]} | .include: unknown key 'include'; it belongs under namespaces or ownerKinds
    {maxPodLifeTimeSeconds: "5"} | .maxPodLifeTimeSeconds: a number is expected, not the text '5'; write 5 without
    {maxPodLifeTimeSeconds: -5} | .maxPodLifeTimeSeconds: -5 is out of range: at least 0
    {states: Running} | .states: a list is expected, not 'Running'
    {states: [5]} | .states[0]: 5 is not known here; known are Running, Pending
    {states: [Runing]} | .states[0]: 'Runing' is not known here; did you mean 'Running'?
    {states: [Running], namespaces: {include: [5]}} | .namespaces.include[0]: text is expected, not 5
    {states: [Running], includingInitContainers: 1} | .includingInitContainers: true or false is expected, not 1
    {states: [Running], namespaces: {kind: x}} | .namespaces.kind: unknown key 'kind'
    {states: [Running], namespaces: [a]} | .namespaces: a map (key: value) is expected, not a list
    {states: [Running], namespaces: {include: [a], exclude: [b]}} | .namespaces: give either include or exclude, not
    {states: [Running], labelSelector: a=b} | .labelSelector: a map (key: value) is expected, not 'a=b'
    {states: [Running], labelSelector: {matchLabel: {a: b}}} | .labelSelector: Object contains unknown field
    """),
)
def test_arguments_are_strict_and_problems_name_the_argument(args, problem):
    """Keys are exact, types are exact; the message has the place down to the item, and a suggestion."""
    (found,) = args_problems("PodLifeTime", args)

    assert found.startswith(f"{ARGS}{problem}")


@pytest.mark.parametrize(
    ("plugin", "args", "problem"),
    rows("""
    HighNodeUtilization | ~ | : give at least one resource
    DefaultEvictor | {noEvictionPolicy: Xyz} | .noEvictionPolicy: 'Xyz' is not known here; known are Preferred
    HighNodeUtilization | {thresholds: {cpu: 101}} | .thresholds.cpu: 101 is out of range: at most 100
    HighNodeUtilization | {thresholds: {example.com/gpu: "5"}} | .thresholds["example.com/gpu"]: a number is expected
    """),
)
def test_the_nearest_place_is_named(plugin, args, problem):
    """Where nothing is written that of the entry; a key with dots is quoted."""
    (found,) = args_problems(plugin, args)

    assert found.startswith(f"{ARGS}{problem}")


def test_each_line_of_a_validator_is_a_problem():
    queries = "{pods: {query: q, unit: ratio, base: capacity}, memory: {query: q, unit: cores}}"
    usage = f"{{source: Prometheus, prometheus: {{nodes: {queries}}}}}"
    found = args_problems("LowNodeUtilization", f"{{thresholds: {{cpu: 5}}, metricsUtilization: {usage}}}")

    assert [each.partition(".nodes: ")[2][:14] for each in found if ".nodes: " in each] == [
        "cores are a un",
        "pods needs no ",
    ]


def test_arguments_of_plugins_that_do_not_run_are_checked_too():
    text = profile(f"{LIFE_TIME}, {{name: PodLifeTime, args: {{states: [x]}}}}, {{name: Nothing}}", RUN_LIFE_TIME)

    assert [each.split(":")[0] for each in problems(text)] == [
        "line 5, profiles[0].pluginConfig[1]",
        "line 5, profiles[0].pluginConfig[1].args.states[0]",
        "line 5, profiles[0].pluginConfig[2].name",
    ]


def test_a_long_value_is_cut_in_the_message():
    (problem,) = problems(HEAD + f"metricsCollector: {'x' * 500}")

    assert len(problem) < 250


@pytest.mark.parametrize(
    ("value", "cure"),
    rows("""
    "12.5 %" | not the text '12.5 %'; write 12.5, a percentage has no sign
    "7" | not the text '7'; write 7 without quotes
    7d | not the text '7d'; write 604800 where seconds are meant
    many | not the text 'many'
    "\uff12\uff10%" | not the text '\uff12\uff10%'
    """),
)
def test_a_number_in_words_is_answered_with_the_spelling_wanted(value, cure):
    (found,) = problems(HEAD + f"maxNoOfPodsToEvictTotal: {value}\nprofiles: []\n")

    assert found == f"line 3, maxNoOfPodsToEvictTotal: a number is expected, {cure}"


STATES = ("Running", "Pending", "CrashLoopBackOff")


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("Runing", STATES, "; did you mean 'Running'?"),
        ("RUNNING", STATES, "; did you mean 'Running'?"),
        ("crashloopbackoff", STATES, "; did you mean 'CrashLoopBackOff'?"),
        ("CrashLoopBackoffs", STATES, "; did you mean 'CrashLoopBackOff'?"),
        ("x", STATES, "; known are Running, Pending, CrashLoopBackOff"),
        ("x", [f"word{number}" for number in range(50)], ""),
        ("x", (), ""),
    ],
)
def test_the_nearest_word_is_suggested_whatever_its_case(word, known, said):
    assert did_you_mean(word, known) == said
