"""Three replicas on the real control plane: one works at a time, whatever becomes of it; the audit log judges."""

import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.access import Permission, allowed
from tests.e2e.builders import deployment, node, service_account
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import everything_in
from tests.e2e.proxy import Hold, Proxy
from tests.e2e.replicas import Judgement, Replica, holder, judged, replicas, write_policy
from tests.e2e.waiting import wait_for

HANDOVERS = int(os.environ.get("REBALANCER_E2E_HANDOVERS", "50"))
PODS = 12
#: Generous: spent only when a test fails, and the machine may be busy.
TIMEOUT = 300.0


@dataclass
class Stage:
    """A namespace with pods that should always go, and accounts for replicas."""

    controlplane: ControlPlane
    namespace: Namespace
    made: list[Replica]
    offset: int

    def leader(self) -> Replica | None:
        pid = holder(self.controlplane.api, self.namespace.name)
        return next((each for each in self.made if each.processes and each.pid == pid), None)

    def wait_leader(self, besides: Replica | None = None) -> Replica:
        """Wait until a replica leads that is not this one."""

        def another() -> Replica | None:
            found = self.leader()
            return None if found is besides else found

        return wait_for(another, "another leader", TIMEOUT)

    def evictions_by(self, replica: Replica) -> int:
        return sum(
            each.subresource == "eviction" for each in self.controlplane.requests_since(self.offset, replica.user)
        )

    def wait_evicting(self, replica: Replica) -> None:
        """Wait until a replica evicts, now and not only earlier."""
        seen = self.evictions_by(replica)
        wait_for(lambda: self.evictions_by(replica) > seen, f"evictions by {replica.user}", TIMEOUT)

    def judgement(self) -> Judgement:
        return judged(
            [
                each
                for each in self.controlplane.requests_since(self.offset, None)
                if each.namespace == self.namespace.name and each.user in {made.user for made in self.made}
            ]
        )


@pytest.fixture
def stage(controlplane: ControlPlane, namespace: Namespace, tmp_path: Path) -> Iterator[Stage]:
    """Three replicas that are not started yet."""
    names = ("one", "two", "three")
    namespace.create(node("a", cpu="16"), node("b", cpu="16"), deployment("web", replicas=PODS))
    namespace.create(*(service_account(each) for each in names))
    for each in names:
        namespace.create(admin(each, namespace.name))
        wait_for(lambda each=each: may_evict(controlplane, namespace, each), f"{each}'s permissions in force")  # type: ignore[misc]  # bound early
    namespace.wait_ready(PODS, "web")
    policy = write_policy(tmp_path, everything_in(namespace.name, maxNoOfPodsToEvictTotal=4))
    made = []
    for each in names:
        token = controlplane.api.token(each, namespace.name, seconds=3600)
        config = controlplane.kubeconfig_for(f"{namespace.name}-{each}", token)
        user = f"system:serviceaccount:{namespace.name}:{each}"
        made.append(Replica(user, config, policy, namespace.name))
    yield Stage(controlplane, namespace, made, controlplane.audit_offset())
    for each in made:
        each.close()


def may_evict(controlplane: ControlPlane, namespace: Namespace, account: str) -> bool:
    return allowed(controlplane.api, f"{namespace.name}:{account}", Permission("create", "", "pods/eviction"))


def admin(account: str, namespace: str) -> dict[str, object]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{namespace}-{account}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def killed(stage: Stage, leader: Replica) -> None:
    """The leader dies without a word, and comes back after another has taken over."""
    leader.end(signal.SIGKILL)
    stage.wait_leader(besides=leader)
    leader.start()


def stopped(stage: Stage, leader: Replica) -> None:
    """The leader stands still, another takes over, and it goes on where it was."""
    leader.send(signal.SIGSTOP)
    stage.wait_leader(besides=leader)
    leader.send(signal.SIGCONT)


def ended(stage: Stage, leader: Replica) -> None:
    """The leader is asked to end: it gives the Lease back, and exits with 0."""
    assert leader.end(signal.SIGTERM) == 0
    stage.wait_leader(besides=leader)
    leader.start()


def test_hand_overs(stage: Stage, tell: Callable[[str], None]) -> None:
    """Whatever becomes of leaders, one replica evicts at a time, and no pod is evicted twice."""
    accidents = itertools.cycle([ended, killed, ended, stopped])
    with replicas(stage.made):
        for accident in itertools.islice(accidents, HANDOVERS):
            leader = stage.wait_leader()
            accident(stage, leader)
        stage.wait_evicting(stage.wait_leader())

    judgement = stage.judgement()
    tell(f"leadership: {judgement.handovers} hand-overs, {len(judgement.evicted)} evictions, {judgement.strays} strays")
    assert judgement.handovers >= HANDOVERS
    assert len(judgement.evicted) == len(set(judgement.evicted)) > 0
    assert all(strays <= 1 for strays in judgement.strays)


@dataclass
class CutOff(Hold):
    """Holds everything that comes from when it is cut until it is mended."""

    method: str = "*"
    path_end: str = ""
    only: str = ""
    _cut: threading.Event = field(default_factory=threading.Event)
    _mended: threading.Event = field(default_factory=threading.Event)

    def cut(self) -> None:
        self._cut.set()

    def release(self) -> None:
        self._mended.set()

    def pass_through(self, method: str, path: str) -> None:
        if self._cut.is_set() and self.only in path:
            self._mended.wait(TIMEOUT)


@pytest.mark.parametrize("only", ["", "/leases/"], ids=["everything", "renewals"])
def test_cut_off_from_the_api_server(stage: Stage, only: str) -> None:
    """A leader that cannot renew stops evicting by its deadline, also where evictions would still get through."""
    leader, *others = stage.made
    with Proxy(stage.controlplane, CutOff(only=only)) as proxy:
        leader.kubeconfig = proxy.kubeconfig(leader.kubeconfig)
        with replicas([leader]):
            assert stage.wait_leader() is leader
            stage.wait_evicting(leader)
            with replicas(others):
                proxy._hold.cut()
                new = stage.wait_leader(besides=leader)
                stage.wait_evicting(new)
                proxy._hold.release()
                stage.wait_evicting(new)

    judgement = stage.judgement()
    assert len(judgement.evicted) == len(set(judgement.evicted)) > 0
    assert all(strays <= 1 for strays in judgement.strays)
    assert judgement.handovers >= 1
