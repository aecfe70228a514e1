"""How far a run is, in words."""

import pytest

from rebalancer.run.progress import Stage


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (Stage("reading the cluster"), "reading the cluster"),
        (Stage("reading pods", 500), "reading pods: 500"),
        (Stage("reading pods", 1500, 3000), "reading pods: 1,500 of 3,000"),
        (Stage("evicting: PodLifeTime, pods", 3, at_most=20), "evicting: PodLifeTime, pods: 3, at most 20"),
        (
            Stage("evicting: PodLifeTime, pods", 3, 5, 20, lambda: 245.9),
            "evicting: PodLifeTime, pods: 3 of 5; 4:05 left",
        ),
    ],
)
def test_a_standing_in_words(standing: Stage, words: str) -> None:
    assert standing.words == words
