"""Placements foreseen beside placements made, with all that kube-scheduler writes of each; counted and told."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rebalancer.scheduling.simulator.answer import Answer
from tests.e2e.waiting import wait_for

#: The lines of these source files at the level of detail that has the scores; client requests would drown them.
OPTIONS = ["--vmodule=schedule_one=10"]

_SCORED = re.compile(
    r'"Plugin scored node for pod" pod="(?P<pod>[^"]+)" plugin="(?P<plugin>\w+)"'
    r' node="(?P<node>[^"]+)" score=(?P<score>-?\d+)'
)
_BOUND = re.compile(r'"Successfully bound pod to node" pod="(?P<pod>[^"]+)" .*feasibleNodes=(?P<feasible>\d+)')


@dataclass
class Written:
    """What stands in the log about one pod."""

    # Weighted scores by plugin and node.
    scores: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    feasible: int | None = None  # how many nodes were found; None where the pod was not bound

    @property
    def scored(self) -> set[str]:
        return {node for scores in self.scores.values() for node in scores}


class SchedulerLog:
    """Reads the log on from where it stopped; pods are told by namespace and name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def read(self, pod: str) -> Written:
        """Return what was written since the last call of a pod that was bound; that is its last line."""
        written = Written()
        wait_for(lambda: self._read_on(pod, written), f"a line of the scheduler's log that {pod} is bound")
        return written

    def _read_on(self, pod: str, written: Written) -> bool:
        for line in self._lines():
            if match := _SCORED.search(line):
                if match["pod"] == pod:
                    written.scores[match["plugin"]][match["node"]] = int(match["score"])
            elif (match := _BOUND.search(line)) and match["pod"] == pod:
                written.feasible = int(match["feasible"])
        return written.feasible is not None

    def _lines(self) -> list[str]:
        with self._path.open("rb") as log:
            log.seek(self._offset)
            text = self._rest + log.read()
            self._offset = log.tell()
        *lines, self._rest = text.split(b"\n")
        return [line.decode(errors="replace") for line in lines]


_ELSEWHERE = frozenset(("DynamicResources",))  # scores nothing for pods without claims


@dataclass
class Comparison:
    counts: Counter[str] = field(default_factory=Counter)  # by kind of placement or judgement
    # By plugin, how many scores of nodes agree and how many there are.
    plugins: dict[str, Counter[str]] = field(default_factory=dict)
    sizes: Counter[int] = field(default_factory=Counter)  # how often the set had so many nodes
    disagreements: list[str] = field(default_factory=list)  # in words

    def bound(self, pod: str, answer: Answer, node: str, written: Written) -> None:
        self.counts["placements"] += 1
        if answer.unknown:
            self.counts["unknown"] += 1
            self._disagree(pod, f"unknown: {answer.unknown}")
            return
        kind = "sampled" if answer.sampled else "single" if written.feasible == 1 else "scored"
        self.counts[kind] += 1
        self.sizes[len(answer.nodes)] += 1
        if node in answer.nodes:
            self.counts[f"{kind}, in the set"] += 1
        else:
            self._disagree(pod, f"went to {node}, foreseen {answer.nodes[:5]} {answer.reason}")
        if kind == "scored":
            if (feasible := len(answer.feasible_nodes())) == written.feasible:
                self.counts["scored, feasible nodes agree"] += 1
            else:
                self._disagree(pod, f"{written.feasible} nodes are feasible, foreseen {feasible}")
            self._compare_scores(pod, answer, written)

    def unschedulable(self, pod: str, answer: Answer, message: str) -> None:
        self.counts["unschedulable"] += 1
        devices = answer.reason and "devices may be claimed" in answer.unknown  # there is no DeviceClass here
        if answer.nodes or (answer.unknown and not devices):
            self._disagree(pod, f"fits nowhere ({message}), foreseen {answer.nodes[:5]} {answer.unknown}")
            return
        self.counts["unschedulable, foreseen"] += 1
        if message.startswith(answer.reason):
            self.counts["unschedulable, reason as worded"] += 1
        else:
            self._disagree(pod, f"says {message!r}, foreseen {answer.reason!r}")

    def _compare_scores(self, pod: str, answer: Answer, written: Written) -> None:
        if not written.scores:
            self.counts["scored, without scores in the log"] += 1
            return
        for node in sorted(written.scored):
            try:
                foreseen = answer.scores(node)
            except ValueError:
                self._disagree(pod, f"{node} is feasible, not foreseen")
                return
            self._compare_node(pod, node, foreseen, written)

    def _compare_node(self, pod: str, node: str, foreseen: Mapping[str, int], written: Written) -> None:
        for plugin in sorted(set(foreseen) | set(written.scores) - _ELSEWHERE):
            real, ours = written.scores.get(plugin, {}).get(node), foreseen.get(plugin)
            agreed = (real or 0) == (ours or 0)
            counter = self.plugins.setdefault(plugin, Counter())
            counter["scores"] += 1
            counter["agree"] += agreed
            if not agreed:
                self._disagree(pod, f"{plugin} scores {node} {real}, foreseen {ours}")

    def _disagree(self, pod: str, what: str) -> None:
        self.disagreements.append(f"{pod}: {what}")

    def table(self) -> str:
        lines = [f"{what:45} {count:8,}" for what, count in sorted(self.counts.items())]
        lines += ["", f"{'plugin':45} {'scores':>9} {'agree':>9}"]
        lines += [
            f"{plugin:45} {counter['scores']:9,} {100 * counter['agree'] / counter['scores']:8.3f}%"
            for plugin, counter in sorted(self.plugins.items())
        ]
        sizes = ", ".join(f"{size}: {count}" for size, count in sorted(self.sizes.items()))
        return "\n".join([*lines, "", f"sizes of the sets: {sizes}"])
