"""What one cycle moved, and whether a pod was moved again too soon."""

from collections.abc import Sequence
from dataclasses import dataclass

# A replacement that is evicted again within so many cycles after its own was moved twice.
CYCLES = 3


@dataclass(frozen=True)
class Moved:
    """The pods, by name, before and after a cycle, and those whose eviction was granted.

    A pod that is there only afterwards is a replacement.
    """

    before: frozenset[str]
    evicted: frozenset[str]
    after: frozenset[str]

    @property
    def replacements(self) -> frozenset[str]:
        """The pods that were created in this cycle and stay."""
        return self.after - self.before

    @property
    def unexplained(self) -> frozenset[str]:
        """The pods that went without an eviction, or stay in spite of one."""
        return (self.before - self.after) ^ (self.evicted & self.before)


def moved_twice(cycles: Sequence[Moved], within: int = CYCLES) -> list[frozenset[str]]:
    """Return for each cycle the pods evicted in it that replaced another in the cycles just before, or in itself."""
    return [
        frozenset(
            pod
            for pod in moved.evicted
            if pod not in moved.before or any(pod in earlier.replacements for earlier in cycles[max(0, k - within) : k])
        )
        for k, moved in enumerate(cycles)
    ]
