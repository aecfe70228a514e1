"""Writes waves into the ledger while a `Steer` carries them out."""

from collections.abc import Callable, Sequence

from rebalancer.cluster.pod import Pod
from rebalancer.engine.ledger import Ledger
from rebalancer.errors import CycleStopped
from rebalancer.eviction.steering import Landing, Move, Steer, Wave
from rebalancer.eviction.verdict import Verdict

_NAMED = 5  # pods that are named


class RecordedSteer:
    """A steer that writes down what it does, and ends the cycle when replacements find no node, or do not come.

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

    def closed(self, wave: Wave) -> frozenset[str]:
        """Return the nodes of a wave that take no pods any more; a wave that is planned anew is not written down."""
        return self._steer.closed(wave)

    def begin(self, wave: Wave) -> None:
        """Begin a wave; one that could not be begun is written down as well."""
        self._ledger.begin_wave(wave)
        self._steer.begin(wave)

    def settle(self, wave: Wave, moved: Sequence[tuple[Move, Verdict]]) -> tuple[Landing, ...]:
        """Wait for the landings.

        Raises:
            CycleStopped: replacements stay pending, or do not come; others would not for the same reason.
        """
        landings = self._steer.settle(wave, moved)
        self._ledger.settle_wave(landings)
        for pod in [each.move.pod for each in landings if each.ready_seconds is not None]:
            self._replaced(pod)
        if pending := [f"{each.move.pod.namespace}/{each.replacement}" for each in landings if each.is_pending]:
            raise CycleStopped(f"replacements stay pending, so nothing more is evicted: {_named(pending)}")
        if missing := [str(each.move.pod) for each in landings if each.is_missing]:
            raise CycleStopped(
                "pods were not replaced (a quota, a webhook, or an owner that was scaled down?), so nothing more is "
                f"evicted: {_named(missing)}"
            )
        return landings

    def end(self) -> None:
        """End steering: no node is avoided any more."""
        self._steer.end()


def _named(pods: Sequence[str]) -> str:
    more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
    return ", ".join(pods[:_NAMED]) + more
