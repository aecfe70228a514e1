"""What a ServiceAccount may do, as the API server sees it; a rule works about a second after it was made."""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.e2e.api import Api, Object


class Permission(NamedTuple):
    """One thing that a rule allows."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        """As the program names it: "list nodes", "create events.events.k8s.io"."""
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


def permissions(rules: Iterable[Object]) -> list[Permission]:
    """All that rules allow."""
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
    """Whether an account has all that its roles and cluster roles allow."""
    return all(allowed(api, account, *each) for role in roles for each in _asked(role))


def _asked(role: Object) -> Iterator[tuple[Permission, str, str]]:
    namespace = role["metadata"].get("namespace", "")
    for rule in role["rules"]:
        for each, name in itertools.product(permissions([rule]), rule.get("resourceNames", [""])):
            yield each, namespace, name
