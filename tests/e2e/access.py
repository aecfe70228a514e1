"""What a ServiceAccount may do, as the API server sees it, and the chart that allows it.

A rule works about a second after it was made.
"""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from tests.chart.helm import CHART, every, helm
from tests.e2e.api import Api, Object
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.waiting import wait_for

#: The program's account, as the chart has it.
NAME, HOME = "rebalancer", "kube-system"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
ADMISSIONS = {
    "ValidatingAdmissionPolicy": f"{_ADMISSION}ies",
    "ValidatingAdmissionPolicyBinding": f"{_ADMISSION}ybindings",
}


class Permission(NamedTuple):
    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        """As the program names it: "list nodes", "create events.events.k8s.io"."""
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


def permissions(rules: Iterable[Object]) -> list[Permission]:
    return [
        Permission(*each)
        for rule in rules
        for each in itertools.product(rule["verbs"], rule["apiGroups"], rule["resources"])
    ]


def allowed(api: Api, account: str, permission: Permission, namespace: str = "", name: str = "") -> bool:
    """Whether a ServiceAccount ("kube-system:rebalancer") has a permission, of all namespaces unless one is named."""
    resource, _, subresource = permission.resource.partition("/")
    asked = {"verb": permission.verb, "group": permission.group, "resource": resource, "subresource": subresource}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    where = {"namespace": namespace, "name": name}
    answer = api.request(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {**review, "spec": {"user": f"system:serviceaccount:{account}", "resourceAttributes": {**asked, **where}}},
    )
    return bool(answer["status"]["allowed"])


def all_in_force(api: Api, account: str, roles: Iterable[Object]) -> bool:
    return all(allowed(api, account, *each) for role in roles for each in _asked(role))


def _asked(role: Object) -> Iterator[tuple[Permission, str, str]]:
    namespace = role["metadata"].get("namespace", "")
    for rule in role["rules"]:
        for each, name in itertools.product(permissions([rule]), rule.get("resourceNames", [""])):
            yield each, namespace, name


@contextmanager
def account(controlplane: ControlPlane, namespace: Namespace, rendered: list[Object]) -> Iterator[Path]:
    """Put in place what the chart renders for the program's account; yield its kubeconfig once all of it is in force.

    There is no Lease from before: whoever makes one waits some seconds for others who do so too.
    """
    api = controlplane.api
    api.delete("Lease", NAME, HOME)
    inside = every(rendered, "ServiceAccount", "Role", "RoleBinding")
    inside += [each for each in every(rendered, "ConfigMap") if each["metadata"]["name"].endswith("-memory")]
    namespace.create(*every(rendered, "ClusterRole", "ClusterRoleBinding"))
    for each in inside:
        api.create(each, HOME)
    with admission(api, rendered):
        roles = every(rendered, "ClusterRole", "Role")
        wait_for(lambda: all_in_force(api, f"{HOME}:{NAME}", roles), "the roles in force")
        yield controlplane.kubeconfig_for(NAME, api.token(NAME, HOME))
    for each in inside:
        api.delete(each["kind"], each["metadata"]["name"], HOME)


@contextmanager
def admission(api: Api, rendered: list[Object]) -> Iterator[None]:
    policies = every(rendered, *ADMISSIONS)
    for each in policies:
        api.request("POST", ADMISSIONS[each["kind"]], each)
    yield
    for each in policies:
        api.request("DELETE", f"{ADMISSIONS[each['kind']]}/{each['metadata']['name']}")


@dataclass
class Release:
    controlplane: ControlPlane
    values: str
    name: str = "rebalancer"
    namespace: str = "kube-system"
    notes: str = ""

    def __enter__(self) -> Self:
        self.notes = self._helm("install", "--values", "-")
        wait_for(self._in_force, "the permissions in force")
        return self

    def __exit__(self, *_: object) -> None:
        self._helm("uninstall")

    def upgrade(self, values: str) -> None:
        self.values = values
        self._helm("upgrade", "--values", "-")
        wait_for(self._in_force, "the permissions in force")

    def _in_force(self) -> bool:
        api, account = self.controlplane.api, f"{self.namespace}:{self.name}"
        own = {"labelSelector": f"app.kubernetes.io/instance={self.name}"}
        roles = [*api.list("ClusterRole", **own), *api.list("Role", **own)]
        return bool(roles) and all_in_force(api, account, roles)

    def _helm(self, verb: str, *options: str) -> str:
        chart = () if verb == "uninstall" else (str(CHART),)
        where = ("--namespace", self.namespace, "--kubeconfig", self.controlplane.kubeconfig)
        return helm(verb, self.name, *chart, *options, *where, text=self.values).stdout
