"""Writes waves into the ledger while a `Steer` carries them out."""

from collections.abc import Callable, Sequence

from rebalancer.cluster.pod import Pod
from rebalancer.engine.ledger import Ledger
from rebalancer.errors import CycleStopped
from rebalancer.eviction.steering import Landing, Move, Steer, Wave
from rebalancer.eviction.verdict import Verdict

_NAMED = 5  # pods that stay pending and are named


class RecordedSteer:
    """A steer that writes down what it does, and ends the cycle when replacements find no node.

    Args:
        steer: what carries waves out.
        ledger: where they are written down.
        replaced: called with each pod whose replacement is Ready: its owner and its PDB can then spare another one.
    """

    def __init__(self, steer: Steer, ledger: Ledger, replaced: Callable[[Pod], None]) -> None:
        self._steer = steer
        self._ledger = ledger
        self._replaced = replaced

    @property
    def min_gain(self) -> float:
        """The least gain of a move, in points."""
        return self._steer.min_gain

    @property
    def keys(self) -> tuple[str, str]:
        """Keys of the soft taints."""
        return self._steer.keys

    def begin(self, wave: Wave) -> None:
        """Begin a wave; one that could not be begun is written down as well."""
        self._ledger.begin_wave(wave)
        self._steer.begin(wave)

    def settle(self, wave: Wave, moved: Sequence[tuple[Move, Verdict]]) -> tuple[Landing, ...]:
        """Wait for the landings.

        Raises:
            CycleStopped: replacements stay pending; others would for the same reason.
        """
        landings = self._steer.settle(wave, moved)
        self._ledger.settle_wave(landings)
        for pod in [each.move.pod for each in landings if each.ready_seconds is not None]:
            self._replaced(pod)
        pending = [f"{each.move.pod.namespace}/{each.replacement}" for each in landings if each.is_pending]
        if pending:
            more = f" and {len(pending) - _NAMED} more" if len(pending) > _NAMED else ""
            names = ", ".join(pending[:_NAMED])
            raise CycleStopped(f"replacements stay pending, so nothing more is evicted: {names}{more}")
        return landings

    def end(self) -> None:
        """End steering: no node is avoided any more."""
        self._steer.end()
