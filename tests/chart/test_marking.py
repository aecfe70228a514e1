"""Marking runs beside the rest, with permissions that nobody gets without it."""

import pytest

from rebalancer.marking.rules import load_marking_rules
from rebalancer.policy.load import load_policy
from rebalancer.run.policies import known_plugins
from tests.chart.helm import Object, kinds, needed, one, pod_spec, policy_text, template, template_of

pytestmark = needed

RULES: Object = {"cpu": {"query": "load", "above": 80, "below": 70}}
MARKED: Object = {
    "policy": {"preset": "usage-prometheus"},
    "marking": {"enabled": True, "rules": RULES, "label": "status=presure", "taint": "example.com/hot"},
}


def test_the_rules_are_ones_that_load():
    """With the keys, the share and the expiry of the values, beside the policy of the release; dry where runs are."""
    found = template(MARKED)
    policy = load_policy(policy_text(found), known_plugins(), source="policy", runs=False).policy
    text = one(found, "ConfigMap", "-mark")["data"]["rules.yaml"]

    rules = load_marking_rules(text, policy, source="values")

    assert (str(rules.mark.label), str(rules.mark.taint), rules.max_nodes) == ("status=presure", "example.com/hot", 50)
    assert rules.rules["cpu"].above == 80
    dry = one(template(MARKED, "--set", "dryRun=true"), "Deployment", "-mark")["spec"]["template"]["spec"]
    assert "--dry-run" in dry["containers"][0]["args"]


def test_the_deployment_is_told_apart_and_takes_its_own_lease():
    """Its pods match no selector of the release's other objects."""
    found = template({**MARKED, "kind": "Deployment", "leaderElection": {"resourceNamespace": "tools"}})
    mark, run = one(found, "Deployment", "-mark"), one(found, "Deployment", "rebalancer")
    labels = mark["spec"]["template"]["metadata"]["labels"]

    assert mark["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert not run["spec"]["selector"]["matchLabels"].items() <= labels.items()
    args, role = mark["spec"]["template"]["spec"]["containers"][0]["args"], one(found, "Role", "-lease")
    assert {"--leader-elect=true", "--leader-elect-resource-namespace=tools"} <= set(args)
    names = [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule]
    assert (role["metadata"]["namespace"], names) == ("tools", [["rebalancer", "rebalancer-mark"]])


def test_changed_rules_and_a_changed_policy_roll_it():
    """And it logs as much as runs do."""
    others: list[Object] = [{"marking": {**MARKED["marking"], "rules": {"cpu": {**RULES["cpu"], "above": 90}}}}]
    others += [{"policy": {"preset": "usage-pack"}}, {"cmdOptions": {"v": 2}}]
    pods = [one(template({**MARKED, **each}), "Deployment", "-mark")["spec"]["template"] for each in ({}, *others)]

    assert [each["spec"]["containers"][0]["args"][-1] for each in pods] == ["--v=1"] * 3 + ["--v=2"]
    assert len({each["metadata"]["annotations"]["checksum/config"] for each in pods}) == 3


def test_its_pod_is_placed_and_prepared_as_that_of_runs():
    """It reads the same sources, by the same certificates and names."""
    given: Object = {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"key": "infra"}],
        "dnsConfig": {"nameservers": ["192.0.2.1"]},
        "initContainers": [{"name": "certificates"}],
    }
    found = template({**MARKED, **given})

    for pod in (pod_spec(found), one(found, "Deployment", "-mark")["spec"]["template"]["spec"]):
        assert pod.items() >= given.items()
    hook = one(found, "Job", "-unmark")["spec"]["template"]["spec"]
    assert {key for key in given if hook.get(key) == given[key]} == {"imagePullSecrets", "nodeSelector", "tolerations"}


WATCHED: Object = {
    "service": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "podMonitor": {"enabled": True, "interval": "1m"},
    "networkPolicy": {"enabled": True, "ingressFrom": [{"podSelector": {}}]},
}


def selected(selector, labelled):
    return [each["name"] for each in labelled if selector.items() <= each["labels"].items()]


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_what_watches_it_finds_it_alone(kind):
    """By the values of the loop; and what watches the loop does not find it."""
    found = template({**MARKED, **WATCHED, "kind": kind})
    services = [each["metadata"] for each in found if each["kind"] == "Service"]
    pods = [
        {"name": name, "labels": template_of(each)["metadata"]["labels"]}
        for each in found
        for name in [each["metadata"]["name"]]
        if each["kind"] in {"Deployment", "CronJob"}
    ]

    def matched(kind, among, *path):
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


def test_what_watches_it_says_the_same_as_of_the_loop():
    found = template({**MARKED, **WATCHED, "kind": "Deployment", "cmdOptions": {"secure-port": 10443}})

    def rest(each):
        return {key: value for key, value in each["spec"].items() if not key.lower().endswith("selector")}

    for kind in ("PodMonitor", "NetworkPolicy", "Service", "ServiceMonitor"):
        assert rest(one(found, kind, "-mark")) == rest(one(found, kind, "rebalancer"))
    (endpoint,) = one(found, "PodMonitor", "-mark")["spec"]["podMetricsEndpoints"]
    assert (endpoint["targetPort"], endpoint["interval"]) == (10443, "1m")


def test_without_marking_nothing_watches_it():
    """Nor with it, unless the values say so."""
    watched = {"Service", "ServiceMonitor", "PodMonitor", "NetworkPolicy"}

    assert not watched & set(kinds(template(MARKED)))
    assert not [each for each in template({**WATCHED, "kind": "Deployment"}) if "mark" in each["metadata"]["name"]]
