"""What CONTRIBUTING.md shows a newcomer to add, added to a copy of the tree, works."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.commands import ROOT, run
from tests.functional.objects import old_pods, two_nodes_with

SECTION = (ROOT / "CONTRIBUTING.md").read_text().split("## Adding to it\n")[1].split("\n## ")[0]
PLACE = re.compile(r"# (?P<file>\S+\.py)(?:, below: (?P<line>.*))?\n")


@dataclass(frozen=True)
class Block:
    """Code for a file: the whole of it, or what goes below one of its lines."""

    file: str
    below: str | None
    code: str

    def write(self, tree):
        path = tree / self.file
        if self.below is None:
            path.write_text(self.code)
            return
        text = path.read_text()
        assert text.count(f"{self.below}\n") == 1, f"{self.file} has not one line {self.below!r}"
        path.write_text(text.replace(f"{self.below}\n", f"{self.below}\n{self.code}"))


def blocks(heading):
    part = SECTION.split(f"### {heading}\n")[1].split("\n### ")[0]
    found = []
    for body in re.findall(r"```python\n(.*?)```", part, re.DOTALL):
        place = PLACE.match(body)
        assert place, body
        found.append(Block(place["file"], place["line"], body[place.end() :]))
    return found


POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: default
    pluginConfig:
      - {name: EvictByPhase, args: {phase: Pending}}
      - {name: DefaultEvictor, args: {podProtections: {extraEnabled: [HeldPods]}}}
    plugins: {deschedule: {enabled: [EvictByPhase]}}
"""
HEADINGS = re.findall(r"^### (.*)$", SECTION, re.MULTILINE)


#: Begins a package that goes on in the checkout, where all that is not changed is compiled already.
GOES_ON = "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n"


@pytest.fixture
def tree(tmp_path):
    for file in {Path(block.file) for heading in HEADINGS for block in blocks(heading)}:
        for package in file.parents[:-1]:
            (tmp_path / package).mkdir(parents=True, exist_ok=True)
            init = package / "__init__.py"
            (tmp_path / init).write_text(GOES_ON + (ROOT / init).read_text())
        if file.name != "__init__.py" and (ROOT / file).exists():
            (tmp_path / file).write_text((ROOT / file).read_text())
    return tmp_path


def add(tree, *headings):
    for heading in headings:
        for block in blocks(heading):
            block.write(tree)


#: Prints a report, the manual of the strategy, and metrics with the figures of nodes.
PROGRAM = """
from click.testing import CliRunner
from rebalancer.cli.main import main
from rebalancer.telemetry.metrics import ProcessMetrics
run = ["run", "--policy", "policy.yaml", "--snapshot", "cluster.json", "-o", "json"]
for command in (run, ["strategies", "EvictByPhase"]):
    print(CliRunner().invoke(main, command).stdout, end="---")
nodes = [{"state": "overutilized", "before": {}, "after": {"cpu": percent}} for percent in (95.0, 91.0, 50.0)]
metrics = ProcessMetrics(dry_run=False)
metrics.report_made({"strategies": [{"profile": "p", "strategy": "s", "nodes": nodes}]})
print(metrics.exposition().decode())
"""


def printed(tree):
    environment = {"PYTHONPATH": f"{tree}:{ROOT}"}
    report, *more = run(sys.executable, "-c", PROGRAM, cwd=tree, env=environment).stdout.split("---")
    return json.loads(report), *more


def test_there_is_a_way_for_each_kind_in_two_files_at_most():
    """A strategy, a protection, a cause, and a metric of a node."""
    assert HEADINGS == ["A strategy", "A protection", "A cause", "A metric of a node"]
    assert all(1 <= len({block.file for block in blocks(heading)}) <= 2 for heading in HEADINGS)


def test_what_the_page_adds_works(tree):
    """The strategy evicts and has a manual; of two pods that are pending the protection keeps one; a metric is served.

    The protection needs no words of its own: its code and figures are spelled out, and a cause has some.
    """
    (tree / "policy.yaml").write_text(POLICY)
    stuck, held, fine = old_pods("stuck", "held", "fine")
    stuck["status"]["phase"] = held["status"]["phase"] = "Pending"
    held["metadata"]["labels"] = {"hold": ""}
    objects = {"kind": "List", "items": two_nodes_with(stuck, held, fine)}
    (tree / "cluster.json").write_text(json.dumps(objects))

    add(tree, "A strategy", "A protection")
    (refusal,) = printed(tree)[0]["refusals"]
    add(tree, "A cause", "A metric of a node")
    report, manual, metrics = printed(tree)

    assert refusal["reason"] == "held pods (label hold)"
    assert manual.startswith("EvictByPhase: evict pods that are in a phase they should not stay in.")
    assert re.search(r"^  phase \([^)]+\): Pods in this phase are evicted\.$", manual, re.MULTILINE)
    assert [(each["name"], each["reason"]) for each in report["evictions"]] == [("stuck", "phase Pending")]
    refusals = [(each["name"], each["by"], each["reason"]) for each in report["refusals"]]
    assert refusals == [("held", "HeldPods", "has the label hold")]
    assert 'rebalancer_nodes_over_percent{percent="90",resource="cpu"} 2.0' in metrics
