"""What no history of cycles does, each with the memory of those before it: too much, too soon, or at the wrong time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.scheduler_inputs import Notes, SchedulerInputs
from rebalancer.engine.ledger import Ledger
from rebalancer.memory.document import KEY, LARGEST, Memory, encoded, owner_key
from rebalancer.memory.settling import with_moves
from rebalancer.policy.load import load_policy
from rebalancer.run.memory import PAUSE_KEY, past_move, readings, recalled, recollect
from rebalancer.run.options import Options
from rebalancer.run.policies import known_plugins
from rebalancer.run.work import Work, plan, work_maker
from tests import make, measured

NODES = tuple(measured.node(f"n{number}") for number in range(4))
NIGHT, SHARE = range(8, 20), 1  # the hours that are outside the window
POLICY = f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{{ source: KubernetesMetrics }}]
trust: {{ maxPerOwner: {SHARE}, movePrice: 1, readyWithin: 1h, backOff: {{ first: 10m }} }}
windows: [{{ cron: "0 20 * * *", for: 12h }}]
profiles:
  - name: p
    pluginConfig:
      - name: LowNodeUtilization
        args:
          thresholds: {{ cpu: 30 }}
          targetThresholds: {{ cpu: 40 }}
          metricsUtilization: {{ source: KubernetesMetrics, selection: relief, scheduler: unknown, rest: 0s }}
    plugins: {{ balance: {{ enabled: [LowNodeUtilization] }} }}
"""
PAUSES = ("nobody", "all", "namespace", "ReplicaSet/a")


@dataclass(frozen=True)
class Step:
    """What happens before a cycle: time passes, one node gets busy, somebody pauses, replacements are Ready or not."""

    minutes: int
    busy: int
    paused: str
    ready: bool


STEPS = st.builds(
    Step, st.integers(5, 90), st.integers(0, 3), st.sampled_from((*PAUSES[:1] * 4, *PAUSES)), st.booleans()
)


@dataclass
class History:
    """A small cluster over many cycles."""

    work: Work
    now: datetime = datetime(2026, 1, 15, 20, 0, tzinfo=UTC)
    text: str = ""  # the memory as it was written last
    pods: list[Pod] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        old = self.now - timedelta(days=2)
        known = [measured.pod(f"{owner}{n}", on="n0", owners=owner) for owner in "ab" for n in range(8)]
        self.pods = [replace(pod, created=old, started=old) for pod in known]

    def play(self, step: Step) -> Ledger:
        """Let a cycle happen, and the replacements come on the node that gets busy next."""
        self.now += timedelta(minutes=step.minutes)
        seen = [pod if pod.ready or not step.ready else replace(pod, ready=True) for pod in self.pods]
        pause = Notes(pause="{}")
        notes = {"namespace": {("default", ""): pause}, "ReplicaSet/a": {("default", "ReplicaSet/a"): pause}}
        snapshot = make.snapshot(NODES, seen, scheduler_inputs=SchedulerInputs(notes=notes.get(step.paused, {})))
        cluster = Cluster(replace(snapshot, now=self.now), measure=lambda *_: self._figures(seen))
        data = {KEY: self.text} | ({PAUSE_KEY: "{}"} if step.paused == "all" else {})
        known = recollect(recalled(data, "of a test", self.now), self.work.trust, cluster.snapshot)
        ledger = plan(cluster, self.work, recollection=known)
        gone = {entry.pod.uid for entry in ledger.evictions}
        kept = [pod for pod in seen if pod.uid not in gone]
        self.pods = [*kept, *(self._replacement(entry.pod, step) for entry in ledger.evictions)]
        self._remember(known.memory, ledger)
        return ledger

    def _replacement(self, pod: Pod, step: Step) -> Pod:
        self.count += 1
        name = f"{pod.controller.name}-{self.count}"
        came = {"uid": f"uid-{name}", "name": name, "node": f"n{step.busy}", "ready": False}
        return replace(pod, **came, created=self.now, started=self.now)

    def _remember(self, memory: Memory, ledger: Ledger) -> None:
        moves = [past_move(entry, self.now, self.now) for entry in ledger.evictions]
        memory = with_moves(memory, moves)
        self.text = encoded(replace(memory, readings=(*memory.readings, *readings(ledger, self.now))))

    def _figures(self, pods: Sequence[Pod]) -> Measured:
        by_pod = {pod.key: measured.points(6) for pod in pods}
        used = Counter(pod.node for pod in pods)
        nodes = {node.name: measured.points(6 * used[node.name]) for node in NODES}
        return Measured(nodes=nodes, peaks=nodes, pods=by_pod)


WORK = work_maker(Options(policy="given"))(load_policy(POLICY, known_plugins(), source="given", strict=True))


def played(steps: Sequence[Step]) -> Iterator[tuple[Step, datetime, Sequence[Pod], Ledger, str]]:
    """Yield each cycle: when, the pods before it, what it moved, and what it wrote."""
    history = History(WORK)
    for step in steps:
        before = list(history.pods)
        ledger = history.play(step)
        yield step, history.now, before, ledger, history.text


@given(st.lists(STEPS, min_size=1, max_size=10))
def test_no_history_does_too_much_too_soon_or_at_the_wrong_time(steps: list[Step]) -> None:
    """No owner above its share or within its back-off, nothing outside the window or paused, a memory of its size."""
    moved: dict[object, list[datetime]] = {}
    for step, now, before, ledger, text in played(steps):
        lost = Counter(owner_key(entry.pod) for entry in ledger.evictions)
        assert not lost or (now.hour not in NIGHT and step.paused not in ("all", "namespace"))
        assert step.paused != "ReplicaSet/a" or not lost["default", "ReplicaSet/a"]
        for key, count in lost.items():
            away = sum(not (pod.ready or step.ready) for pod in before if owner_key(pod) == key)
            assert count + away <= SHARE
            times = moved.setdefault(key, [])
            recent = sum(times[-1] - each < timedelta(hours=6) for each in times)
            assert not times or now - times[-1] >= min(timedelta(minutes=10) * 2 ** (recent - 1), timedelta(hours=6))
            times.append(now)
        assert len(text) <= LARGEST


def test_such_a_history_moves_pods() -> None:
    """Else the property above would say nothing."""
    steps = [Step(60, 1 + number % 3, "nobody", ready=True) for number in range(6)]

    assert sum(len(ledger.evictions) for *_, ledger, _ in played(steps)) > 2
