"""Where the replacements land that real controllers make of evicted pods, beside where they were foreseen.

Pods are evicted alone, or several of different owners at once, as a run without steering does.  They terminate for some
seconds.  Only pods are evicted of which it is foreseen that they land somewhere, as the program would do.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.worlds import Worlds
from tests.e2e.api import Api, ApiError, Object
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import is_schedulable
from tests.e2e.waiting import DeadlineError, wait_for
from tests.fidelity.clusters import APPS, NAMESPACES, random_nodes, random_template, service
from tests.fidelity.trial import INVALID, KINDS, decided, read
from tests.outcome.result import calibration

#: Workloads whose pods are replaced: the controllers make their pods.
DEPLOYMENT, STATEFUL_SET, JOB, WAITING_JOB = "Deployment", "StatefulSet", "Job", "Job that waits"
OWNERS = (DEPLOYMENT, STATEFUL_SET, JOB, WAITING_JOB)
SERVED_APPS = APPS // 2
STAGES = Path(__file__).with_name("grace.yaml")
SEVERAL = (1, 1, 2, 4, 6)  # how many pods go at once
LONGEST = 120.0  # seconds that one wait may take
POLL = 0.1
NAMESPACE = "blue"
#: Of a hundred replacements so many may land elsewhere than in the histories that were drawn.
FEW = 0.02


@dataclass(frozen=True)
class Foreseen:
    in_turn: Answer  # if it came after those that were chosen before it
    named: Mapping[str, float]  # what a report names: where it lands in some possible history


@dataclass
class Landings:
    """What came of evictions, by kind of owner and by whether others went at the same time."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # by what came of it, and by group
    sizes: Counter[int] = field(default_factory=Counter)  # how often a report would name so many nodes
    # The share that a report tells for each node that it names, and whether the pod landed there.
    shares: list[tuple[float, bool]] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)  # replacements that landed on a node that is not named
    missing: list[str] = field(default_factory=list)  # replacements that did not come

    @property
    def evictions(self) -> int:
        return sum(self.sizes.values())

    @property
    def disagreements(self) -> list[str]:
        """What did not come, and what landed elsewhere, if that is more than a few: not every history is drawn."""
        return self.missing + (self.elsewhere if len(self.elsewhere) > FEW * self.evictions else [])

    def note(self, kind: str, company: str, pod: Pod, foreseen: Foreseen, landed: str) -> None:
        """Count a replacement; `landed` is empty if it waits for room."""
        for group in (kind, company):
            self.counts["replaced", group] += 1
            self.counts["in turn", group] += landed in foreseen.in_turn.nodes
            self.counts["named", group] += landed in foreseen.named
        self.sizes[len(foreseen.named)] += 1
        self.shares += [(share, node == landed) for node, share in foreseen.named.items()]
        if landed not in foreseen.named:
            self.elsewhere.append(f"{kind}, {company}: of {pod} landed {landed}, foreseen {foreseen.named}")

    def table(self) -> str:
        groups = sorted({group for what, group in self.counts if what == "replaced"})
        columns = ("replaced", "in turn", "named")
        lines = [f"{'':25}" + "".join(f"{column:>14}" for column in columns)]
        lines += [f"{each:25}" + "".join(f"{self.counts[column, each]:14,}" for column in columns) for each in groups]
        left = sorted((what, count) for (what, group), count in self.counts.items() if group == "left alone")
        lines += ["", *(f"not evicted, {what:45} {count:6,}" for what, count in left)]
        lines += [f"nodes that a report names: {dict(sorted(self.sizes.items()))}", ""]
        lines += calibration(self.shares)
        return "\n".join(lines)


def run(binaries: Path, seed: int, nodes: int, evictions: int, placements: Landings, end: float) -> None:
    """Evict so many pods of one random cluster, and compare where their replacements land.

    `end`, by the monotonic clock, is when no more pods are evicted.
    """
    with ControlPlane(binaries, stages=[STAGES]) as running:
        Stage(running.api, Random(seed), placements).run(nodes, evictions, end)


