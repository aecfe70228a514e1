"""The rollout of a Deployment, restarted as `kubectl rollout restart` does: by an annotation of its template.

1. Read the pod: one that has gone or leaves needs no restart, and of one that has changed every protection is asked
   again.
2. Read the Deployment: it has to have one replica, and to be as its controller last saw it.
3. Send a JSON patch that tests the resourceVersion that was read, and sets the annotation.

The patch is sent once: without an answer it may have been carried out, and the verdict is Unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from rebalancer.cluster.pod import Pod
from rebalancer.errors import ClusterError, CycleStopped, Forbidden
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Failed, Granted, Refused, Unknown, Verdict, refused
from rebalancer.kube.answers import NotFound, Transient
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.marks import in_utc
from rebalancer.kube.node_marks import changed_entries
from rebalancer.kube.tries import Deadline, Halt
from rebalancer.kube.wire.collect import read_pod
from rebalancer.kube.wire.shared_fields import AnnotatedMetadata, VersionedMetadata
from rebalancer.kube.wire.workloads import DeploymentWire, surges
from rebalancer.untrusted.documents import decode_json

#: The annotation that kubectl sets.
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
_SECONDS = 10.0


class _Template(msgspec.Struct):
    metadata: AnnotatedMetadata  # it is never absent: the selector has to match labels there


class _RolloutSpec(msgspec.Struct):
    template: _Template


class _Rollout(msgspec.Struct):
    metadata: VersionedMetadata
    spec: _RolloutSpec


@dataclass(slots=True)
class Rollouts:
    """Restarts rollouts, until the halt comes."""

    client: Client
    halt: Halt
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def restart(self, pod: Pod, name: str, recheck: Callable[[Pod], Refused | None]) -> Verdict:
        """Restart a Deployment's rollout, so that its only pod is replaced; a pod that has changed is checked again."""
        if reason := self.halt.reason:
            raise CycleStopped(reason)
        path = path_of("apis", "apps", "v1", "namespaces", pod.namespace, "deployments", name)
        try:
            if refusal := self._refusal(pod, recheck):
                return refusal
            body = self.client.get(path, deadline=Deadline.after(_SECONDS))
            wire, found = decode_json(body, DeploymentWire), decode_json(body, _Rollout)
        except ValueError as error:
            return Failed(f"the pod or its Deployment {name} cannot be read: {error}")
        except ClusterError as error:
            return Failed(f"the Deployment {name} was not restarted: {error}")
        if not surges(wire):
            return refused(Code.ROLLOUT, owner=f"Deployment/{name}")
        return self._patched(path, name, found)

    def _patched(self, path: str, name: str, found: _Rollout) -> Verdict:
        before, stamp = found.spec.template.metadata.annotations, {RESTARTED_AT: in_utc(self.now())}
        version = {"op": "test", "path": "/metadata/resourceVersion", "value": found.metadata.resource_version}
        body = msgspec.json.encode([version, *changed_entries("/spec/template/metadata/annotations", before, stamp)])
        until = Deadline.after(_SECONDS)
        try:
            self.client.write("PATCH", path, body, deadline=until, gate=self.halt.check).confirm("Deployment")
        except ClusterError as error:
            if isinstance(error, Transient) and error.maybe_done:
                return Unknown(f"the Deployment {name} may have been restarted: {error}")
            return Failed(f"the Deployment {name} was not restarted: {error}", forbidden=isinstance(error, Forbidden))
        return Granted(restarted=name)

    def _refusal(self, pod: Pod, recheck: Callable[[Pod], Refused | None]) -> Refused | None:
        path = path_of("api", "v1", "namespaces", pod.namespace, "pods", pod.name)
        try:
            found = read_pod(self.client.get(path, deadline=Deadline.after(_SECONDS)))
        except NotFound:
            return refused(Code.GONE)
        if found.uid != pod.uid or found.terminating:
            return refused(Code.GONE)
        return None if found.resource_version == pod.resource_version else recheck(found)
