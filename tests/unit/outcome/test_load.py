"""The made-up load: the same for the same seed, uneven as asked, and independent of what is requested."""

import statistics

import pytest

from tests.outcome.load import MEAN_CPU, MEAN_MEMORY, make_load, varied


def each_pod(load, figure):
    return [getattr(workload, figure) for workload in load for _ in range(workload.replicas)]


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_mean_over_all_pods_is_the_one_chosen(seed):
    """Whatever is drawn, nodes are as full as in the situation that the descheduler was measured in."""
    load = make_load(seed, 600)

    assert sum(workload.replicas for workload in load) == 600
    assert statistics.fmean(each_pod(load, "uses_cpu")) == pytest.approx(MEAN_CPU, rel=0.01)
    assert statistics.fmean(each_pod(load, "uses_memory")) == pytest.approx(MEAN_MEMORY, rel=0.01)


def test_usage_has_nothing_to_do_with_requests():
    """Over many owners what is used and what is requested do not correlate."""
    load = make_load(1, 20_000)

    for used, asked in (("uses_cpu", "cpu"), ("uses_memory", "memory")):
        pairs = [(getattr(workload, used), getattr(workload, asked)) for workload in load]
        assert abs(statistics.correlation(*zip(*pairs, strict=True))) < 0.05


def test_a_seed_gives_one_load():
    """Equal seeds give equal loads, others do not."""
    assert make_load(1, 600) == make_load(1, 600)
    assert make_load(1, 600) != make_load(2, 600)


def test_even_load_is_the_same_for_all_pods():
    """All pods use the mean."""
    load = make_load(1, 600, spread=0)

    assert {(workload.uses_cpu, workload.uses_memory) for workload in load} == {(MEAN_CPU, MEAN_MEMORY)}


def test_owners_of_more_than_two_are_guarded():
    """A PDB stands over three pods and more, not over two."""
    guarded = {workload.replicas: workload.guarded for workload in make_load(1, 600)}

    assert guarded[3]
    assert not guarded[2]


def test_variation_is_around_the_load_and_differs_by_cycle():
    """Each cycle's usage is within a tenth of the load itself, not of the cycle before; requests stay."""
    load = make_load(1, 600)

    for cycle in range(10):
        now = varied(load, 1, cycle, 0.1)
        for workload in load:
            assert abs(now[workload.name].uses_cpu - workload.uses_cpu) <= 0.1 * workload.uses_cpu + 1
            assert now[workload.name].cpu == workload.cpu
    assert varied(load, 1, 0, 0.1) != varied(load, 1, 1, 0.1)
    assert varied(load, 1, 0, 0.1) == varied(load, 1, 0, 0.1)
