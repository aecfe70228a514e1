"""What is looked at again within a live cycle, so that a pause, a window or a failing replacement ends it in time.

Before each eviction, and where a wave begins:

1. Is the run paused, or outside its windows?  The ConfigMap and the Lease are read again after 2 s.
2. Is the pod's namespace or owner paused, or outside its window?  Their annotations are read again after 2 s.
3. Is the replacement of the owner's last pod Ready (`waitReady`)?  Its pods are listed every 2 s until it is, fails, or
   the time is up; the owner loses no further pod in this cycle then (NotReady).
4. Do replacements fail?  All that are waited for are looked at every 10 s; where the breaker trips, the run ends.

An example: 20 pods of `web` are to go from n1.  The first goes at 0 s, its replacement is Ready at 6 s, and the second
goes.  At 61 s somebody pauses the namespace; the pod that is asked for at 63 s stays, and so do all others of it.

The functions below look at pods, PDBs, owners, annotations and nodes as they are now, here and for waves
(`rebalancer.run.live_steer`); they raise ClusterError where these cannot be looked at.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.scheduler_inputs import Notes
from rebalancer.engine.gate import Recheck
from rebalancer.engine.patience import noted_places, noted_refusal
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.engine.restarts import Restarted
from rebalancer.errors import ClusterError, CycleStopped, Forbidden
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.verdict import Refused, Verdict, refused
from rebalancer.kube.answers import NotFound, Rejected
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.lists import path_within, read_list
from rebalancer.kube.node_marks import NODES
from rebalancer.kube.tries import Deadline, Halt, Permit
from rebalancer.kube.wire import collect
from rebalancer.kube.wire.annotations import OwnerMetadata
from rebalancer.kube.wire.objects import NODE, OwnerObject
from rebalancer.kube.wire.pages import PATHS, Items
from rebalancer.memory.document import owner_key
from rebalancer.memory.settling import is_open
from rebalancer.run.cluster_view import LiveRun
from rebalancer.run.live import LiveSink
from rebalancer.run.memory import Diary
from rebalancer.run.work import Work
from rebalancer.untrusted.documents import decode_json

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_BELIEVED_SECONDS = 2.0  # for so long an answer is believed
#: Between two looks at replacements: of an owner that is waited for, and of all others.
_LOOK_SECONDS, _LOOK_AT_ALL_SECONDS = 2.0, 10.0
_READ_SECONDS = 10.0  # for one look


class Watch(LiveSink):
    """Looks again before each eviction, and makes the pod go then (`evict` is a `rebalancer.engine.gate.Sink`).

    The diary knows the moves of this cycle, and learns what became of them; without it only windows count.  The permit
    is that of the turn; `began` is when the deadline began, on the client's clock.
    """

    def __init__(
        self, run: LiveRun, work: Work, diary: Diary | None, restarted: Restarted, permit: Permit, began: float
    ) -> None:
        self.work, self.diary = work, diary
        self._telemetry, self._clock = run.telemetry, run.client.retry_policy.clock
        halt = Halt(run.options.deadline, self._clock, lambda: permit() or self.reason(), began, run.client.ending)
        is_shared = run.options.max_parallel > 1
        super().__init__(run.client, work.policy.grace_period_seconds, halt, restarted, is_shared=is_shared)
        self.rested = ""  # why the run rests; empty while it goes on
        self._looking = Lock()  # one thread looks at a time
        self._seen: dict[tuple[str, str], tuple[Any, float]] = {}  # by what was looked at: what it showed, and when
        self._unready: set[tuple[str, str]] = set()  # owners that lose no further pod
        self._looked = self._clock()  # when replacements were last looked at

    def reason(self) -> str:
        """Return why the run rests from now on; empty if it goes on (a part of a `Permit`)."""
        if self.rested:
            return self.rested
        closed = self.work.policy.schedule.closed(datetime.now(UTC))
        if (diary := self.diary) and not closed:
            closed = self._believed(("", ""), lambda: diary.source.read(datetime.now(UTC)).paused) or diary.stopped
        self.rested = closed
        return closed

    def evict(self, pod: Pod, profile: str, strategy: str, because: Cause, recheck: Recheck) -> Verdict:
        """Evict a pod, or restart its rollout, unless something has changed that keeps it or ends the run."""
        if reason := self.halt.reason:
            raise CycleStopped(reason)
        with self._telemetry.evicting(pod, because):
            with self._looking:
                refusal = self._refusal(pod, profile) or self._not_ready(pod)
                if reason := self.reason():
                    raise CycleStopped(reason)
            return refusal or super().evict(pod, profile, strategy, because, recheck)

    def _refusal(self, pod: Pod, profile: str) -> Refused | None:
        schedules = {each.name: each.schedule for each in self.work.plans}
        if closed := schedules[profile].closed(datetime.now(UTC)):
            return refused(Code.OUTSIDE_WINDOW, message=closed)
        if self.diary is None:
            return None
        for namespace, owner in noted_places(pod):
            within, kind, name = (namespace, *owner.split("/", 1)) if owner else ("", "Namespace", namespace)
            if kind in PATHS and kind != "Pod" and (refusal := self._by_notes(within, kind, name, owner)):
                return refusal
        return None

    def _by_notes(self, within: str, kind: str, name: str, owner: str) -> Refused | None:
        def look() -> Refused | None:
            found = _named(self.client, kind, within, name, Deadline.after(_READ_SECONDS))
            return noted_refusal(found.notes or Notes(), within or name, owner, datetime.now(UTC))

        return self._believed((within or name, owner), look)

    def _believed(self, key: tuple[str, str], look: Callable[[], T]) -> T | None:
        """Return what a look shows, which is believed for 2 s; where it fails, what the last one showed."""
        found: T | None
        found, at = self._seen.get(key, (None, -_BELIEVED_SECONDS))
        if self._clock() - at >= _BELIEVED_SECONDS:
            try:
                found = look()
            except Forbidden:
                pass
            except ClusterError as error:
                _LOG.warning("%s could not be looked at: %s", "/".join(filter(None, key)), error)
            self._seen[key] = (found, self._clock())
        return found

    def _not_ready(self, pod: Pod) -> Refused | None:
        """Wait until the replacement of the owner's last pod is Ready; return a refusal if that does not happen."""
        diary, key = self.diary, owner_key(pod)
        if diary is None or not pod.active:
            return None
        if self._clock() - self._looked >= _LOOK_AT_ALL_SECONDS:
            self._look(diary, diary.gone)
        while diary.recollection.settings.wait_ready and key not in self._unready and self._must_wait(diary, key):
            if self.halt.reason:
                return refused(Code.NOT_READY)
            self._look(diary, [each for each in diary.gone if owner_key(each) == key])
            if self._must_wait(diary, key):
                self._looking.release()  # meanwhile other owners' pods go
                try:
                    self.sleep(_LOOK_SECONDS)
                finally:
                    self._looking.acquire()
        if any(each.failed and each.key == key for each in diary.moves):
            self._unready.add(key)
        return refused(Code.NOT_READY) if key in self._unready else None

    def _must_wait(self, diary: Diary, key: tuple[str, str]) -> bool:
        """Return whether to wait for a replacement; where the time for one is up, its owner stays from now on."""
        moves = [each for each in diary.moves if each.key == key]
        within, now = diary.recollection.settings.ready_within, datetime.now(UTC)
        healthy = [each for each in moves if not each.was_unready]
        if any(each.ready is None and not each.failed and not is_open(each, now, within) for each in healthy):
            self._unready.add(key)
            return False
        return any(is_open(each, now, within) for each in moves)

    def _look(self, diary: Diary, gone: Iterable[Pod]) -> None:
        self._looked = self._clock()
        try:
            diary.saw(siblings_now(self.client, gone, self.restarted, lambda: Deadline.after(_READ_SECONDS)))
        except ClusterError as error:
            _LOG.warning("replacements could not be looked at: %s", error)


