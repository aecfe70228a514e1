"""What `rebalancer recommend --patches` writes, applied by the real API server and placed by the real scheduler."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import pstdev

import pytest
import yaml
from click.testing import CliRunner

from rebalancer.cli.main import main
from tests.e2e.api import ApiError, Object
from tests.e2e.builders import deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.waiting import wait_for

SEED = 29


def test_patches_are_applied_by_the_server(controlplane: ControlPlane, namespace: Namespace, tmp_path: Path) -> None:
    """Requests of another field manager are a conflict first; forced, they change, and the image stays."""
    namespace.create(node("a"), deployment("web", replicas=1, cpu="50m"))
    (pod,) = namespace.wait_ready(1)
    path = f"/apis/apps/v1/namespaces/{namespace.name}/deployments/web"
    (before,) = namespace.api.request("GET", path)["spec"]["template"]["spec"]["containers"]
    pods, samples, out = tmp_path / "pods.json", tmp_path / "samples", tmp_path / "patches"
    pods.write_text(json.dumps({"kind": "List", "items": [{"kind": "Pod", **pod}]}))
    samples.mkdir()
    for day in range(14):
        time = datetime(2023, 5, 11, 10, 30, tzinfo=UTC) + timedelta(days=day)
        line = f"{namespace.name} {pod['metadata']['name']} {before['name']} 200m 100Mi\n"
        (samples / f"top-{time:%Y%m%d%H%M%S}.txt").write_text(line)
    arguments = ["--samples", samples, "--snapshot", pods, "--patches", out, "--min-samples", "14"]

    outcome = CliRunner().invoke(main, ["recommend", *map(str, arguments)])

    assert outcome.exit_code == 0, outcome.stderr
    (file,) = out.iterdir()
    patch = yaml.safe_load(file.read_text())
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
    again = [*arguments[:-4], "--patches", tmp_path / "again", "--min-samples", "14", "--rule", "target"]
    run("recommend", *again)
    (file,) = (tmp_path / "again").iterdir()
    namespace.api.request("PATCH", path, yaml.safe_load(file.read_text()), "application/apply-patch+yaml", manager)
    (last,) = namespace.api.request("GET", path)["spec"]["template"]["spec"]["containers"]
    assert last["resources"] == {
        "requests": {"cpu": "230m", "memory": "115Mi"},
        "limits": {"cpu": "230m", "memory": "115Mi"},
    }


def test_the_foretold_spread_comes_true(
    controlplane: ControlPlane, namespace: Namespace, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    """Requests of 10m say nothing; with the patches, rolled out and placed by the real scheduler, nodes are even.

    Pods that use from 20m to 1000m on nodes of two sizes: the standard deviation of what nodes use is what was
    foretold, within two points.
    """
    random = Random(SEED)
    sizes = {f"n{number}": (16_000, 32_000)[number % 2] for number in range(6)}
    used = {f"app-{number}": random.choice([20, 50, 200, 500, 1000]) for number in range(30)}
    replicas = {name: random.randint(1, 5) for name in used}
    namespace.create(*(node(name, cpu=f"{cpu}m", memory="64Gi") for name, cpu in sizes.items()))
    namespace.create(*(deployment(name, replicas=replicas[name], cpu="10m", memory="16Mi") for name in used))
    pods = namespace.wait_ready(sum(replicas.values()))
    samples, cluster, patches = tmp_path / "samples", tmp_path / "cluster.json", tmp_path / "patches"
    write_samples(samples, [(namespace.name, pod["metadata"]["name"], used[app(pod)]) for pod in pods])
    run("snapshot", "--kubeconfig", controlplane.kubeconfig, "--output", cluster)

    asked = ["--samples", samples, "--snapshot", cluster, "--patches", patches, "--min-samples", "14", "--what-if"]
    foretold = json.loads(run("recommend", *asked, "-o", "json"))["whatIf"]
    before = spread(pods, used, sizes)
    for file in patches.iterdir():
        patch = yaml.safe_load(file.read_text())
        path = f"/apis/apps/v1/namespaces/{namespace.name}/deployments/{patch['metadata']['name']}"
        forced = {"fieldManager": "rebalancer-recommend", "force": "true"}
        namespace.api.request("PATCH", path, patch, "application/apply-patch+yaml", forced)
    wait_for(lambda: rolled_out(namespace, len(pods)), "all pods replaced")
    after = spread(namespace.pods(), used, sizes)

    expected = {name: foretold[name]["cpu"]["standardDeviation"] for name in ("asItIs", "recommended")}
    tell(f"standard deviation of cpu: {before:.1f} before, {after:.1f} after; foretold {expected['recommended']}")
    assert before == pytest.approx(expected["asItIs"], abs=0.1)
    assert after == pytest.approx(expected["recommended"], abs=2)
    assert after < before / 2


def run(*arguments: object) -> str:
    outcome = CliRunner().invoke(main, [*map(str, arguments)])
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.stdout


def app(pod: Object) -> str:
    return str(pod["metadata"]["labels"]["app"])


def write_samples(folder: Path, used: Iterable[tuple[str, str, int]]) -> None:
    """Write what `kubectl top` tells on 14 days at the same time; every other day a tenth more, then a tenth less."""
    rows = list(used)
    folder.mkdir()
    for day in range(14):
        time = datetime(2023, 5, 11, 10, 30, tzinfo=UTC) + timedelta(days=day)
        share = 0.9 if day % 2 else 1.1
        lines = [f"{namespace} {pod} main {round(cpu * share)}m 20Mi\n" for namespace, pod, cpu in rows]
        (folder / f"top-{time:%Y%m%d%H%M%S}.txt").write_text("".join(lines))


def spread(pods: Iterable[Object], used: Mapping[str, int], sizes: Mapping[str, int]) -> float:
    """The standard deviation of what nodes use, in percentage points."""
    totals = dict.fromkeys(sizes, 0)
    for pod in pods:
        totals[pod["spec"]["nodeName"]] += used[app(pod)]
    return pstdev(100 * totals[name] / size for name, size in sizes.items())


def rolled_out(namespace: Namespace, pods: int) -> bool:
    """Whether all pods are of the new template, and Ready."""
    ready = namespace.ready()
    resources = [each["spec"]["containers"][0]["resources"] for each in ready]
    return len(ready) == len(namespace.pods()) == pods and all("limits" in each for each in resources)
