"""The chart's admission policy on the real control plane: soft taints of our keys and our annotation, and nothing else.

The account has a role that allows everything about nodes, so that nothing but the policy refuses.
"""

import copy
import secrets

import pytest

from rebalancer.kube.marks import ANNOTATION
from rebalancer.policy.moving import PRESSURE_KEY
from tests.chart.helm import ADMISSION, needed, one, template
from tests.e2e.access import HOME, NAME, admission
from tests.e2e.api import Api, ApiError, Object
from tests.e2e.builders import node, taint
from tests.e2e.namespace import is_ready
from tests.e2e.waiting import wait_for

pytestmark = needed

POLICY = "ValidatingAdmissionPolicy"
KEY = "kube-rebalancer/avoid"
OURS = {"key": KEY, "value": "run-1", "effect": "PreferNoSchedule"}
MORE = {**OURS, "key": f"{KEY}-more"}
PRESSED = {**OURS, "key": PRESSURE_KEY}
FOREIGN = {"key": "spot", "value": "true", "effect": "PreferNoSchedule"}
BEFORE: Object = {
    "metadata": {"labels": {"zone": "a"}, "annotations": {"example.com/owner": "team"}},
    "spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"], "taints": [FOREIGN]},
}


@pytest.fixture(scope="module")
def account(controlplane):
    """The program's account, with a role that allows too much, and the policy in force."""
    api = controlplane.api
    rendered = template({"steering": {"enabled": True}}, *ADMISSION)
    everything = {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["*"]}
    api.create(one(rendered, "ServiceAccount"), HOME)
    api.create({**one(rendered, "ClusterRole"), "rules": [everything]})
    api.create(one(rendered, "ClusterRoleBinding"))
    found = Api(controlplane.kubeconfig_for("admitted", api.token(NAME, HOME)))
    api.create(node("probe"))
    with admission(api, rendered):
        wait_for(lambda: not probed(found), "the policy in force")
        yield found
    for kind in ("ClusterRoleBinding", "ClusterRole", "ServiceAccount", "Node"):
        api.delete(kind, "probe" if kind == "Node" else NAME, HOME if kind == "ServiceAccount" else "")


@pytest.fixture
def api(controlplane, namespace, account):
    """The account, and a node with a taint, a label and an annotation of others."""
    namespace.create(node("n1"))
    wait_for(lambda: is_settled(controlplane.api.read("Node", "n1")), "the controllers done with the node")
    controlplane.api.patch("Node", "n1", "", copy.deepcopy(BEFORE))
    return account


def is_settled(found):
    """Whether those who write to a fresh node have done so."""
    metadata = found["metadata"]
    annotated = "node.alpha.kubernetes.io/ttl" in metadata.get("annotations", {})
    return is_ready(found) and annotated and "beta.kubernetes.io/os" in metadata["labels"]


def probed(api, node="probe"):
    """Whether a label of a node can be changed; also where the role does not work yet."""
    try:
        api.patch("Node", node, "", {"metadata": {"labels": {"probe": secrets.token_hex(4)}}})
    except ApiError as error:
        return POLICY not in error.message
    return True


def allowed(api, name, change, subresource=""):
    try:
        api.patch("Node", name, "", change, subresource)
    except ApiError as error:
        if POLICY not in error.message:
            raise  # what is not valid anyway proves nothing
        return False
    return True


ALLOWED = {
    "one taint": {"spec": {"taints": [FOREIGN, OURS]}},
    "two taints": {"spec": {"taints": [OURS, FOREIGN, MORE]}},
    "the annotation": {"metadata": {"annotations": {ANNOTATION: "{}"}}},
    "nothing": {},
    "what marking has left": {"metadata": {"labels": {PRESSURE_KEY: "cpu"}}, "spec": {"taints": [FOREIGN, PRESSED]}},
}


