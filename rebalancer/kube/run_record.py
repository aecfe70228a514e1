"""Which runs may have left soft taints on nodes, as noted in the Lease, where a kubelet cannot write.

    metadata.annotations  kube-rebalancer/runs: [{"run": "20260115T120000Z-9f3a11c2",
                                                  "keys": ["kube-rebalancer/avoid", "kube-rebalancer/avoid-more"],
                                                  "expires": "2026-01-15T12:07:00Z"}]

A kubelet may write what it likes into the annotations of its node.  So a node's annotation alone does not make a taint
ours, and does not say that a run is at work: this record does.  A run notes itself before its first taint, and removes
the note when nothing of it can be left on any node.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from rebalancer.errors import ClusterError
from rebalancer.kube.leases import Leases
from rebalancer.kube.marks import Mark, read_note

_LOG = logging.getLogger(__name__)

#: Under this name `rebalancer mark` notes what it sets; its keys are KEY=VALUE of labels and taints.
_MARKING = "mark"
ANNOTATION = "kube-rebalancer/runs"
#: So many runs are remembered, the last ones.
_MOST = 50


class RunRecord:
    """The record in one Lease, whoever holds that.

    Args:
        leases: the Lease.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    def read(self) -> tuple[Mark, ...]:
        """Return the runs that are noted, the oldest first; none where the note cannot be read.

        Raises:
            ClusterError: the Lease cannot be read.
        """
        found = self._leases.read()
        return _noted(found.annotations) if found else ()

    def note(self, mark: Mark) -> None:
        """Note a run; its keys and its expiry are those of the mark.

        Raises:
            ClusterError: the Lease cannot be written.
        """
        self._change(lambda noted: [*(each for each in noted if each.run != mark.run), mark][-_MOST:])

    def forget(self, runs: Collection[str]) -> None:
        """Remove the notes of these runs.

        Raises:
            ClusterError: the Lease cannot be written.
        """
        self._change(lambda noted: [each for each in noted if each.run not in runs])

    def signs(self) -> frozenset[str]:
        """Return the labels and taints that were ever ours, as KEY=VALUE; none where the Lease cannot be read."""
        try:
            return frozenset(key for each in self.read() if each.run == _MARKING for key in each.keys)
        except ClusterError as error:
            _LOG.warning("which labels and taints were ours before cannot be read: %s", error)
            return frozenset()

    def note_signs(self, signs: Collection[str]) -> None:
        """Note labels and taints as ours before they are set; where that fails, those of the rules are still found."""
        known = self.signs()
        if known.issuperset(signs):
            return
        try:
            self.note(Mark(_MARKING, tuple(sorted({*known, *signs})[:_MOST]), datetime.now(UTC)))
        except ClusterError as error:
            _LOG.warning("labels and taints cannot be noted, and stay when the rules change: %s", error)

    def _change(self, change: Callable[[Sequence[Mark]], Sequence[Mark]]) -> None:
        def annotations(before: Mapping[str, str]) -> Mapping[str, str]:
            runs = _noted(before)
            after = change(runs)
            if after == runs:
                return before
            others = {key: value for key, value in before.items() if key != ANNOTATION}
            return {**others, **({ANNOTATION: f"[{','.join(each.text() for each in after)}]"} if after else {})}

        self._leases.annotate(annotations)


def _noted(annotations: Mapping[str, str]) -> tuple[Mark, ...]:
    noted = read_note(annotations.get(ANNOTATION), tuple[Mark, ...])
    return tuple(each for each in noted or () if each.expires.tzinfo)
