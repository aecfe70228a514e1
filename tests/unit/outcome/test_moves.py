"""Whether a pod was moved again too soon, and whether all that went was evicted."""

from itertools import pairwise

from tests.outcome.moves import Moved, moved_twice


def cycles(*names):
    """Cycles from the pods before each and after the last; what is gone was evicted."""
    steps = [frozenset(each.split()) for each in names]
    return [Moved(before, before - after, after) for before, after in pairwise(steps)]


def test_a_replacement_evicted_in_the_next_cycles_was_moved_twice():
    """Up to three cycles after it came; the pod that came for it is another."""
    for quiet in range(3):
        history = cycles("a", *["b"] * (quiet + 1), "c")

        assert moved_twice(history)[-1] == {"b"}


def test_a_replacement_may_move_after_three_cycles():
    """Four cycles after it came it is a pod like others."""
    history = cycles("a", "b", "b", "b", "b", "c")

    assert not any(moved_twice(history))


def test_pods_that_were_there_from_the_start_are_moved_once():
    """However many of an owner's pods go, as long as they are different ones."""
    assert not any(moved_twice(cycles("a b c", "b c d", "c d e", "d e f")))


def test_a_pod_that_came_and_went_in_one_cycle_was_moved_twice():
    """An eviction of a pod that was not there before the cycle is a second move."""
    moved = Moved(frozenset("a"), frozenset("ab"), frozenset("c"))

    assert moved_twice([moved]) == [{"b"}]
    assert not moved.unexplained


def test_what_goes_without_an_eviction_is_told():
    """A pod that was deleted, and one that stays in spite of an eviction, are both unexplained."""
    assert Moved(frozenset("ab"), frozenset("a"), frozenset("cd")).unexplained == {"b"}
    assert Moved(frozenset("ab"), frozenset("a"), frozenset("ab")).unexplained == {"a"}
    assert not Moved(frozenset("ab"), frozenset("a"), frozenset("bc")).unexplained
