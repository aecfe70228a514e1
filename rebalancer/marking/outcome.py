"""What came of one evaluation: for reports, pages and exit codes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rebalancer.marking.evaluation import Evaluation
from rebalancer.marking.pressure import Marks, RuleAnswer
from rebalancer.marking.rules import MarkingRules


@dataclass(frozen=True, slots=True)
class MarkingOutcome:
    """One evaluation, and what was written after it.

    Attributes:
        run: the name of the run.
        dry_run: whether nothing was written.
        cluster: context and server.
        now: the time of the evaluation.
        rules: what was gone by; None if nothing was evaluated.
        nodes: how many nodes took part.
        answers: by rule.
        evaluation: what follows from them.
        before: the marks that nodes carried before.
        changes: by node: `marked`, `changed`, `renewed` or `cleared`.
        problems: why a node was not changed, by its name.
        skipped: why nothing was evaluated; empty if it was.
        warnings: what the reader should know.
    """

    run: str
    dry_run: bool
    cluster: Mapping[str, str | None]
    now: datetime
    rules: MarkingRules | None = None
    nodes: int = 0
    answers: Mapping[str, RuleAnswer] = field(default_factory=dict)
    evaluation: Evaluation = Evaluation({})  # noqa: RUF009  it is frozen
    before: Marks = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    skipped: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def succeeded(self) -> bool:
        """Whether all rules are known and all changes were made."""
        return not (self.evaluation.unknown or self.problems)

    @property
    def source_problem(self) -> str:
        """Why rules are not known; empty if all are."""
        return "; ".join(f"rule {name}: {why}" for name, why in self.evaluation.unknown.items())

    def nodes_by_rule(self) -> Mapping[str, int]:
        """Return how many nodes each rule marks."""
        found = Counter(each.rule for pressures in self.evaluation.marks.values() for each in pressures)
        return {name: found[name] for name in self.answers}
