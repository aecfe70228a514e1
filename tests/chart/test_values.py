"""values.yaml, its schema, the README's table and the templates say the same."""

import functools
import json
from collections.abc import Mapping, Sequence

import pytest
import yaml

from tests.chart.described import VALUES, described, shown_table, table
from tests.chart.helm import CHART, KUBERNETES, Object, helm, needed, rendered

SCHEMA: Object = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS: Object = yaml.safe_load(VALUES.read_text())

#: Spelt wrong in the descheduler's chart, and understood; not for new values files. And helm's own.
UNDESCRIBED = {"leaderElection.resourceNamescape", "global"}

SCENES: Sequence[Object] = yaml.safe_load("""
- kind: Deployment
  leaderElection: {enabled: true}
  service: {enabled: true}
  marking: &marking {rules: {cpu: {query: up, above: 2, below: 1}}}
- kind: CronJob
- {kind: Deployment, service: {enabled: true}, serviceMonitor: {enabled: true}}
- kind: Deployment
  leaderElection: {enabled: true}
  podMonitor: {enabled: true}
  prometheusRule: {enabled: true}
  dashboard: {enabled: true}
  networkPolicy: {enabled: true}
  podDisruptionBudget: {enabled: true}
- deschedulerPolicy: {profiles: [{}]}
- schedulerConfig: {configMapName: scheduler}
- policy: {configMapName: ours}
- steering: {enabled: true}
- marking: {<<: *marking, enabled: true}
""")

#: Another value than the default, where one cannot be made from the default.
OTHERS: Mapping[str, object] = {
    "marking.interval": "45s",
    "marking.label": "status=presure",
    "marking.maxNodes": "40%",
    "marking.expiry": "20m",
    "marking.rules": {"other": {"query": "up", "above": 2, "below": 1}},
    "kind": "Job",
    "schedule": "0 3 * * *",
    "deschedulingInterval": "7m",
    "policy.preset": "usage-pack",
    "policy.text": "profiles: []",
    "policy.configMapName": "theirs",
    "deschedulerPolicy": {"profiles": [{"name": "other"}]},
    "image.pullPolicy": "Always",
    "cmdOptions": {"strict": None},
    "cmdOptions.v": 3,
    "command": ["/bin/descheduler"],
    "extraArgs": ["--strict"],
    "service.ipFamilyPolicy": "PreferDualStack",
    "service.ipFamilies": ["IPv6"],
    "leaderElection.leaseDuration": "200s",
    "leaderElection.renewDeadline": "200s",
    "leaderElection.retryPeriod": "20s",
    "pushgateway.url": "http://pushgateway:9091",
    "replicas": 3,
    "serviceAccount.automountServiceAccountToken": False,
    "automountServiceAccountToken": False,
    "ports": [],
    "steering.key": "example.com/avoid",
    "schedulerConfig.text": "kind: KubeSchedulerConfiguration",
}
#: A value that only has one; and one that belongs to what deschedulerPolicy holds (ci/old-policy-values.yaml has it).
SINGLE = {"leaderElection.resourceLock", "deschedulerPolicyAPIVersion"}


def paths(schema, prefix=""):
    """All values that a schema knows, down to maps of any keys."""
    for name, each in schema["properties"].items():
        if "properties" in each:
            yield from paths(each, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def other(value):
    if value.path in OTHERS:
        return OTHERS[value.path]
    if isinstance(value.default, bool):
        return not value.default
    if isinstance(value.default, int):
        return value.default + 1
    types = [] if isinstance(value.default, str) else _schema(value.path)["type"]
    made = {"array": [{"name": marker(value)}], "object": {marker(value): marker(value)}, "integer": 7}
    return next((made[each] for each in made if each in types), marker(value))


def marker(value):
    """A text that is found again where the value is used."""
    return f"other-{value.path.replace('.', '-').lower()}"


def is_free(value):
    """Whether any text, list or map will do."""
    return value.path not in {*OTHERS, *SINGLE} and isinstance(other(value), str | list | dict)


@functools.cache
def with_all_that_is_free(scene):
    return rendered(merged(SCENES[scene], *(nested(each.path, other(each)) for each in described() if is_free(each))))


def _schema(path):
    found = SCHEMA
    for step in path.split("."):
        found = found["properties"][step]
    return found


def nested(path, value):
    *groups, last = path.split(".")
    found: Object = {last: value}
    for group in reversed(groups):
        found = {group: found}
    return found


def merged(*files):
    result: Object = {}
    for file in files:
        for key, value in file.items():
            is_map = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if is_map else value
    return result


def test_every_value_has_a_comment_and_a_place_in_the_schema():
    """No more and no fewer on either side."""
    told = {value.path for value in described()}
    known = set(paths(SCHEMA))

    # The keys of cmdOptions are the user's: the schema does not name them.
    assert told - {"cmdOptions.v"} == known - UNDESCRIBED


def test_the_readme_has_the_table():
    """`make chart` writes it."""
    assert shown_table() == table()


@needed
@pytest.mark.parametrize(
    "value", [each for each in described() if each.path not in SINGLE], ids=lambda value: value.path
)
def test_every_value_is_used(value):
    """Another value renders another chart, whatever the kind; those that are free are looked for all at once."""
    if is_free(value):
        assert any(marker(value) in with_all_that_is_free(scene) for scene in range(len(SCENES)))
        return
    change = nested(value.path, other(value))

    assert any(rendered(merged(scene, change)) != rendered(scene) for scene in likeliest(value))


def likeliest(value):
    """The scenes, those first in which the group of the value is switched on."""
    group, _, name = value.path.partition(".")
    return sorted(SCENES, key=lambda scene: name != "enabled" and "enabled" not in scene.get(group, ()))


@needed
@pytest.mark.parametrize("value", sorted(DEFAULTS.keys() - {"kind"}))
def test_a_value_that_is_null_renders_or_is_named(value):
    """Null takes the default away; what cannot do without one says so."""
    values = {"kind": "CronJob" if value in ("schedule", "startingDeadlineSeconds") else "Deployment", value: None}
    command = ("template", "rebalancer", CHART, "--values", "-", "--kube-version", KUBERNETES)
    done = helm(*command, text=json.dumps(values), code=None)

    assert done.returncode == 0 or f"{value} is needed" in done.stderr or f"{value}.repository is needed" in done.stderr


def test_defaults_that_differ_from_those_of_the_deschedulers_chart():
    """The table of differences names them."""
    assert (DEFAULTS["schedule"], DEFAULTS["cmdOptions"]) == ("*/10 * * * *", {"v": 1})
    assert DEFAULTS["resources"]["limits"] == {"memory": "1Gi"}
