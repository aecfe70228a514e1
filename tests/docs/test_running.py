"""docs/running.md: its tables say what is served and what can be asked for."""

import re
from pathlib import Path

from rebalancer.cli.main import main
from rebalancer.run.options import Options
from rebalancer.run.telemetry import Telemetry, pages
from rebalancer.telemetry.metrics import MOST_SERIES, ProcessMetrics

TEXT = (Path(__file__).parents[2] / "docs" / "running.md").read_text()
ROW = re.compile(r"^\|( `(?:descheduler|rebalancer)_[^|]*)\|([^|]*)\|", re.MULTILINE)
#: What the library adds to a name, by type.
SUFFIXES = {"counter": "_total"}


def documented():
    """Labels by metric, as the table has them."""
    found: dict[str, set[str]] = {}
    before: set[str] = set()
    for names, labels in ROW.findall(TEXT):
        before = before if labels.strip() == "the same" else {each for each in labels.strip().split(", ") if each}
        found |= {name.strip("` "): before for name in names.split(",")}
    return found


def declared():
    """Labels by metric, as the program declares them; the old name of a counter has those of the counter."""
    found = {}
    for collector in list(ProcessMetrics(dry_run=False).registry._collector_to_names):
        name = getattr(collector, "_name", "")
        if name.startswith(("descheduler_", "rebalancer_")):
            found[name + SUFFIXES.get(collector._type, "")] = set(collector._labelnames)
    return found | {"descheduler_pods_evicted": found["descheduler_pods_evicted_total"]}


def test_the_table_has_every_metric_with_its_labels():
    assert documented() == declared()


def test_paths_flags_and_the_bound_are_those_of_the_program():
    """A table cannot promise what the command line does not take."""
    known = {name for option in main.commands["run"].params for name in option.opts}
    paths = {path for path in pages(Telemetry(Options("demo")), metrics=True) if path.count("/") == 1}

    assert set(re.findall(r"`(--[a-z-]+)", TEXT)) <= known
    assert [path for path in paths if f"`{path}`" not in TEXT] == []
    assert f"{MOST_SERIES:,} series" in TEXT
