"""Does it earn trust over two weeks?  Hours over target, evictions, and moves that were undone, beside others.

    make soak                                  # three policies and five seeds: half an hour or so
    make soak OPTIONS='--seeds 7 --policy band'

Three play the same days (`tests.soak.days`): the program with its memory, the descheduler's rules on the same figures,
and nobody.  All have the same limits, PDBs and scheduler.  A move is undone if the pod comes back to its node, or if
its replacement is moved within a day.  Exit code 1 means that a requirement fails (`REQUIREMENTS`).
"""

import argparse
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from rebalancer.engine.limits import Limits
from rebalancer.memory.document import KEY, Memory, decoded, encoded
from rebalancer.memory.settling import with_moves
from rebalancer.policy.moving import Trust
from rebalancer.run.memory import Recalled, past_move, readings, recollect
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests import make
from tests.outcome.scenarios import Bounds
from tests.outcome.simulation import PlayedSteer, Replaced
from tests.outcome.state import over
from tests.soak.days import CYCLE, DAYS, PODS, Days

LIMITS = Limits(per_node=5, total=20)
#: Points of a node that a steered move brings at least, as the default of `steering.minGain`.
MIN_GAIN = 1.5
RELIEF = {"source": "KubernetesMetrics", "selection": "relief"}
TARGETS = {"thresholds": {"cpu": 45, "memory": 60}, "targetThresholds": {"cpu": 60, "memory": 75}}
BAND = {
    "useDeviationThresholds": True,
    "thresholds": {"cpu": 10, "memory": 10},
    "targetThresholds": {"cpu": 10, "memory": 10},
}
POLICIES: dict[str, dict[str, Any]] = {
    "targets": TARGETS,
    "band": BAND,
    "lasting": BAND | {"trust": {"lasting": {}}},
}
WHO = ("rebalancer", "descheduler", "nobody")
#: At most so many times the descheduler's hours and evictions, and at most this share of moves undone.
REQUIREMENTS = {"hours": 0.5, "evictions": 0.25, "undone": 0.01}


@dataclass(frozen=True)
class Soaked:
    """What two weeks came to."""

    hours: float  # nodes x hours over target
    evictions: int = 0  # by the program
    undone: int = 0  # evictions that were for nothing

    @property
    def share_undone(self) -> float:
        return self.undone / self.evictions if self.evictions else 0.0


class Tally:
    """Counts evictions, and those that were for nothing."""

    def __init__(self) -> None:
        self.evictions = self.undone = 0
        self._came: dict[str, datetime] = {}

    def count(self, now: datetime, replaced: Iterable[Replaced]) -> None:
        for each in replaced:
            before = self._came.pop(each.gone.name, None)
            self.evictions += 1
            again = before is not None and now - before < timedelta(days=1)
            self.undone += each.came.node == each.gone.node or again
            self._came[each.came.name] = now


def soak(policy: str, who: str, seed: int, days: float = DAYS) -> Soaked:
    args = dict(POLICIES[policy])
    trust = Trust.model_validate(args.pop("trust", {}))
    bounds = Bounds(args["thresholds"], args["targetThresholds"], args.get("useDeviationThresholds", False))
    usage = RELIEF if who == "rebalancer" else {"source": RELIEF["source"]}
    strategy = LowNodeUtilization(LowNodeUtilizationArgs.model_validate(args | {"metricsUtilization": usage}))
    cluster_of, memory, hours, tally = Days(seed), Memory(since=make.NOW - timedelta(days=30)), 0.0, Tally()
    for now in cluster_of.cycles(days):
        hours += len(over(cluster_of.simulation.shares(), bounds)) * (CYCLE / timedelta(hours=1))
        if who == "nobody":
            continue
        cluster, known = cluster_of.cluster(), None
        if who == "rebalancer":
            known = recollect(Recalled(decoded({KEY: encoded(memory)}, now)), trust, cluster.snapshot)
        steer = PlayedSteer(cluster_of.simulation, MIN_GAIN) if known else None
        parts = {"evictor": {"nodeFit": True}, "limits": LIMITS, "recollection": known}
        ledger, replaced = cluster_of.simulation.cycle(cluster, strategy, cluster_of.open_nodes(), steer, **parts)
        tally.count(now, replaced)
        if known:
            memory = with_moves(known.memory, [past_move(entry, now, now) for entry in ledger.evictions])
            memory = replace(memory, readings=(*memory.readings, *readings(ledger, now))[-12:])
    return Soaked(hours, tally.evictions, tally.undone)


def main() -> int:
    asked = _asked()
    tasks = [(policy, who, seed) for policy in asked.policy for seed in asked.seeds for who in WHO]
    with ProcessPoolExecutor() as pool:
        found = dict(zip(tasks, pool.map(soak, *zip(*tasks, strict=True)), strict=True))
    _print(f"{DAYS} days, {PODS} pods, seeds {', '.join(map(str, asked.seeds))}; medians\n")
    _print("| policy | who | node hours over target | evictions a pod and day | undone |")
    _print("|---|---|---|---|---|")
    failed = []
    for policy in asked.policy:
        by = {who: [found[policy, who, seed] for seed in asked.seeds] for who in WHO}
        for who, runs in by.items():
            _print(f"| {policy} | {who} | {' | '.join(_shown(runs))} |")
        failed += [f"{policy}: {problem}" for problem in problems(by["rebalancer"], by["descheduler"])]
    _print("\n" + ("\n".join(failed) or "All requirements are met."))
    return 1 if failed else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _shown(runs: Sequence[Soaked]) -> tuple[str, str, str]:
    return (
        f"{statistics.median(each.hours for each in runs):.0f}",
        f"{statistics.median(each.evictions / PODS / DAYS for each in runs):.3f}",
        f"{statistics.median(each.share_undone for each in runs):.1%}",
    )


def problems(ours: Sequence[Soaked], theirs: Sequence[Soaked]) -> Iterator[str]:
    def median(runs: Sequence[Soaked], name: str) -> float:
        return statistics.median(getattr(each, name) for each in runs)

    for name in ("hours", "evictions"):
        found, most = median(ours, name), REQUIREMENTS[name] * median(theirs, name)
        if found > most:
            yield f"{name} are {found:.0f}, more than {most:.0f}"
    if (undone := median(ours, "share_undone")) > REQUIREMENTS["undone"]:
        yield f"{undone:.1%} of the moves were undone"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13, 14, 15])
    parser.add_argument("--policy", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
