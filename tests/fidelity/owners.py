"""Random workloads of every kind whose pods are replaced: the controllers make their pods."""

from random import Random

from tests.e2e.api import Object
from tests.fidelity.clusters import APPS, service
from tests.fidelity.pods import random_template

DEPLOYMENT, STATEFUL_SET, JOB, WAITING_JOB = "Deployment", "StatefulSet", "Job", "Job that waits"
KINDS = (DEPLOYMENT, STATEFUL_SET, JOB, WAITING_JOB)
SERVED_APPS = APPS // 2


def random_owners(random: Random, count: int) -> list[Object]:
    """Return Services for half of the apps, and workloads of the four kinds in turn."""
    workloads = [_workload(random, KINDS[number % len(KINDS)], f"owner-{number:03}") for number in range(count)]
    return [*(service(app) for app in range(SERVED_APPS)), *workloads]


def kind_of(owner: Object) -> str:
    """Return which of the four kinds a workload is."""
    waits = owner["spec"].get("podReplacementPolicy") == "Failed"
    return WAITING_JOB if waits else str(owner["kind"])


def _workload(random: Random, kind: str, name: str) -> Object:
    template = random_template(random, random.randrange(APPS))
    template["metadata"]["labels"]["owner"] = name
    replicas = random.choice((2, 3, 4))
    if kind in (JOB, WAITING_JOB):
        template["spec"]["restartPolicy"] = "Never"
        spec: Object = {"parallelism": replicas, "completions": replicas, "backoffLimit": 10_000, "template": template}
        if kind == WAITING_JOB:
            spec["podReplacementPolicy"] = "Failed"
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"owner": name}}, "template": template}
    if kind == STATEFUL_SET:
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
