"""What `rebalancer recommend --patches` writes, applied by the real API server and placed by the real scheduler."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from click.testing import CliRunner

from rebalancer.cli.main import main
from tests.e2e.api import ApiError
from tests.e2e.builders import deployment, node


def test_patches_are_applied_by_the_server(controlplane, namespace, tmp_path):
    """Requests of another field manager are a conflict first; forced, they change, and the image stays."""
    namespace.create(node("a"), deployment("web", replicas=1, cpu="50m"))
    (pod,) = namespace.wait_ready(1)
    path = f"/apis/apps/v1/namespaces/{namespace.name}/deployments/web"
    (before,) = namespace.api.request("GET", path)["spec"]["template"]["spec"]["containers"]
    pods, samples = tmp_path / "pods.json", tmp_path / "samples"
    pods.write_text(json.dumps({"kind": "List", "items": [{"kind": "Pod", **pod}]}))
    samples.mkdir()
    for day in range(14):
        time = datetime(2023, 5, 11, 10, 30, tzinfo=UTC) + timedelta(days=day)
        line = f"{namespace.name} {pod['metadata']['name']} {before['name']} 200m 100Mi\n"
        (samples / f"top-{time:%Y%m%d%H%M%S}.txt").write_text(line)
    arguments = ["--samples", samples, "--snapshot", pods, "--min-samples", "14"]
    patch = recommended(tmp_path / "patches", *arguments)
    manager = {"fieldManager": "rebalancer-recommend"}
    with pytest.raises(ApiError, match="conflict") as refused:
        namespace.api.request("PATCH", path, patch, "application/apply-patch+yaml", manager)
    assert refused.value.status == 409
    forced = {**manager, "force": "true"}
    namespace.api.request("PATCH", path, patch, "application/apply-patch+yaml", forced)
    (after,) = namespace.api.request("GET", path)["spec"]["template"]["spec"]["containers"]
    amounts = {"requests": {"cpu": "150m", "memory": "75Mi"}, "limits": {"cpu": "200m", "memory": "115Mi"}}
    assert after == {**before, "resources": amounts}

    # The rule `target` asks for no limits: those of the first patch stay, though nobody else has set them.
    pods.write_text(json.dumps({"kind": "List", "items": [{**pod, "kind": "Pod", "spec": {"containers": [after]}}]}))
    again = recommended(tmp_path / "again", *arguments, "--rule", "target")
    namespace.api.request("PATCH", path, again, "application/apply-patch+yaml", manager)
    (last,) = namespace.api.request("GET", path)["spec"]["template"]["spec"]["containers"]
    assert last["resources"] == {
        "requests": {"cpu": "230m", "memory": "115Mi"},
        "limits": {"cpu": "230m", "memory": "115Mi"},
    }


def recommended(folder, *arguments):
    """Return the one patch that the program writes into a folder."""
    outcome = CliRunner().invoke(main, ["recommend", "--patches", str(folder), *map(str, arguments)])
    assert outcome.exit_code == 0, outcome.stderr
    (file,) = folder.iterdir()
    return yaml.safe_load(file.read_text())
