"""The figures in docs/relief.md are those of its example cluster, by the program's own arithmetic."""

import re
from datetime import UTC, datetime
from pathlib import Path

from rebalancer.balancing.utilization import Band, Excess
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.resources import CPU, MEMORY
from rebalancer.run.snapshot_file import read_snapshot_file

ROOT = Path(__file__).parents[2]
TARGET = 65.0
NUMBER = re.compile(r"(?<![\w-])\d+(?:\.\d+)?")
RELIEF = (ROOT / "docs/relief.md").read_text()


def rows(heading):
    """The first table under a heading: its rows by their first word, each with the numbers in it."""
    section = RELIEF.split(f"## {heading}\n")[1].split("\n## ")[0]
    table = re.search(r"\| ?-.*\n((?:\|.*\n)+)", section)
    assert table
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table[1].splitlines()]
    return {re.split(r"[ ,]", first)[0]: NUMBER.findall(" ".join(others)) for first, *others in cells}


def cluster(name):
    file = read_snapshot_file(str(ROOT / "examples" / name))
    return Cluster(file.snapshot(datetime.now(UTC)))


THREE = cluster("three-nodes.json")


def points(used, node):
    return used[CPU] * 100 / node.allocatable[CPU]


def test_each_node_uses_what_the_table_says():
    """In cores and in percent, and the source with its excess."""
    used = {each.name: each.usage for each in THREE.snapshot.node_metrics or ()}
    percents = {node.name: points(used[node.name], node) for node in THREE.nodes}

    assert rows("1. Which nodes") == {
        name: [f"{each / 10:g}", f"{each:g}", *([f"{each - TARGET:g}"] if each > TARGET else [])]
        for name, each in percents.items()
    }


def test_each_pod_brings_what_the_table_says():
    """What it uses, what is left of the excess without it, and what it takes beyond the excess."""
    used, told = {(each.namespace, each.name): each.usage for each in THREE.snapshot.pod_metrics or ()}, {}
    for pod in (each for each in THREE.pods() if each.node == "node-a"):
        taken, excess = {CPU: points(used[pod.key], THREE.node(pod.node))}, Excess({CPU: 85 - TARGET})
        left = excess.left(taken)
        beyond = [] if left else [f"{excess.beyond(taken):g}"]
        told[pod.name] = [f"{taken[CPU] / 10:g}", f"{taken[CPU]:g}", f"{left:g}", *beyond]

    assert rows("2. Which pod") == told


def test_each_node_has_left_what_the_table_says():
    """By requests, with another api-1 on it, in kube-scheduler's whole numbers; the old one still ends."""
    (pod,), told = (pod for pod in THREE.pods() if pod.name == "api-1"), {}
    for node in THREE.nodes:
        there = [*THREE.pods_on(node), pod]
        requested = {name: sum(each.spec.requests[name] for each in there) for name in (CPU, MEMORY)}
        left = [(node.allocatable[name] - each) * 100 // node.allocatable[name] for name, each in requested.items()]
        told[node.name] = [f"{requested[CPU] / 1000:g}", *map(str, left), str(sum(left) // 2)]

    assert rows("4. Where it would land") == told


def test_each_node_has_as_many_pods_as_the_table_says():
    """And the score that PodCapacityOfNode gives it."""
    on, told = cluster("pod-counts.json"), {}
    for node in on.nodes:
        pods, places = len(on.active_pods_on(node)), node.allocatable["pods"]
        told[node.name] = [str(pods), f"{pods * 100 / places:.1f}", str((places - pods) * 100 // places)]

    assert rows("The number of pods") == told


def test_the_band_has_the_lines_that_the_page_names():
    """Halfway up and nine tenths of the way up, and halfway from the lower edge to the mean."""
    band = Band({CPU: 30.0}, {CPU: 40.0}, {CPU: 60.0})

    lines = [band.above(0.5)[CPU], band.above(0.9)[CPU], band.below(0.5)[CPU]]

    section = RELIEF.split("## Around the mean\n")[1].split("\n## ")[0]
    for line in lines:
        assert f"{line:g} %" in section