def _listed(
    client: Client,
    kind: str,
    namespace: str,
    deadline: Deadline,
    query: Mapping[str, str] | None = None,
    new: Callable[[], Any] | None = None,
) -> list[Any]:
    """Return the objects of a kind in a namespace; `new` makes what collects them, else they are a snapshot's."""
    path = path_within(kind, namespace) if namespace else PATHS[kind]
    new = new or partial(collect.Collection().collector, kind)
    return list(read_list(client, path, new, query=query, deadline=deadline).items)


def siblings_now(client: Client, pods: Iterable[Pod], restarted: Restarted, until: Callable[[], Deadline]) -> list[Pod]:
    """Return these pods and their replacements as they are now, and perhaps others of their namespaces."""
    found: list[Pod] = []
    for namespace, selector in sorted(siblings_of(pods, restarted).items()):
        found += _listed(client, "Pod", namespace, until(), {"labelSelector": selector} if selector else {})
    return found


def budgets_now(client: Client, namespaces: Iterable[str], deadline: Deadline) -> DisruptionBudgets:
    """Return the PDBs of namespaces as they are now."""
    kind = "PodDisruptionBudget"
    return DisruptionBudgets(each for name in sorted(set(namespaces)) for each in _listed(client, kind, name, deadline))


def _named(client: Client, kind: str, namespace: str, name: str, deadline: Deadline) -> OwnerMetadata:
    new = partial(Items, kind, OwnerObject, lambda each: each.metadata)
    found = _listed(client, kind, namespace, deadline, {"fieldSelector": f"metadata.name={name}"}, new)
    return next((each for each in found if each.name == name), OwnerMetadata())


