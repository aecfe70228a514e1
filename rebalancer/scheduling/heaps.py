"""What some of several pods take of a node at most: a made-up pod that takes as much as the largest of them.

Whichever j of the pods come to a node, they take no more of any resource than the j largest in that resource do.  So a
pod that takes as much as these together, of every resource and of the places for pods, fills it at least as far.

Example: pods of 1 core and 1 GiB, 2 cores and 1 GiB, and 1 core and 4 GiB.  Two of them take at most 3 cores and 5 GiB.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from rebalancer.cluster.placement import ContainerCpu, Placement
from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.resources import CPU, MEMORY, PODS
from rebalancer.scheduling.simulator.state import assumed_of


def heap(pods: Sequence[Pod], number: int) -> Pod:
    """Return a pod that takes what as many of these may take; its labels are those of one of them."""
    requests = _most([{**pod.spec.requests, PODS: 1} for pod in pods], number)
    requests[PODS] -= 1  # it is a pod itself
    unsaid = {CPU: 0, MEMORY: 0}  # containers without requests are counted in what is assumed
    placement = Placement(
        assumed={**unsaid, **_most(list(map(assumed_of, pods)), number)}, cpus=tuple(_cpus(pods, number))
    )
    spec = PodSpec(requests=requests, placement=placement)
    return msgspec.structs.replace(pods[0], name="heap", node="", claims=(), own_claims=(), spec=spec)


def _most(amounts: Sequence[Mapping[str, int]], number: int) -> dict[str, int]:
    names = {name for each in amounts for name in each}
    return {name: _sum_of_largest((each.get(name, 0) for each in amounts), number) for name in sorted(names)}


def _cpus(pods: Sequence[Pod], number: int) -> Iterator[ContainerCpu]:
    """Yield containers for the schedulers that go by their limits, else by their requests, else by a figure of theirs.

    A millicore for each pod makes up for what is rounded.
    """
    if not any(pod.spec.placement.cpus for pod in pods):
        return
    limits = _over(pods, number, lambda each: each.limit or 0)
    overhead = _sum_of_largest((pod.spec.placement.overhead_cpu for pod in pods), number)
    yield ContainerCpu(limit=limits + overhead + number)
    yield ContainerCpu(request=_over(pods, number, lambda each: (each.request or 0) if each.limit is None else 0))
    for _ in range(_over(pods, number, lambda each: each.limit is None and each.request is None)):
        yield ContainerCpu()


def _over(pods: Iterable[Pod], number: int, of: Callable[[ContainerCpu], int]) -> int:
    return _sum_of_largest((sum(map(of, pod.spec.placement.cpus)) for pod in pods), number)


def _sum_of_largest(amounts: Iterable[int], number: int) -> int:
    return sum(sorted(amounts, reverse=True)[:number])
