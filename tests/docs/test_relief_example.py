"""The figures in docs/relief.md are those of its example cluster, by the program's own arithmetic."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rebalancer.balancing.utilization import Band, Excess
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.resources import CPU, MEMORY
from rebalancer.run.snapshot_file import read_snapshot_file

ROOT = Path(__file__).parents[2]
TARGET = 65.0
RELIEF = (ROOT / "docs/relief.md").read_text()


def rows(heading):
    """The first table under a heading: its rows by their first word, each with the numbers in it."""
    section = RELIEF.split(f"## {heading}\n")[1].split("\n## ")[0]
    table = re.search(r"\| ?-.*\n((?:\|.*\n)+)", section)
    assert table
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table[1].splitlines()]
    return {re.split(r"[ ,]", row[0])[0]: [number for cell in row[1:] for number in numbers(cell)] for row in cells}


def numbers(text):
    return re.findall(r"(?<![\w-])\d+(?:\.\d+)?", text)


@pytest.fixture(scope="module")
def cluster():
    file = read_snapshot_file(str(ROOT / "examples/three-nodes.json"))
    return Cluster(file.collection.snapshot(datetime.now(UTC)))


def percent(cluster, node):
    metrics = {each.name: each for each in cluster.snapshot.node_metrics or ()}
    return metrics[node.name].usage[CPU] * 100 / node.allocatable[CPU]


def points(cluster, pod):
    node = cluster.node(pod.node)
    assert node
    usage = {(each.namespace, each.name): each.usage for each in cluster.snapshot.pod_metrics or ()}
    return usage[pod.key][CPU] * 100 / node.allocatable[CPU]


def test_each_node_uses_what_the_table_says(cluster):
    """In cores and in percent, and the source with its excess."""
    table = rows("1. Which nodes")

    assert len(table) == len(cluster.nodes)
    for node in cluster.nodes:
        percents = percent(cluster, node)
        over = [f"{percents - TARGET:g}"] if percents > TARGET else []
        assert table[node.name] == [f"{percents / 10:g}", f"{percents:g}", *over]


def test_each_pod_brings_what_the_table_says(cluster):
    """What it uses, what is left of the excess without it, and what it takes beyond the excess."""
    table = rows("2. Which pod")
    pods = [pod for pod in cluster.pods() if pod.node == "node-a"]

    assert table.keys() == {pod.name for pod in pods}
    for pod in pods:
        taken = {CPU: points(cluster, pod)}
        excess = Excess({CPU: 85 - TARGET})
        left = excess.left(taken)
        beyond = [] if left else [f"{excess.beyond(taken):g}"]
        assert table[pod.name] == [f"{taken[CPU] / 10:g}", f"{taken[CPU]:g}", f"{left:g}", *beyond]


def test_each_node_has_left_what_the_table_says(cluster):
    """By requests, with another api-1 on it, in kube-scheduler's whole numbers; the old one still ends."""
    table = rows("4. Where it would land")
    (pod,) = (pod for pod in cluster.pods() if pod.name == "api-1")

    for node in cluster.nodes:
        others = [each.spec.requests for each in cluster.pods_on(node)]
        requested = {name: sum(each[name] for each in [*others, pod.spec.requests]) for name in (CPU, MEMORY)}
        left = {
            name: (node.allocatable[name] - amount) * 100 // node.allocatable[name]
            for name, amount in requested.items()
        }
        mean = sum(left.values()) // 2
        assert table[node.name] == [f"{requested[CPU] / 1000:g}", str(left[CPU]), str(left[MEMORY]), str(mean)]


def test_each_node_has_as_many_pods_as_the_table_says():
    """And the score that PodCapacityOfNode gives it."""
    file = read_snapshot_file(str(ROOT / "examples/pod-counts.json"))
    cluster = Cluster(file.collection.snapshot(datetime.now(UTC)))
    table = rows("The number of pods")

    assert len(table) == len(cluster.nodes)
    for node in cluster.nodes:
        pods, places = len(cluster.active_pods_on(node)), node.allocatable["pods"]
        assert table[node.name] == [str(pods), f"{pods * 100 / places:.1f}", str((places - pods) * 100 // places)]


def test_the_band_has_the_lines_that_the_page_names():
    """Halfway up and nine tenths of the way up, and halfway from the lower edge to the mean."""
    band = Band({CPU: 30.0}, {CPU: 40.0}, {CPU: 60.0})

    lines = [band.above(0.5)[CPU], band.above(0.9)[CPU], band.below(0.5)[CPU]]

    section = RELIEF.split("## Around the mean\n")[1].split("\n## ")[0]
    for line in lines:
        assert f"{line:g} %" in section
