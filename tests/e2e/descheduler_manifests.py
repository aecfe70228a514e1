"""The descheduler's plain manifests: what `kubernetes/base` and its overlays hold, command and args as they are.

Only the image is another one: that of the program under test, which has `/bin/descheduler` too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import yaml

from tests.e2e.access import all_in_force
from tests.e2e.api import Api, Object
from tests.e2e.waiting import wait_for

HOME = "kube-system"
ACCOUNT = "descheduler-sa"

_POLICY = """
apiVersion: "descheduler/v1alpha2"
kind: "DeschedulerPolicy"
profiles:
  - name: ProfileName
    pluginConfig:
      - name: "DefaultEvictor"
      - name: "RemovePodsViolatingInterPodAntiAffinity"
      - name: "RemoveDuplicates"
      - name: "LowNodeUtilization"
        args:
          thresholds: {"cpu": 20, "memory": 20, "pods": 20}
          targetThresholds: {"cpu": 50, "memory": 50, "pods": 50}
    plugins:
      balance:
        enabled: ["LowNodeUtilization", "RemoveDuplicates"]
      deschedule:
        enabled: ["RemovePodsViolatingInterPodAntiAffinity"]
"""

_BASE = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: descheduler-sa}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: descheduler-cluster-role}
rules:
  - {apiGroups: [events.k8s.io], resources: [events], verbs: [create, update]}
  - {apiGroups: [""], resources: [nodes], verbs: [get, watch, list]}
  - {apiGroups: [""], resources: [namespaces], verbs: [get, watch, list]}
  - {apiGroups: [""], resources: [pods], verbs: [get, watch, list, delete]}
  - {apiGroups: [""], resources: [pods/eviction], verbs: [create]}
  - {apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: [get, watch, list]}
  - {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [get, watch, list]}
  - {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [get, watch, list]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, update]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [descheduler], verbs: [get, patch, delete]}
  - {apiGroups: [metrics.k8s.io], resources: [nodes, pods], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: descheduler-cluster-role-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: descheduler-cluster-role}
subjects: [{kind: ServiceAccount, name: descheduler-sa, namespace: kube-system}]
"""

_POD = """
priorityClassName: system-cluster-critical
serviceAccountName: descheduler-sa
volumes:
  - name: policy-volume
    configMap: {name: descheduler-policy-configmap}
containers:
  - name: descheduler
    image: localhost/kube-rebalancer
    imagePullPolicy: IfNotPresent
    command: ["/bin/descheduler"]
    args: ["--policy-config-file", "/policy-dir/policy.yaml", "--v", "3"]
    ports: [{containerPort: 10258, protocol: TCP}]
    resources: {requests: {cpu: 500m, memory: 256Mi}}
    livenessProbe:
      failureThreshold: 3
      httpGet: {path: /healthz, port: 10258, scheme: HTTPS}
      initialDelaySeconds: 3
      periodSeconds: 10
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
      privileged: false
      readOnlyRootFilesystem: true
      runAsNonRoot: true
    volumeMounts: [{mountPath: /policy-dir, name: policy-volume}]
"""


def base() -> list[Object]:
    """What all overlays share: the policy, the account and what it may do."""
    policy: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "descheduler-policy-configmap"}}
    return [{**policy, "data": {"policy.yaml": _POLICY}}, *yaml.safe_load_all(_BASE)]


def job() -> Object:
    """The overlay `kubernetes/job`."""
    return _workload("batch/v1", "Job", "descheduler-job", _job_spec("descheduler-pod"))


def cron_job() -> Object:
    """The overlay `kubernetes/cronjob`."""
    spec = {
        "schedule": "*/2 * * * *",
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"spec": _job_spec("descheduler-pod")},
    }
    return _workload("batch/v1", "CronJob", "descheduler-cronjob", spec)


def deployment() -> Object:
    """The overlay `kubernetes/deployment`."""
    pod = yaml.safe_load(_POD)
    args: Sequence[str] = pod["containers"][0]["args"]
    pod["containers"][0]["args"] = [*args[:2], "--descheduling-interval", "5m", *args[2:]]
    labels = {"app": "descheduler"}
    template = {"metadata": {"name": "descheduler", "labels": labels}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return _workload("apps/v1", "Deployment", "descheduler", spec)


OVERLAYS = {"Job": job, "CronJob": cron_job, "Deployment": deployment}


@contextmanager
def applied(api: Api, *workloads: Object) -> Iterator[None]:
    """Have the base and these workloads in place, as `kubectl apply --kustomize` would put them."""
    made = [api.create(each, HOME) for each in (*base(), *workloads)]
    try:
        roles = [each for each in made if each["kind"] == "ClusterRole"]
        wait_for(lambda: all_in_force(api, f"{HOME}:{ACCOUNT}", roles), "the permissions in force")
        yield
    finally:
        for each in reversed(made):
            api.delete(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", ""))


def _job_spec(name: str) -> Object:
    pod = {**yaml.safe_load(_POD), "restartPolicy": "Never"}
    return {"parallelism": 1, "completions": 1, "template": {"metadata": {"name": name}, "spec": pod}}


def _workload(api_version: str, kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": HOME}, "spec": spec}
