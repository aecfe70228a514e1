"""Whether the cluster gets better, and whether it rests: `make outcome`.

The program works on a real control plane for some cycles, the real scheduler placing what was evicted; after each the
cluster is measured through the metrics API.  Evictions are counted by the API server's audit log, not by a report.
With --other a second program works on the same clusters, built anew with every pod on the same node.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.e2e.binaries import BinariesError, provide
from tests.outcome.load import NODES
from tests.outcome.result import Result, calibration, table
from tests.outcome.scenarios import SCENARIOS, Scenario
from tests.outcome.trial import Program, ours, play
from tests.outcome.verdict import verdicts

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run the scenarios asked for; exit code 1 if a requirement fails, 2 if there is no control plane to be had."""
    options = _parser().parse_args()
    try:
        binaries = provide()
    except BinariesError as error:
        _say(str(error))
        return 2
    chosen = options.scenario or list(SCENARIOS)
    with tempfile.TemporaryDirectory(prefix="rebalancer-outcome-") as copy:
        programs = [ours(ROOT, Path(copy), steer=options.steer)]
        if options.other:
            programs.append(Program("other", options.other))
        held = [_scenario(binaries, SCENARIOS[name], programs, options) for name in chosen]
    return 0 if all(held) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ", ".join(f"{scenario.name} ({scenario.about})" for scenario in SCENARIOS.values())
    parser.add_argument(
        "--scenario", action="append", choices=list(SCENARIOS), help=f"all, or: {names}".replace("%", "%%")
    )
    parser.add_argument("--cycles", type=int, help="how many; else the scenario's own number")
    parser.add_argument("--runs", type=int, default=3, help="how many, each with a load of its own; the median counts")
    parser.add_argument("--seed", type=int, default=1, help="of the first run's load")
    parser.add_argument("--nodes", type=int, default=NODES, help="with as many pods for each; judged only by default")
    parser.add_argument("--steer", action="store_true", help="let our program steer replacements")
    parser.add_argument(
        "--other",
        metavar="COMMAND",
        help="another program's command line, for one cycle; {kubeconfig} and {policy} stand for files",
    )
    return parser


def _scenario(binaries: Path, scenario: Scenario, programs: Sequence[Program], options: argparse.Namespace) -> bool:
    results: dict[str, list[Result]] = {program.name: [] for program in programs}
    for run in range(1, options.runs + 1):
        for name, result in _run(binaries, scenario, programs, run, options):
            results[name].append(result)
            title = f"{scenario.name}, run {run}, {name}: {result.evictions} evictions"
            _print(title, table(result), *calibration(result.shares))
    judged = verdicts(scenario.name, results["rebalancer"], results.get("other", ()), steered=options.steer)
    if options.nodes != NODES:  # requirements are about so many
        judged = [verdict for verdict in judged if verdict.holds is None]
    _print(f"{scenario.name}: {scenario.about}; {options.runs} runs", *map(str, judged))
    return all(verdict.holds is not False for verdict in judged)


def _run(
    binaries: Path, scenario: Scenario, programs: Sequence[Program], run: int, options: argparse.Namespace
) -> Iterator[tuple[str, Result]]:
    placement = None
    for program in programs:
        where = f"{scenario.name}, run {run}, {program.name}"
        placement, result = play(
            binaries,
            scenario,
            program,
            seed=options.seed + run - 1,
            nodes=options.nodes,
            cycles=options.cycles or scenario.cycles,
            placement=placement,
            told=lambda line, where=where: _say(f"{where}: {line}"),
        )
        yield program.name, result


def _print(*lines: str) -> None:
    sys.stdout.write("\n".join(("", *lines, "")))
    sys.stdout.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"outcome: {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
