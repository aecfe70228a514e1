"""Keeps the answers of a source, so that no question is asked twice."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from rebalancer.errors import SourceError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def ask_once(ask: Callable[[K], T]) -> Callable[[K], T]:
    """Return a function that asks each question once, and keeps the answer, or the error if there was no answer."""
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