class Stage:
    def __init__(self, api: Api, random: Random, placements: Landings) -> None:
        self._api = api
        self._random = random
        self._landings = placements
        self._kinds: dict[str, str] = {}
        self._failed: set[str] = set()  # a Job waits ever longer after each pod that failed

    def run(self, nodes: int, evictions: int, end: float) -> None:
        """Set up, then evict until so many went, no more may go, or it is time to end."""
        self._set_up(nodes)
        wanted = self._landings.evictions + evictions
        more = True
        while more and self._landings.evictions < wanted and time.monotonic() < end:
            before = self._landings.evictions
            self._evict_some()
            more = self._landings.evictions > before

    def _set_up(self, nodes: int) -> None:
        for each in random_nodes(self._random, nodes):
            self._api.create(each)
        for name, labels in NAMESPACES.items():
            self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        wait_for(lambda: all(map(is_schedulable, self._api.list("Node"))), "all nodes settled", 120)
        made = [each for each in map(self._create, random_owners(self._random, 2 * nodes)) if each]
        wait_for(lambda: self._is_quiet(made), "all pods placed, or found to fit nowhere", 120, POLL)
        self._remove_unplaced(made)

    def _create(self, owner: Object) -> Object | None:
        try:
            self._api.create(owner, NAMESPACE)
        except ApiError as error:
            if error.status != INVALID:
                raise
            return None
        if owner["kind"] == "Service":
            return None
        self._kinds[owner["metadata"]["name"]] = kind_of(owner)
        return owner

    def _is_quiet(self, made: Iterable[Object]) -> bool:
        """Whether owners have as many pods as they want, and the scheduler has decided on all."""
        pods = self._api.list("Pod", NAMESPACE)
        count = Counter(each["metadata"]["labels"]["owner"] for each in pods)
        return all(count[each["metadata"]["name"]] >= wanted(each) for each in made) and all(map(decided, pods))

    def _remove_unplaced(self, made: Sequence[Object]) -> None:
        """Remove owners with pods that wait for room: they would take the room of those that go."""

        def unplaced() -> set[str]:
            pods = self._api.list("Pod", NAMESPACE)
            return {each["metadata"]["labels"]["owner"] for each in pods if not each["spec"].get("nodeName")}

        for owner in made:
            name = owner["metadata"]["name"]
            if name in unplaced():
                self._api.delete(owner["kind"], name, NAMESPACE)
        wait_for(lambda: not unplaced() and not self._terminating(), "what fits nowhere gone", 120, POLL)

    def _terminating(self) -> list[str]:
        pods = self._api.list("Pod", NAMESPACE)
        return [each["metadata"]["name"] for each in pods if "deletionTimestamp" in each["metadata"]]

    def _evict_some(self) -> None:
        cluster = Cluster(read(self._api, (*KINDS, "Deployment", "Job")))
        foreseen = self._foresee(cluster, self._random.choice(SEVERAL))
        known = {pod.uid for pod in cluster.snapshot.pods}
        for pod in foreseen:
            self._api.evict(pod.name, pod.namespace)
        self._failed |= {name for name in (pod.labels["owner"] for pod in foreseen) if "Job" in self._kinds[name]}
        company = "alone" if len(foreseen) == 1 else "with others"
        for pod, each in foreseen.items():
            landed = self._landed(pod, known)
            self._landings.note(self._kinds[pod.labels["owner"]], company, pod, each, landed)
        wait_for(lambda: not self._terminating(), "evicted pods gone", LONGEST, POLL)

    def _foresee(self, cluster: Cluster, count: int) -> dict[Pod, Foreseen]:
        """Return pods of different owners that would land somewhere, and where."""
        pods = [pod for pod in cluster.snapshot.pods if pod.namespace == NAMESPACE and pod.node and pod.active]
        self._random.shuffle(pods)
        with cluster.scope():
            in_turn = self._in_turn(cluster, count, pods)
        named = named_by_a_report(cluster, {pod: answer.nodes[0] for pod, answer in in_turn.items()})
        return {pod: Foreseen(answer, named[pod]) for pod, answer in in_turn.items()}

    def _in_turn(self, cluster: Cluster, count: int, pods: Iterable[Pod]) -> dict[Pod, Answer]:
        """Return so many of the pods, and where they would land one after the other, as in a plan."""
        found: dict[Pod, Answer] = {}
        simulation = cluster.index(Simulation)
        for pod in pods:
            if len(found) == count:
                break
            owner = pod.labels["owner"]
            if owner in self._failed or any(each.labels["owner"] == owner for each in found):
                continue
            answer = simulation.ask(pod)
            if answer.nodes:
                found[pod] = answer
                list(cluster.index(Worlds).placements(pod))
                expect(cluster, pod, answer.nodes[0])
            else:
                self._landings.counts[answer.unknown or "fits nowhere", "left alone"] += 1
        return found

    def _landed(self, pod: Pod, known: set[str]) -> str:
        """Return the node of what came in place of a pod; empty if that waits for room, or if nothing came."""

        def made() -> Object | None:
            owner = f"owner={pod.labels['owner']}"
            pods = self._api.list("Pod", NAMESPACE, labelSelector=owner)
            return next((each for each in pods if each["metadata"]["uid"] not in known and decided(each)), None)

        try:
            return str(wait_for(made, f"what comes in place of {pod}", LONGEST, POLL)["spec"].get("nodeName", ""))
        except DeadlineError:
            self._landings.missing.append(f"nothing came in place of {pod}")
            return ""


def wanted(owner: Object) -> int:
    spec = owner["spec"]
    return int(spec.get("replicas") or spec.get("parallelism"))


def expect(cluster: Cluster, pod: Pod, node: str) -> None:
    """Let a pod go, and its replacement be expected on a node, until the present scope ends."""
    place = cluster.node(node)
    assert place
    cluster.place(pod, place)
    cluster.remove(pod)


def named_by_a_report(cluster: Cluster, expected: Mapping[Pod, str]) -> Mapping[Pod, Mapping[str, float]]:
    """Return the nodes that a report names for pods that were noted and go in this order."""
    with cluster.scope():
        for pod in expected:
            cluster.remove(pod)
        worlds = cluster.index(Worlds)
        worlds.played(expected)
        return {pod: worlds.shares(pod) for pod in expected}


def random_owners(random: Random, count: int) -> list[Object]:
    """Return Services for half of the apps, and workloads of the four kinds in turn."""
    workloads = [_workload(random, OWNERS[number % len(OWNERS)], f"owner-{number:03}") for number in range(count)]
    return [*(service(app) for app in range(SERVED_APPS)), *workloads]


def kind_of(owner: Object) -> str:
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
