"""Asking only once."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from rebalancer.errors import SourceError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def remembered(ask: Callable[[K], T]) -> Callable[[K], T]:
    """Return what asks each question once and then knows the answer, also if it was that there is none."""
    answers: dict[K, T] = {}
    failures: dict[K, SourceError] = {}

    def answer(question: K) -> T:
        if question in failures:
            raise failures[question]
        if question not in answers:
            try:
                answers[question] = ask(question)
            except SourceError as error:
                failures[question] = error
                raise
        return answers[question]

    return answer
