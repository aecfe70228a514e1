"""What kube-scheduler writes of each placement: every plugin's score of every node, and how many nodes were left."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

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
