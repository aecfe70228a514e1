"""The chart's objects on a real control plane: each is accepted strictly."""

import json

import pytest

from tests.chart.helm import CI, needed, template
from tests.e2e.api import ApiError
from tests.fake_kinds import RESOURCES, path_of

pytestmark = needed


@pytest.mark.parametrize("file", CI, ids=lambda file: file.name)
def test_every_object_is_accepted_strictly(controlplane, namespace, file):
    """No unknown field, no wrong type, in whatever namespace it is; `tests/chart` checks those of the operator."""
    for manifest in [each for each in template(file.read_text()) if "coreos" not in each["apiVersion"]]:
        kind = manifest["kind"]
        inside = namespace.name if RESOURCES[kind][2] else ""
        moved = {**manifest["metadata"], "namespace": inside} if inside else manifest["metadata"]
        accepted = strictly(controlplane.api, {**manifest, "metadata": moved}, path_of(kind, inside))
        assert (accepted["kind"], accepted["metadata"]["name"]) == (kind, moved["name"])


def test_an_object_with_an_unknown_field_is_not_accepted(controlplane, namespace):
    """The check would see it."""
    broken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "date": {}}

    with pytest.raises(ApiError, match="unknown field"):
        strictly(controlplane.api, broken, path_of("ConfigMap", namespace.name))


def strictly(api, manifest, path):
    return api.request(
        "POST", path, json.loads(json.dumps(manifest)), query={"dryRun": "All", "fieldValidation": "Strict"}
    )
