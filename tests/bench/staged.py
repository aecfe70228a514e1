"""Runs the program as it is, and tells at its end on standard error how long each stage took.

    python tests/bench/staged.py run --policy POLICY --snapshot FILE --output json

The last line is JSON: seconds of this process's processors by stage.  What is not listed (protections, requests to the
API server) is in `other`; of a strategy's seconds the report itself tells.
"""

import importlib
import json
import sys
import time
from collections import Counter
from functools import wraps
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # a script's own folder is on the path, the repository is not

from rebalancer.__main__ import main as program

#: Stages, with the functions whose seconds they are; none of them calls another one.
STAGES = {
    "read": (("rebalancer.run.start", "read_snapshot_file"), ("rebalancer.run.cluster_view", "view_cluster")),
    "index": (("rebalancer.run.work", "Work.cluster"),),
    "decide": (("rebalancer.engine.cycle", "run_cycle"),),
    "report": (("rebalancer.run.work", "document"),),
    "write": (("rebalancer.report.delivery", "deliver"),),
}


def main() -> None:
    spent: Counter[str] = Counter()
    is_live = "--snapshot" not in sys.argv  # other runs do without the imports of live ones
    for name in ("cli.main", "run.start", "run.live_run") if is_live else ("cli.main", "run.start"):
        importlib.import_module(f"rebalancer.{name}")
    spent["import"] = time.process_time()
    for stage, functions in STAGES.items():
        for module, name in functions if is_live else functions[:1]:
            _time(module, name, stage, spent)
    try:
        program()
    finally:
        spent["other"] = time.process_time() - sum(spent.values())
        sys.stderr.write(f"\n{json.dumps({stage: round(seconds, 3) for stage, seconds in spent.items()})}\n")


def _time(module: str, name: str, stage: str, spent: Counter[str]) -> None:
    """Time a function wherever the program has imported it, or a method."""
    *outer, name = name.split(".")
    found = importlib.import_module(module)
    owners = [getattr(found, each) for each in outer]
    owners = owners or [each for key, each in sys.modules.items() if key.startswith("rebalancer.")]
    timed = getattr(owners[0] if outer else found, name)

    @wraps(timed, updated=())
    def act(*args: Any, **named: Any) -> Any:
        start = time.process_time()
        try:
            return timed(*args, **named)
        finally:
            spent[stage] += time.process_time() - start

    for each in owners:
        if getattr(each, name, None) is timed:
            setattr(each, name, act)


if __name__ == "__main__":
    main()
