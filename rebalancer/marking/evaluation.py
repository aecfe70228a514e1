"""From readings to marks: which nodes are shown to be under pressure, since when and until when.

1. Each rule by itself.  A node is marked when its lowest reading is above `above`, cleared when its highest is below
   `below`.  In between it stays as it is.
2. A node without a reading keeps its mark until that expires, and gets no new one.  If half of the nodes or more have
   none, the rule is not known: this holds for all nodes then.
3. If all nodes would be marked, none is: there is nothing to prefer.
4. Of more nodes than `maxNodes` allows the hottest are marked.

How hot a node is: its value, divided by the bound that it has to pass to change.  With above 80 and below 70, an
unmarked node at 88 counts 1.1 (88/80), and a marked one at 80 counts 1.14 (80/70) and stays: two nodes that are about
as hot do not take turns.

Example: six nodes, maxNodes 50%, above 80.  Four are at 95, 90, 85 and 82: the first three are marked.  All six above
80: none is.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf

from rebalancer.marking.rules import MarkingRules, PressureRule

_WHOLE = 100


@dataclass(frozen=True, slots=True)
class PressureReading:
    """What a rule measures on one node: at present, and at the lowest and highest over the time that it calls `for`."""

    value: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, value: float) -> "PressureReading":
        """Return the reading of a rule that goes by the present value alone."""
        return cls(value, value, value)


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What is known of one rule."""

    readings: Mapping[str, PressureReading] = field(default_factory=dict)  # by node; a node without a sample is absent
    problem: str = ""  # why nothing is known, as when the source does not answer; empty if something is
    source: str = ""  # which was asked, where there is a problem
    missing: Mapping[str, str] = field(default_factory=dict)  # why a node has no reading, where the source says so
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pressure:
    """One rule that marks one node: since when, until when unless renewed, and the value when it was written."""

    rule: str
    since: datetime
    until: datetime
    value: float


#: The rules that mark each node, in the order of the file; a node without one is absent.
Marks = Mapping[str, tuple[Pressure, ...]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What follows from the readings."""

    marks: Marks
    left_out: tuple[str, ...] = ()  # nodes under pressure that are not marked, since `maxNodes` allows no more; by name
    all_pressed: bool = False  # whether all nodes are under pressure, so that none is marked
    unknown: Mapping[str, str] = field(default_factory=dict)  # why a rule is not known, by its name


@dataclass(frozen=True, slots=True)
class MarkingOutcome:
    """One evaluation, and what was written after it."""

    run: str
    dry_run: bool
    cluster: Mapping[str, str | None]
    now: datetime
    rules: MarkingRules | None = None  # what was gone by; None if nothing was evaluated
    nodes: int = 0  # how many nodes took part
    answers: Mapping[str, RuleAnswer] = field(default_factory=dict)
    evaluation: Evaluation = Evaluation({})
    changes: Mapping[str, str] = field(default_factory=dict)  # by node: `marked`, `changed`, `renewed` or `cleared`
    problems: Mapping[str, str] = field(default_factory=dict)  # why a node was not changed, by its name
    skipped: str = ""  # why nothing was evaluated; empty if it was
    warnings: tuple[str, ...] = ()

    @property
    def succeeded(self) -> bool:
        """Whether all rules are known and all changes were made."""
        return not (self.evaluation.unknown or self.problems)

    def nodes_by_rule(self) -> Mapping[str, int]:
        """Return how many nodes each rule marks."""
        found = Counter(each.rule for pressures in self.evaluation.marks.values() for each in pressures)
        return {name: found[name] for name in self.answers}


def evaluate(
    rules: MarkingRules, nodes: Collection[str], answers: Mapping[str, RuleAnswer], standing: Marks, now: datetime
) -> Evaluation:
    """Return the marks that nodes should carry; those that are not scheduled to keep theirs until they expire.

    `standing` are the marks that nodes carry now; `now` is in whole seconds, as marks are written.
    """
    unknown = {name: why for name in rules.rules if (why := _unknown(answers[name], nodes))}
    known = {name: answers[name].readings for name in rules.rules if name not in unknown}
    cases = {}
    for node in {*nodes, *standing}:
        readings = {name: found[node] for name, found in known.items() if node in found}
        valid = {each.rule: each for each in standing.get(node, ()) if each.until > now}
        cases[node] = _Case(rules, readings, {name: valid[name] for name in rules.rules if name in valid}, now)
    pressed = {node: found for node in sorted(nodes) if (found := cases[node].pressures())}
    elsewhere = {node: found for node in standing if node not in nodes and (found := (*cases[node].standing.values(),))}
    if pressed and len(pressed) == len(nodes):
        return Evaluation(elsewhere, all_pressed=True, unknown=unknown)
    hottest = sorted(pressed, key=lambda node: (-cases[node].heat(), node))
    most = len(nodes) * rules.max_nodes // _WHOLE
    marked = {node: pressed[node] for node in hottest[:most]}
    return Evaluation(elsewhere | marked, tuple(sorted(hottest[most:])), unknown=unknown)


def _unknown(answer: RuleAnswer, nodes: Collection[str]) -> str:
    if answer.problem:
        return answer.problem
    known = sum(node in answer.readings for node in nodes)
    return f"only {known} of {len(nodes)} nodes have a sample" if nodes and 2 * known <= len(nodes) else ""


@dataclass(frozen=True, slots=True)
class _Case:
    """What is known of one node: readings by rule, where there is one, and valid marks in the order of the file."""

    rules: MarkingRules
    readings: Mapping[str, PressureReading]
    standing: Mapping[str, Pressure]
    now: datetime

    def pressures(self) -> tuple[Pressure, ...]:
        found = (self._pressure(name, rule) for name, rule in self.rules.rules.items())
        return tuple(each for each in found if each)

    def heat(self) -> float:
        """Return how hot the node is; infinite where a mark without a reading has to stay."""
        heats = [inf for name in self.standing if name not in self.readings]
        for name, reading in self.readings.items():
            rule = self.rules.rules[name]
            heats.append(reading.value / (rule.below if name in self.standing else rule.above))
        return max(heats)

    def _pressure(self, name: str, rule: PressureRule) -> Pressure | None:
        reading, standing = self.readings.get(name), self.standing.get(name)
        if reading is None:
            return standing
        if standing and not reading.highest < rule.below:
            if self.rules.expiry / 2 < standing.until - self.now <= self.rules.expiry:
                return standing  # as it is while half of its time is left: watchers see each write
            return replace(standing, until=self.now + self.rules.expiry, value=reading.value)
        if reading.lowest > rule.above:
            return Pressure(name, self.now, self.now + self.rules.expiry, reading.value)
        return None
