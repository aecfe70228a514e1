"""Strategies and sinks that show what the engine makes of them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rebalancer.api import Args, Balance, Cluster, Deschedule, Evict
from rebalancer.cluster.pod import Pod
from rebalancer.engine.evictor import Evictor
from rebalancer.eviction.verdict import GRANTED, Refused, Verdict
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.report.words import text
from tests.make import cluster, node


class Plain(Deschedule[Args]):
    """Without arguments."""

    Args = Args

    def __init__(self) -> None:
        super().__init__(Args())


class Greedy(Plain):
    """Asks for every pod there is, `times` times, without asking whether it may."""

    name = "Greedy"

    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self.times = times

    def run(self, cluster: Cluster, evict: Evict) -> None:
        for pod in [*cluster.snapshot.pods] * self.times:
            evict(pod, because="greed")


class Polite(Plain):
    """Asks which pods it may have, and then for these."""

    name = "Polite"

    def run(self, cluster: Cluster, evict: Evict) -> None:
        for pod in [pod for pod in cluster.snapshot.pods if evict.evictable(pod, "manners")]:
            evict(pod, because="manners")


class Listed(Plain):
    """Lists node by node which pods it may have, and waits for no answer."""

    name = "Listed"

    def run(self, cluster: Cluster, evict: Evict) -> None:
        for place in cluster.nodes:
            evict.each([(pod, "manners") for pod in cluster.pods_on(place) if evict.evictable(pod, "manners")])


class Scripted(Plain):
    """Does what it is told."""

    name = "Scripted"

    def __init__(self, script: Callable[[Cluster, Evict], object], name: str = "Scripted") -> None:
        super().__init__()
        self.script = script
        self.name = name  # type: ignore[misc]  # of this one alone

    def run(self, cluster: Cluster, evict: Evict) -> None:
        self.script(cluster, evict)


class ScriptedBalance(Scripted):
    """The same at the other extension point."""

    point = Balance.point


class AnsweringSink:
    """Answers by name of the pod, else grants, and keeps what it was asked for."""

    def __init__(self, answers: Mapping[str, Verdict] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[str] = []

    def __call__(self, pod: Pod, *_: object) -> Verdict:
        self.asked.append(pod.name)
        return self.answers.get(pod.name, GRANTED)


def first_cause(
    candidate: Pod,
    args: Mapping[str, Any] | None = None,
    others: Iterable[Pod] = (),
    nodes: Iterable[Any] | None = None,
    **fields: Any,
) -> Refused | None:
    """What DefaultEvictor with these arguments says of a pod beside others, on two nodes unless given."""
    on = cluster(nodes or [node("n1"), node("n2")], [candidate, *others], **fields)
    causes = Evictor(on, DefaultEvictorArgs.model_validate(args or {})).causes(candidate)
    return Refused(causes[0]) if causes else None


def by(refusal: Refused | None) -> str:
    return refusal.by if refusal else ""


def told(refusal: Refused | None) -> str:
    """In words; nothing of a pod that may go."""
    return text(refusal.cause) if refusal else ""