def ending_owners(client: Client, pods: Iterable[Pod], deadline: Deadline) -> set[str]:
    """Return the UIDs of the pods' controllers that are being deleted: with `--cascade=orphan` they replace none."""
    owners = {(pod.namespace, owner.kind, owner.name) for pod in pods if (owner := pod.controller)}
    ending: set[str] = set()
    for namespace, kind, name in sorted(each for each in owners if each[1] in PATHS):
        try:
            found = _named(client, kind, namespace, name, deadline)
        except (Forbidden, Rejected):  # a run may steer without this permission, and a pod's owner may be a Node
            continue  # the version of the pod still protects it
        if found.deletion_timestamp is not None:
            ending.add(found.uid)
    return ending


def why_closed(client: Client, before: Node, keys: Collection[str], deadline: Deadline) -> str:
    """Return why a node takes no pods any more; empty if it does.

    Meanwhile it may be deleted, cordoned, not Ready, or others may have given it a taint, which says that they want it
    to receive nothing.  The `keys` are those of our own soft taints, which come and go.
    """
    path = NODES + path_of(before.name)
    try:
        now = NODE(decode_json(client.get(path, deadline=deadline), NODE.wire))
    except NotFound:
        return "it is gone"
    except ValueError as error:
        raise ClusterError(f"the API server does not answer {path} with a Node: {error}") from error
    if now.unschedulable:
        return "it is cordoned"
    if not now.ready:
        return "it is not Ready"
    new = [taint for taint in now.taints if taint.key not in keys and taint not in before.taints]
    return f"it has a new taint, {new[0]}" if new else ""


_HASH = "pod-template-hash"
_MOST_HASHES = 300  # that are asked for at once: proxies refuse addresses of more than 8 KiB


def siblings_of(pods: Iterable[Pod], restarted: Callable[[Pod], object] = lambda _: False) -> Mapping[str, str]:
    """Return by namespace the label selector that finds these pods and their replacements; empty: all pods.

    Each pod of a Deployment carries the hash of its template.  Where all these pods in one namespace have one, the pods
    with one of these hashes are asked for.  Example: `pod-template-hash in (5d9,7f4)` in `shop`, and all of `db`, where
    one is of a StatefulSet.  A pod that goes by a rollout has a replacement with another hash.
    """
    hashes: dict[str, set[str]] = {}
    for pod in pods:
        owner = pod.controller
        is_hashed = owner is not None and owner.kind == "ReplicaSet" and not restarted(pod)
        hashes.setdefault(pod.namespace, set()).add(pod.labels.get(_HASH, "") if is_hashed else "")
    return {
        name: "" if "" in found or len(found) > _MOST_HASHES else f"{_HASH} in ({','.join(sorted(found))})"
        for name, found in hashes.items()
    }
