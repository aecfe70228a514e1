"""The real helm, and the chart as it renders.

    objects = template("kind: Job")
    one(objects, "Job")["spec"]

`python tests/e2e/binaries.py helm` provides helm; one on the PATH serves too.
"""

import functools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import ROOT, run
from tests.e2e.binaries import found

Object = dict[str, Any]

CHART = ROOT / "chart"
CI = sorted((CHART / "ci").glob("*-values.yaml"))
#: A helm that was built with `go install` takes every cluster for 1.20 unless it is told.
KUBERNETES = "1.36.0"
#: Which helm knows of a cluster that it is connected to.
ADMISSION = ("--api-versions", "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy")
#: A process that lives for a tenth of a second collects no garbage.
_QUICK = {"GOGC": "off", "GOMAXPROCS": "1"}

needed = pytest.mark.skipif(
    found("helm") is None, reason="there is no helm: python tests/e2e/binaries.py helm builds it"
)


def helm(
    *arguments: str | Path, text: str = "", code: int | None = 0, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run helm; it has to end with this code, or None with any."""
    return run(found("helm"), *arguments, input=text, env=_QUICK | variables, code=code)


def template(
    values: str | Object = "", *options: str, kubernetes: str = KUBERNETES, namespace: str = "kube-system"
) -> list[Object]:
    """Render the chart as release "rebalancer", with these values as YAML."""
    return list(objects(rendered(values, *options, kubernetes=kubernetes, namespace=namespace)))


def rendered(
    values: str | Object = "", *options: str, kubernetes: str = KUBERNETES, namespace: str = "kube-system"
) -> str:
    done = _template(values, (*options, "--kube-version", kubernetes, "--namespace", namespace))
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(values: str | Object, *options: str, kubernetes: str = KUBERNETES) -> str:
    done = _template(values, (*options, "--kube-version", kubernetes))
    assert done.returncode, done.stdout
    return done.stderr


def _template(values: str | Object, options: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return _templated(values if isinstance(values, str) else json.dumps(values), options)


@functools.cache
def _templated(text: str, options: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return helm("template", "rebalancer", CHART, "--values", "-", *options, text=text, code=None)


def objects(text: str) -> Iterator[Object]:
    return (each for each in yaml.load_all(text, yaml.CSafeLoader) if each)


def kinds(found: list[Object]) -> list[str]:
    return sorted(each["kind"] for each in found)


def one(found: list[Object], kind: str, ending: str = "") -> Object:
    """Return the one object of a kind whose name ends so."""
    (only,) = (each for each in found if each["kind"] == kind and each["metadata"]["name"].endswith(ending))
    return only


def every(found: list[Object], *wanted: str) -> list[Object]:
    return [each for each in found if each["kind"] in wanted]


def workloads(found: list[Object]) -> list[Object]:
    """Return what makes pods of runs that evict: not what marks, nor hooks, which helm runs by itself."""
    makers = [each for each in found if each["kind"] in {"CronJob", "Job", "Deployment"}]
    makers = [each for each in makers if not each["metadata"]["name"].endswith("-mark")]
    return [each for each in makers if "helm.sh/hook" not in each["metadata"].get("annotations", {})]


def pod_spec(found: list[Object]) -> Object:
    return pod_template(found)["spec"]


def pod_template(found: list[Object]) -> Object:
    (workload,) = workloads(found)
    return template_of(workload)


def template_of(workload: Object) -> Object:
    spec = workload["spec"]
    return (spec["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else spec)["template"]


def container(found: list[Object]) -> Object:
    (only,) = pod_spec(found)["containers"]
    return only


def policy_text(found: list[Object]) -> str:
    (text,) = (each["data"]["policy.yaml"] for each in found if "policy.yaml" in each.get("data", {}))
    return text
