"""A requirement, and what was measured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """A requirement and what was measured; without `holds` it is only reported."""

    requirement: str
    measured: str
    holds: bool | None = None

    def __str__(self) -> str:
        """Tell in one line."""
        word = {True: "holds", False: "FAILS", None: "     "}[self.holds]
        return f"{word}  {self.requirement}: {self.measured}"


def at_most(what: str, measured: float, limit: float) -> Verdict:
    """Return the verdict on a figure that must not be above a limit."""
    return Verdict(f"{what}, at most {limit:g}", f"{measured:g}", measured <= limit)
