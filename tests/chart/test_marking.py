"""Marking runs beside the rest, with permissions that nobody gets without it."""

from collections.abc import Iterable

import pytest
import yaml

from rebalancer.marking.rules import load_marking_rules
from rebalancer.policy.load import decode_policy
from rebalancer.run.policies import known_plugins
from tests.chart.helm import ADMISSION, Object, kinds, needed, one, policy_text, refusal, template
from tests.chart.test_policy import granted

pytestmark = needed

NODES = {"get nodes", "patch nodes"}
RULES: Object = {"cpu": {"query": "load", "above": 80, "below": 70}}
MARKED: Object = {
    "policy": {"preset": "usage-prometheus"},
    "marking": {"enabled": True, "rules": RULES, "label": "status=presure", "taint": "example.com/hot"},
}


def test_nodes_may_be_patched_only_where_they_are_marked() -> None:
    """A dry run may not; its Deployment says what it would do."""
    dry = template(MARKED, "--set", "dryRun=true", *ADMISSION)

    assert granted(template(MARKED)) >= NODES
    assert not NODES & granted(template())
    assert not NODES & granted(dry)
    assert not [each for each in dry if "Admission" in each["kind"]]
    assert "--dry-run" in one(dry, "Deployment", "-mark")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert not [each for each in template() if each["metadata"]["name"].endswith("-mark")]


def test_the_rules_are_ones_that_load() -> None:
    """With the keys, the share and the expiry of the values, beside the policy of the release."""
    found = template(MARKED)
    policy = decode_policy(policy_text(found), known_plugins(), source="policy").policy
    text = one(found, "ConfigMap", "-mark")["data"]["rules.yaml"]

    rules = load_marking_rules(text, policy, source="values")

    assert (str(rules.mark.label), str(rules.mark.taint), rules.max_nodes) == ("status=presure", "example.com/hot", 50)
    assert rules.rules["cpu"].above == 80


def test_the_deployment_is_told_apart_and_takes_its_own_lease() -> None:
    """Its pods match no selector of the release's other objects."""
    found = template({**MARKED, "kind": "Deployment"})
    mark, run = one(found, "Deployment", "-mark"), one(found, "Deployment", "rebalancer")
    labels = mark["spec"]["template"]["metadata"]["labels"]

    assert mark["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert not run["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert "--leader-elect=true" in mark["spec"]["template"]["spec"]["containers"][0]["args"]
    names = [rule["resourceNames"] for rule in one(found, "Role", "-lease")["rules"] if "resourceNames" in rule]
    assert names == [["rebalancer", "rebalancer-mark"]]


def test_the_admission_policy_allows_just_these_keys() -> None:
    """And steering's only where the release steers."""
    admission = one(template(MARKED, *ADMISSION), "ValidatingAdmissionPolicy")
    both = one(template({**MARKED, "steering": {"enabled": True}}, *ADMISSION), "ValidatingAdmissionPolicy")

    def variables(found: Object) -> dict[str, str]:
        return {each["name"]: each["expression"] for each in found["spec"]["variables"]}

    assert variables(admission)["keys"] == "['example.com/hot']"
    assert variables(admission)["ownLabels"] == "['status']"
    assert variables(admission)["notes"] == "['kube-rebalancer/pressure']"
    assert variables(both)["keys"] == "['kube-rebalancer/avoid', 'kube-rebalancer/avoid-more', 'example.com/hot']"
    assert variables(both)["notes"] == "['kube-rebalancer/avoid', 'kube-rebalancer/pressure']"


def test_marks_come_off_before_the_release_goes() -> None:
    """By their key too, for labels that have lost their annotation."""
    job = one(template(MARKED), "Job", "-unmark")

    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["unmark", "--all", "--key=kube-rebalancer/avoid", "--mark=status=presure"]
    assert kinds(template()).count("Job") == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rules": {}}, "marking.enabled needs marking.rules"),
        ({"label": "", "taint": ""}, "marking.enabled needs marking.label, marking.taint, or both"),
        ({"label": "no key"}, "label"),
        ({"taint": "a'b"}, "taint"),
    ],
)
def test_values_that_cannot_work_are_refused(change: Object, said: str) -> None:
    """The keys would end up in expressions."""
    assert said in refusal(yaml.safe_dump({**MARKED, "marking": {**MARKED["marking"], **change}}))


WATCHED: Object = {
    "service": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "podMonitor": {"enabled": True, "interval": "1m"},
    "networkPolicy": {"enabled": True, "ingressFrom": [{"podSelector": {}}]},
}


def pod_template_of(found: Object) -> Object:
    spec = found["spec"]
    template: Object = (spec["jobTemplate"]["spec"] if found["kind"] == "CronJob" else spec)["template"]
    return template


def selected(selector: Object, labelled: Iterable[Object]) -> list[str]:
    """Names of the objects whose labels a selector matches."""
    return [each["name"] for each in labelled if selector.items() <= each["labels"].items()]


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_what_watches_it_finds_it_alone(kind: str) -> None:
    """By the values of the loop; and what watches the loop does not find it."""
    found = template({**MARKED, **WATCHED, "kind": kind})
    services = [each["metadata"] for each in found if each["kind"] == "Service"]
    pods = [
        {"name": name, "labels": pod_template_of(each)["metadata"]["labels"]}
        for each in found
        for name in [each["metadata"]["name"]]
        if each["kind"] in {"Deployment", "CronJob"}
    ]

    def matched(kind: str, among: Iterable[Object], *path: str) -> dict[str, list[str]]:
        selectors = {}
        for each in (each for each in found if each["kind"] == kind):
            selector = each["spec"]
            for step in path:
                selector = selector[step]
            selectors[each["metadata"]["name"]] = selected(selector, among)
        return selectors

    alone = {"rebalancer-mark": ["rebalancer-mark"]}
    both = alone | {"rebalancer": ["rebalancer"]}
    assert matched("PodMonitor", pods, "selector", "matchLabels") == both
    assert matched("NetworkPolicy", pods, "podSelector", "matchLabels") == both
    assert matched("Service", pods, "selector") == (both if kind == "Deployment" else alone)
    assert matched("ServiceMonitor", services, "selector", "matchLabels") == (both if kind == "Deployment" else alone)


def test_what_watches_it_says_the_same_as_of_the_loop() -> None:
    """Port, interval, who may come in."""
    found = template({**MARKED, **WATCHED, "kind": "Deployment", "cmdOptions": {"secure-port": 10443}})

    def rest(each: Object) -> Object:
        return {key: value for key, value in each["spec"].items() if not key.lower().endswith("selector")}

    for kind in ("PodMonitor", "NetworkPolicy", "Service", "ServiceMonitor"):
        assert rest(one(found, kind, "-mark")) == rest(one(found, kind, "rebalancer"))
    (endpoint,) = one(found, "PodMonitor", "-mark")["spec"]["podMetricsEndpoints"]
    assert (endpoint["targetPort"], endpoint["interval"]) == (10443, "1m")


def test_without_marking_nothing_watches_it() -> None:
    """Nor with it, unless the values say so."""
    watched = {"Service", "ServiceMonitor", "PodMonitor", "NetworkPolicy"}

    assert not watched & set(kinds(template(MARKED)))
    assert not [each for each in template({**WATCHED, "kind": "Deployment"}) if "mark" in each["metadata"]["name"]]
