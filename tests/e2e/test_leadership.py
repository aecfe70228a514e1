"""Three replicas on the real control plane: one works at a time, whatever becomes of it; the audit log judges."""

import itertools
import json
import os
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.access import Permission, allowed
from tests.e2e.api import ApiError
from tests.e2e.builders import deployment, node, service_account
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import everything_in
from tests.e2e.proxy import Hold, Proxy
from tests.e2e.waiting import wait_for

HANDOVERS = int(os.environ.get("REBALANCER_E2E_HANDOVERS", "50"))
PODS = 12
#: Generous: spent only when a test fails, and the machine may be busy.
TIMEOUT = 300.0
#: Lease duration, renew deadline and retry period: as short as a busy machine allows.
TIMING = ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=400ms"]


@dataclass
class Replica:
    """A process of the control plane's; started again it is the same account and another identity."""

    user: str
    kubeconfig: Path
    policy: Path
    stage: "Stage"

    @property
    def pid(self):
        return self.processes.pid(self.user)

    @property
    def processes(self):
        return self.stage.controlplane.processes

    def start(self):
        command = [sys.executable, "-m", "rebalancer", "run", "--policy", str(self.policy), "--yes", "-v", "1"]
        command += ["--kubeconfig", str(self.kubeconfig), "--descheduling-interval", "500ms", "--leader-elect"]
        command += ["--leader-elect-resource-namespace", self.stage.namespace.name, *TIMING]
        self.processes.start(self.user, command)

    def kill(self):
        self.processes.kill(self.user)


@contextmanager
def replicas(made):
    try:
        for each in made:
            each.start()
        yield
    finally:
        for each in made:
            each.kill()


@dataclass
class Stage:
    """A namespace with pods that should always go, and accounts for replicas."""

    controlplane: ControlPlane
    namespace: Namespace
    made: list[Replica]
    offset: int

    def leader(self):
        """The replica that holds the Lease, by what it calls itself."""
        try:
            lease = self.controlplane.api.read("Lease", "rebalancer", self.namespace.name)
        except ApiError:
            return None
        pid = str(lease["spec"].get("holderIdentity") or "0_0").split("_")[1]
        return next((each for each in self.made if each.pid == int(pid)), None)

    def wait_leader(self, besides=None):
        def another():
            found = self.leader()
            return None if found is besides else found

        return wait_for(another, "another leader", TIMEOUT)

    def evictions_by(self, replica):
        return sum(
            each.subresource == "eviction" for each in self.controlplane.requests_since(self.offset, replica.user)
        )

    def wait_evicting(self, replica):
        """Wait until a replica evicts, now and not only earlier."""
        seen = self.evictions_by(replica)
        wait_for(lambda: self.evictions_by(replica) > seen, f"evictions by {replica.user}", TIMEOUT)

    def judge(self, handovers):
        """Hold evictions against who had last written the Lease when they were received; say in words what was seen.

        One replica evicts at a time, and no pod is evicted twice.  Whoever loses the Lease has asked for one eviction
        more at most.
        """
        requests = self.controlplane.requests_since(self.offset, None)
        users = {replica.user for replica in self.made}
        ours = [each for each in requests if each.namespace == self.namespace.name and each.user in users]
        writes = [each for each in ours if each.resource == "leases" and not each.reads_only and each.status < 300]
        evictions = [each for each in ours if each.subresource == "eviction"]
        writes.sort(key=lambda each: each.answered)
        owners = [write.user for write in writes]
        strays: Counter[int] = Counter()  # by the last write of who evicted without the Lease, counted from 1
        for eviction in evictions:
            before = owners[: sum(write.answered <= eviction.received for write in writes)]
            if not before or before[-1] != eviction.user:
                own = [number for number, owner in enumerate(before, 1) if owner == eviction.user]
                strays[own[-1] if own else 0] += 1
        evicted = [each.name for each in evictions if each.status < 300]
        seen = sum(one != two for one, two in pairwise(owners))
        assert seen >= handovers
        assert len(evicted) == len(set(evicted)) > 0
        assert all(count == 1 for count in strays.values())
        return f"leadership: {seen} hand-overs, {len(evicted)} evictions, {len(strays)} strays"


@pytest.fixture
def stage(controlplane, namespace, tmp_path):
    """Three replicas that are not started yet."""
    names = ("one", "two", "three")
    namespace.create(node("a", cpu="16"), node("b", cpu="16"), deployment("web", replicas=PODS))
    namespace.create(*(service_account(each) for each in names))
    for each in names:
        namespace.create(admin(each, namespace.name))
        may = partial(allowed, controlplane.api, f"{namespace.name}:{each}", Permission("create", "", "pods/eviction"))
        wait_for(may, f"{each}'s permissions in force")
    namespace.wait_ready(PODS, "web")
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(everything_in(namespace.name, maxNoOfPodsToEvictTotal=4)))
    made = Stage(controlplane, namespace, [], controlplane.audit_offset())
    for each in names:
        token = controlplane.api.token(each, namespace.name, seconds=3600)
        config = controlplane.kubeconfig_for(f"{namespace.name}-{each}", token)
        made.made.append(Replica(f"system:serviceaccount:{namespace.name}:{each}", config, policy, made))
    return made


def admin(account, namespace):
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{namespace}-{account}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def killed(stage, leader):
    """The leader dies without a word, and comes back after another has taken over."""
    leader.kill()
    stage.wait_leader(besides=leader)
    leader.start()


def stopped(stage, leader):
    """The leader stands still, another takes over, and it goes on where it was."""
    leader.processes.pause(leader.user)
    stage.wait_leader(besides=leader)
    leader.processes.resume(leader.user)


def ended(stage, leader):
    """The leader is asked to end: it gives the Lease back, and exits with 0."""
    assert leader.processes.end(leader.user) == 0
    stage.wait_leader(besides=leader)
    leader.start()


def test_hand_overs(stage, tell):
    """Whatever becomes of leaders, one replica evicts at a time, and no pod is evicted twice."""
    accidents = itertools.cycle([ended, killed, ended, stopped])
    with replicas(stage.made):
        for accident in itertools.islice(accidents, HANDOVERS):
            leader = stage.wait_leader()
            accident(stage, leader)
        stage.wait_evicting(stage.wait_leader())

    tell(stage.judge(HANDOVERS))


@dataclass
class CutOff(Hold):
    """Holds everything that comes from when it is cut until it is mended."""

    method: str = "*"
    path_end: str = ""
    only: str = ""
    _cut: threading.Event = field(default_factory=threading.Event)
    _mended: threading.Event = field(default_factory=threading.Event)

    def cut(self):
        self._cut.set()

    def release(self):
        self._mended.set()

    def pass_through(self, method, path):
        if self._cut.is_set() and self.only in path:
            self._mended.wait(TIMEOUT)


@pytest.mark.parametrize("only", ["", "/leases/"], ids=["everything", "renewals"])
def test_cut_off_from_the_api_server(stage, only):
    """A leader that cannot renew stops evicting by its deadline, also where evictions would still get through."""
    leader, *others = stage.made
    with Proxy(stage.controlplane, CutOff(only=only)) as proxy:
        leader.kubeconfig = proxy.kubeconfig(leader.kubeconfig)
        with replicas([leader]):
            assert stage.wait_leader() is leader
            stage.wait_evicting(leader)
            with replicas(others):
                proxy.hold.cut()
                new = stage.wait_leader(besides=leader)
                stage.wait_evicting(new)
                proxy.hold.release()
                stage.wait_evicting(new)

    stage.judge(handovers=1)
