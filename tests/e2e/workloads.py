"""Pods of the program's own, as controllers make them from its workloads."""

import secrets

from tests.e2e.api import Api, Object
from tests.e2e.waiting import wait_for

HOME = "kube-system"


def run_now(api: Api, cron_job: str = "rebalancer") -> str:
    """What `kubectl create job --from=cronjob/rebalancer` does; returns the Job's name."""
    found = api.read("CronJob", cron_job, HOME)
    name = f"{cron_job}-{secrets.token_hex(3)}"
    made = found["spec"]["jobTemplate"]
    owner = {
        "apiVersion": "batch/v1", "kind": "CronJob", "name": cron_job, "uid": found["metadata"]["uid"],
        "controller": True,
    }  # fmt: skip
    metadata = {**made.get("metadata", {}), "name": name, "ownerReferences": [owner]}
    api.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": made["spec"]}, HOME)
    return name


def pod_of(api: Api, job: str = "", selector: str = "") -> Object:
    """A pod that a controller made, such as that of a Job."""
    return pods_of(api, selector or f"job-name={job}", 1)[0]


def pods_of(api: Api, selector: str, count: int) -> list[Object]:
    """So many pods that a controller made."""

    def made() -> list[Object]:
        found = api.list("Pod", HOME, labelSelector=selector)
        return found if len(found) >= count else []

    return wait_for(made, f"{count} pods of {selector}")[:count]
