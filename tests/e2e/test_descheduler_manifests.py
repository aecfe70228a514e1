"""The descheduler's plain manifests, with the program in place of its image, on a real control plane.

What `kubernetes/base` and its overlay `job` hold, command and args as they are; only the image is that of the program,
which has `/bin/descheduler` too.  The chart's tests start the same in a CronJob and a Deployment.
"""

import yaml

from tests.e2e.access import HOME, all_in_force
from tests.e2e.acts import by_node, cordon, uids
from tests.e2e.builders import deployment, node
from tests.e2e.container import IMAGE_USER, Privileges, at_work, needs_kubelet, pod_of, privileges_of
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.waiting import wait_for
from tests.ports import is_free

pytestmark = needs_kubelet

#: Where health is served unless told otherwise, and where the manifests' probes ask.
PORT = 10258
POLICY = """
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

MANIFESTS = """
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
---
apiVersion: batch/v1
kind: Job
metadata: {name: descheduler-job, namespace: kube-system}
spec:
  parallelism: 1
  completions: 1
  template:
    metadata: {name: descheduler-pod}
    spec:
      restartPolicy: Never
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


def test_the_deschedulers_manifests(controlplane: ControlPlane, namespace: Namespace) -> None:
    """As they are: its probe answers at the port that it names, two duplicates move, and the log tells of it."""
    api = controlplane.api
    namespace.create(node("a", cpu="10"), node("b", cpu="10"))
    cordon(api, "b")
    namespace.create(deployment("web", replicas=4))
    before = uids(namespace.wait_ready(4, "web"))
    cordon(api, "b", on=False)
    wait_for(lambda: is_free(PORT), f"port {PORT} free")
    policy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "descheduler-policy-configmap"}}
    manifests = [{**policy, "data": {"policy.yaml": POLICY}}, *yaml.safe_load_all(MANIFESTS)]
    made = [api.create(each, HOME) for each in manifests]
    roles = [each for each in made if each["kind"] == "ClusterRole"]
    wait_for(lambda: all_in_force(api, f"{HOME}:descheduler-sa", roles), "the permissions in force")

    with at_work(controlplane, pod_of(api, "job-name=descheduler-job")) as run:
        healthy, privileges = run.container.probe("livenessProbe"), privileges_of(run.process)
        end = run.finish()
    for each in reversed(made):
        api.delete(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", ""))

    assert end.exit_code == 0, end.log
    assert healthy
    assert privileges == Privileges(user=str(IMAGE_USER), capabilities="", new_privileges=False, root_read_only=True)
    assert "2 pods evicted" in end.log
    assert len(before - uids(namespace.pods("web"))) == 2
    assert by_node(namespace.wait_ready(4, "web")) == {"a": 2, "b": 2}
