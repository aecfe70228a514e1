"""What nodes score in all: the plugins' scores, weighted and summed up."""

from collections.abc import Iterable, Sequence
from operator import add
from typing import NamedTuple


class Weighted(NamedTuple):
    """One plugin's scores of the feasible nodes, in their order, and the plugin's weight."""

    scores: Sequence[int]
    weight: int

    @property
    def even(self) -> bool:
        """Whether all nodes score the same."""
        return self.scores.count(self.scores[0]) == len(self.scores)


def totals(columns: Iterable[Weighted], count: int) -> Sequence[int]:
    """Return the sums of the weighted scores of `count` nodes, less a constant: columns that are even are left out.

    Sums are only compared with each other.  As a rule two or three of seven plugins score all nodes the same, no taints
    and no images for example, and each column less saves a look at all nodes.
    """
    sums: Sequence[int] | None = None
    for scores, weight in (each for each in columns if not each.even):
        if sums is None:
            sums = scores if weight == 1 else [weight * score for score in scores]
        elif weight == 1:
            sums = list(map(add, sums, scores))
        else:
            sums = [total + weight * score for total, score in zip(sums, scores, strict=True)]
    return [0] * count if sums is None else sums
