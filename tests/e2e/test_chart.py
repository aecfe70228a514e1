"""The chart's objects on a real control plane: each is accepted strictly."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chart.helm import CI, needed, template
from tests.chart.operator_kinds import PATHS as OPERATOR
from tests.chart.operator_kinds import definitions as definitions_of_operator
from tests.e2e.api import Api, ApiError, Object
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.waiting import wait_for
from tests.fake_kinds import RESOURCES, path_of

pytestmark = needed


@pytest.fixture(scope="module")
def operator(controlplane: ControlPlane) -> Iterator[None]:
    """The kinds of the Prometheus operator are known."""
    definitions = definitions_of_operator()
    where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for each in definitions:
        controlplane.api.request("POST", where, each)
    for path in OPERATOR.values():
        wait_for(lambda path=path: controlplane.api.ready(path.format(namespace="default")), path)  # type: ignore[misc]  # bound early
    yield
    for each in definitions:
        controlplane.api.request("DELETE", f"{where}/{each['metadata']['name']}")


@pytest.mark.parametrize("file", CI, ids=lambda file: file.name)
@pytest.mark.usefixtures("operator")
def test_every_object_is_accepted_strictly(controlplane: ControlPlane, namespace: Namespace, file: Path) -> None:
    """No unknown field, no wrong type, in whatever namespace it is."""
    for manifest in template(file.read_text()):
        kind = manifest["kind"]
        inside = namespace.name if kind in OPERATOR or RESOURCES[kind][2] else ""
        moved = {**manifest["metadata"], "namespace": inside} if inside else manifest["metadata"]
        path = OPERATOR[kind].format(namespace=inside) if kind in OPERATOR else path_of(kind, inside)
        accepted = strictly(controlplane.api, {**manifest, "metadata": moved}, path)
        assert (accepted["kind"], accepted["metadata"]["name"]) == (kind, moved["name"])


def test_an_object_with_an_unknown_field_is_not_accepted(controlplane: ControlPlane, namespace: Namespace) -> None:
    """The check would see it."""
    broken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "date": {}}

    with pytest.raises(ApiError, match="unknown field"):
        strictly(controlplane.api, broken, path_of("ConfigMap", namespace.name))


def strictly(api: Api, manifest: Object, path: str) -> Object:
    """Let the server check an object strictly, as if it were created."""
    return api.request(
        "POST", path, json.loads(json.dumps(manifest)), query={"dryRun": "All", "fieldValidation": "Strict"}
    )