@pytest.mark.parametrize("change", ALLOWED.values(), ids=ALLOWED)
def test_marks_are_allowed(controlplane, api, change):
    """Set, and taken off again."""
    notes, labels = {ANNOTATION: None}, {PRESSURE_KEY: None}
    back = {"metadata": {"annotations": notes, "labels": labels}, "spec": {"taints": [FOREIGN]}}

    assert allowed(api, "n1", change)
    assert allowed(api, "n1", back)
    found = controlplane.api.read("Node", "n1")
    assert found["spec"]["taints"] == [FOREIGN]
    assert ANNOTATION not in found["metadata"]["annotations"]
    assert PRESSURE_KEY not in found["metadata"]["labels"]


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
REFUSED = {
    "our key, a hard effect": {"spec": {"taints": [FOREIGN, {**OURS, "effect": "NoSchedule"}]}},
    "our key, NoExecute": {"spec": {"taints": [FOREIGN, {**OURS, "effect": "NoExecute"}]}},
    "another key": {"spec": {"taints": [FOREIGN, {**OURS, "key": "other"}]}},
    "a key like ours": {"spec": {"taints": [FOREIGN, {**OURS, "key": f"{KEY}-most"}]}},
    "a foreign taint gone": {"spec": {"taints": None}},
    "a foreign taint replaced": {"spec": {"taints": [OURS]}},
    "a foreign taint's value": {"spec": {"taints": [{**FOREIGN, "value": "false"}]}},
    "a foreign taint's effect": {"spec": {"taints": [{**FOREIGN, "effect": "NoSchedule"}]}},
    "cordon": {"spec": {"unschedulable": True}},
    "provider": {"spec": {"providerID": "cloud://n1"}},
    "a label's value": {"metadata": {"labels": {"zone": "b"}}},
    "a label gone": {"metadata": {"labels": {"zone": None}}},
    "a new label": {"metadata": {"labels": {"new": "label"}}},
    "an annotation's value": {"metadata": {"annotations": {"example.com/owner": "me"}}},
    "an annotation gone": {"metadata": {"annotations": {"example.com/owner": None}}},
    "a new annotation": {"metadata": {"annotations": {"new": "note"}}},
    "an annotation like ours": {"metadata": {"annotations": {f"{ANNOTATION}-more": "note"}}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/mine"]}},
    "an owner": {"metadata": {"ownerReferences": [OWNER]}},
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_every_other_change_is_refused(controlplane, api, change):
    """By itself, and together with a mark; the node stays as it was."""
    together = copy.deepcopy(change)
    together.setdefault("metadata", {}).setdefault("annotations", {})[ANNOTATION] = "{}"
    before = controlplane.api.read("Node", "n1")

    assert not allowed(api, "n1", change)
    assert not allowed(api, "n1", together)
    after = controlplane.api.read("Node", "n1")
    assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])
    assert after["metadata"].get("annotations") == before["metadata"].get("annotations")


def test_the_status_is_refused(controlplane, api):
    """Through its subresource; through the node it is not changed at all, as the API server has it."""
    change = {"status": {"capacity": {"example.com/gpu": "1"}}}

    assert not allowed(api, "n1", change, "status")
    api.patch("Node", "n1", "", change)
    assert "example.com/gpu" not in controlplane.api.read("Node", "n1")["status"]["capacity"]


def test_nodes_are_neither_made_nor_deleted(controlplane, api):
    """The account has nothing to do with that."""
    with pytest.raises(ApiError, match=POLICY):
        api.create(node("n2"))
    with pytest.raises(ApiError, match=POLICY):
        api.delete("Node", "n1")
    replaced = controlplane.api.read("Node", "n1")
    with pytest.raises(ApiError, match=POLICY):
        api.request("PUT", "/api/v1/nodes/n1", {**replaced, "spec": {**replaced["spec"], "taints": [OURS]}})


def test_other_accounts_are_not_concerned(controlplane, api):
    """The policy is for the program's own."""
    assert controlplane.api.patch("Node", "n1", "", {"spec": {"taints": [taint("other")]}})["spec"]["taints"]
