"""Whole runs against an API server that answers at random (see `whims`), each from a seed of its own."""

import logging
import os
import random
import signal
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from rebalancer.errors import ClusterError, Interrupted
from tests.attack.seeds import seeds
from tests.attack.whims import ANNOTATIONS, Time, Whims, exceeded
from tests.fake_api_server import FakeApiServer
from tests.functional.objects import OLD, node, pdb, pod, policy
from tests.functional.program import Program

RUNS = len(seeds(40))
CHUNKS = 10

Object = dict[str, Any]


class Scene(NamedTuple):
    objects: list[Object]
    pods: list[Object]
    limits: Mapping[str, int]
    deadline: float


def scene(choice):
    """Pods in two namespaces on three nodes, some of them protected, some in progress, some under a PDB."""
    pods = [_pod(choice, number) for number in range(choice.randint(3, 9))]
    apps = [(app, namespace) for app in ("web", "db") for namespace in ("one", "two") if choice.random() < 0.5]
    budgets = [pdb(app, allowed=choice.choice((0, 1, 2, 2)), app=app, namespace=namespace) for app, namespace in apps]
    names = ("maxNoOfPodsToEvictTotal", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace")
    limits = {name: choice.choice((0, 1, 2, 3, 4, 6)) for name in names if choice.random() < 0.5}
    objects = [*map(node, ("n1", "n2", "n3")), *pods, *budgets]
    return Scene(objects, pods, limits, choice.choice((5, 30, 120, 300)))


def rules(limits):
    made = policy(OLD, ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 1}), **limits)
    return {**made, "profiles": [{**made["profiles"][0], "name": name} for name in ("tidy", "again")]}


def _pod(choice, number):
    made = pod(
        f"p{number}",
        choice.choice(("n1", "n2")),
        namespace=choice.choice(("one", "two")),
        owner=choice.choice(("web", "db", "cron")),
        age=1000 - number,
        restarts=choice.choice((0, 5)),
    )
    if choice.random() < 0.2:
        made["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    if choice.random() < 0.1:
        both = ("request-evict-only", "eviction-in-progress")
        made["metadata"]["annotations"] = {f"{ANNOTATIONS}/{each}": "" for each in both}
    return made


def in_progress(each):
    return bool(each["metadata"].get("annotations"))


@pytest.fixture(autouse=True)
def quiet(logging_as_before):
    """A run warns of every try; thousands of them are not news."""
    logging.getLogger("rebalancer").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_whatever_the_server_answers(chunk, tmp_path):
    """No limit and no PDB is exceeded, no protected pod goes, nothing is late, and the report has all that went."""
    for seed in range(chunk, RUNS, CHUNKS):
        assert faults(seed, tmp_path) == [], f"seed {seed}"


def attempt(seed, folder):
    """Run once; return what there was, what the server did, and the report."""
    choice = random.Random(seed)
    there, time = scene(choice), Time()
    with FakeApiServer(there.objects) as server:
        # The signal is a real one; it comes while the program waits for the answer to an eviction.
        whims = Whims(choice, server, time, lambda: os.kill(os.getpid(), signal.SIGTERM), time.now + there.deadline)
        whims.begin()
        try:
            report = Program(folder).play(server, rules(there.limits), time, deadline=there.deadline).report
        except (ClusterError, Interrupted):
            report = {"evictions": [], "unknown": []}
        whims.finish()
    return there, whims, report


def faults(seed, folder):
    there, whims, report = attempt(seed, folder)
    before = [each for each in there.pods if in_progress(each)]
    went = [each for each in there.pods if each in before or each["metadata"]["uid"] in whims.went]
    return [*exceeded(there.objects, there.limits, went, before), *_misdeeds(there, whims, report)]


def _misdeeds(there, whims, report):
    reported = [each["uid"] for each in (*report["evictions"], *report["unknown"])]
    protected = {each["metadata"]["uid"] for each in there.pods if each["spec"].get("volumes") or in_progress(each)}
    if missing := set(whims.went) - set(reported):
        yield f"not in the report: {missing}"
    if len(set(reported)) != len(reported):
        yield f"more than once in the report: {reported}"
    if asked := protected & set(whims.asked):
        yield f"protected: {asked}"
    if whims.late:
        yield f"asked for after the end: {whims.late}"
    if unasked := set(reported) - set(whims.asked):
        yield f"never asked for: {unasked}"


def test_the_attack_reaches_what_it_is_about(tmp_path):
    """Else it would prove nothing: pods go, doubts stay, limits are met, runs are interrupted and out of time."""
    seen: Counter[str] = Counter()
    for seed in range(0, RUNS, max(1, RUNS // 20)):
        _, _, report = attempt(seed, tmp_path)
        seen["evicted"] += len(report["evictions"])
        seen["background"] += sum(each["background"] for each in report["evictions"])
        seen["unknown"] += len(report["unknown"])
        seen["refused"] += len(report.get("refusals", ()))
        seen["interrupted"] += any("SIGTERM" in each for each in report.get("warnings", ()))
        seen["late"] += any("deadline" in each for each in report.get("warnings", ()))

    assert all(seen[each] for each in ("evicted", "background", "unknown", "refused", "interrupted", "late")), seen
