"""A plan (`apiVersion: rebalancer/v1, kind: Plan`): the moves of a dry run, in order, and their premises.

A plan is handed from one person to another, so it is read with doubt: sizes and types are checked, and all errors are
told at once.  Its keys are an interface (policies/schema/plan-v1.json).  For people there is a summary in
Markdown, and the difference of two plans.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Annotated, Any, Literal

import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from rebalancer.errors import UsageError
from rebalancer.policy.arguments import duration_text
from rebalancer.policy.document import read_document
from rebalancer.policy.findings import Findings
from rebalancer.policy.moving import Hold
from rebalancer.report.layout import plural
from rebalancer.untrusted.address import without_userinfo
from rebalancer.untrusted.documents import MISTAGGED, check_yaml, in_words
from rebalancer.untrusted.printable import printable

#: More moves than any cluster needs in one cycle.
MOST_MOVES = 200_000
LONGEST, MOST_BUDGETS = 4_096, 64  # characters of a text, PDBs of a pod
_ERRORS = 20
#: Moves that a summary lists.
_MOST_ROWS = 50
_REDACTED = "(left out)"
#: Keys of a policy that may hold a secret in so many words; references to Secrets and files hold none.
_SECRETS = frozenset({"token", "password", "bearertoken"})
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Text = Annotated[str, StringConstraints(max_length=LONGEST)]


class _Part(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,  # JSON has no such numbers
        defer_build=True,
    )


class PlannedOwner(_Part):
    """The controller of a pod."""

    kind: Text
    name: Text


class PlannedDestination(_Part):
    """Where a replacement is expected, as in a report."""

    nodes: tuple[Name, ...] = Field(max_length=64)
    more: int = Field(0, ge=0)
    share: tuple[float, ...] = Field((), max_length=64)


class PlannedBudget(_Part):
    """A PodDisruptionBudget of a pod, and how many evictions it allowed."""

    name: Name
    allowed: int


class PlannedMove(_Part):
    """A pod that is to go, and the premises on which that was decided.

    Attributes:
        wave: in which wave of its strategy, counted from 1; None where the policy does not steer.
        reason: why, in words.
        cause: why, as a code with figures: for a node over target what it used, and the target.
        budgets: the PDBs that select the pod.
    """

    namespace: Name
    name: Name
    uid: Name
    resource_version: Text = ""
    node: Text
    owner: PlannedOwner | None = None
    profile: Text
    strategy: Name
    wave: int | None = None
    reason: Text
    cause: dict[str, Any] = Field(default_factory=dict, max_length=64)
    destination: PlannedDestination | None = None
    budgets: tuple[PlannedBudget, ...] = Field((), max_length=MOST_BUDGETS)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def lands(self) -> tuple[str, ...]:
        """The nodes where the replacement is expected."""
        return self.destination.nodes if self.destination else ()

    @property
    def likely(self) -> str:
        """The first of these nodes; empty if none is known."""
        return ", ".join(self.lands[:3])


class PlannedNode(_Part):
    """A node before the plan and after it, in percent by resource."""

    strategy: Name
    name: Name
    before: dict[str, float | None]
    after: dict[str, float | None]


class PlanPolicy(_Part):
    """The policy without credentials, and the hash of the whole of it."""

    name: Text
    hash: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
    document: Any = None


class PlanOptions(_Part):
    """What the command line said besides the policy."""

    steer: bool = False
    hold: Annotated[Hold, PlainSerializer(duration_text)] | None = None
    max_evictions: int | None = Field(None, ge=0)


class Plan(_Part):
    """A plan.

    Attributes:
        created: the time of the snapshot, by which the age of the plan counts.
        program: the version that made it.
        cluster: `uid` is that of the namespace kube-system; empty where it could not be read.
        protections: by profile, the protections that were asked, by name.
        nodes: those that a strategy compared.
        targets: by strategy, above which percentage nodes lose pods.
    """

    api_version: Literal["rebalancer/v1"] = "rebalancer/v1"
    kind: Literal["Plan"] = "Plan"
    created: AwareDatetime
    program: Text
    cluster: dict[Name, Text | None] = Field(max_length=16)
    policy: PlanPolicy
    options: PlanOptions = PlanOptions()
    protections: dict[Text, tuple[Name, ...]] = Field(default_factory=dict, max_length=1_000)
    moves: tuple[PlannedMove, ...] = Field(max_length=MOST_MOVES)
    nodes: tuple[PlannedNode, ...] = Field((), max_length=MOST_MOVES)
    targets: dict[Name, dict[Name, float]] = Field(default_factory=dict, max_length=1_000)
    warnings: tuple[Text, ...] = Field((), max_length=10_000)

    def document(self) -> dict[str, Any]:
        """Return the plan as plain values, in the order of its keys."""
        return self.model_dump(mode="json", by_alias=True)

    def picked(self, only: Iterable[str], exclude: Iterable[str]) -> tuple[PlannedMove, ...]:
        """Return the moves whose `namespace/name` matches a shell pattern of `only`, if any, and none of `exclude`."""
        wanted, unwanted = tuple(only), tuple(exclude)
        return tuple(
            move
            for move in self.moves
            if (not wanted or any(fnmatchcase(str(move), each) for each in wanted))
            and not any(fnmatchcase(str(move), each) for each in unwanted)
        )


def read_plan(text: str, name: str) -> Plan:
    """Read a plan, `name` in messages, from JSON or YAML; raises UsageError with every problem and its place."""
    try:
        document = _parsed(text)
    except (ValueError, RecursionError, yaml.YAMLError, *MISTAGGED) as error:
        raise UsageError(f"plan {name} cannot be read: {in_words(error).splitlines()[0]}") from None
    if not isinstance(document, Mapping) or document.get("kind") != "Plan":
        kind = f" but of the kind {str(document.get('kind'))[:40]!r}" if isinstance(document, Mapping) else ""
        raise UsageError(f"{name} is not a plan{kind}: write one with `rebalancer plan --out FILE`")
    try:
        plan = Plan.model_validate(document)
    except ValidationError as error:
        raise UsageError(told(name, error)) from None
    if len({move.uid for move in plan.moves}) != len(plan.moves):
        raise UsageError(f"plan {name} cannot be used: it names a pod twice")
    return plan


def _parsed(text: str) -> Any:
    if text.lstrip().startswith("{"):
        return json.loads(text)
    check_yaml(yaml.parse(text, _LOADER))
    return yaml.load(text, _LOADER)  # noqa: S506  a safe loader


def told(name: str, error: ValidationError) -> str:
    """Return what is wrong with a plan: the first problems, each with its place."""
    problems = error.errors(include_url=False, include_input=False)
    words = [each["msg"].lower().removeprefix("value error, ") for each in problems[:_ERRORS]]
    lines = [f"  {'.'.join(map(str, each['loc']))}: {said}" for each, said in zip(problems, words, strict=False)]
    more = [f"  and {len(problems) - _ERRORS} more"] if len(problems) > _ERRORS else []
    return "\n".join([f"plan {name} cannot be used:", *lines, *more])


def policy_hash(text: str) -> str:
    """Return the hash of a policy's content: comments and the order of keys do not count."""
    content = json.dumps(_content(text), sort_keys=True)
    return f"sha256:{sha256(content.encode()).hexdigest()}"


def plan_policy(name: str, text: str) -> PlanPolicy:
    """Return what a plan holds of a policy: its content without credentials."""
    return PlanPolicy(name=printable(name), hash=policy_hash(text), document=_redacted(_content(text)))


def _content(text: str) -> Any:
    return read_document(text, Findings()).plain()  # as the policy itself is read


def _redacted(value: Any, key: str = "") -> Any:
    """Return a part of a policy without user and password of URLs, and without what is called a token."""
    if isinstance(value, Mapping):
        return {name: _redacted(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_redacted(each, key) for each in value]
    if isinstance(value, str):
        return _REDACTED if key.lower() in _SECRETS else without_userinfo(value)
    return value


def markdown(plan: Plan) -> Iterator[str]:
    """Yield the lines of a summary for the description of a pull request."""
    yield f"### Plan: {plural(len(plan.moves), 'pod')} to evict"
    yield ""
    yield f"Policy `{_cell(plan.policy.name)}` (`{plan.policy.hash[:19]}`), cluster as of {plan.created.isoformat()}."
    yield ""
    if plan.moves:
        yield "| pod | from | likely to | strategy | why |"
        yield "|---|---|---|---|---|"
    for move in plan.moves[:_MOST_ROWS]:
        cells = (str(move), move.node, move.likely, move.strategy, move.reason)
        yield f"| {' | '.join(map(_cell, cells))} |"
    if len(plan.moves) > _MOST_ROWS:
        yield f"\nand {len(plan.moves) - _MOST_ROWS} more."
    for warning in plan.warnings:
        yield f"\n> {_cell(warning)}"


def _cell(text: str) -> str:
    """Return a text as a cell of a table: names and reasons are what others wrote."""
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", printable(text))


Moves = Sequence[PlannedMove]


def moves_apart(first: Plan, second: Plan) -> tuple[Moves, Moves, Sequence[tuple[PlannedMove, PlannedMove]]]:
    """Return the moves of the first plan alone, of the second, and of both (by UID) that land elsewhere."""
    one, two = ({move.uid: move for move in plan.moves} for plan in (first, second))
    return (
        [move for uid, move in one.items() if uid not in two],
        [move for uid, move in two.items() if uid not in one],
        [(move, two[uid]) for uid, move in one.items() if uid in two and move.lands != two[uid].lands],
    )


def difference(first: Plan, second: Plan) -> dict[str, Any]:
    """Return what tells two plans apart, as plain values: moves, and how full each node is in the end, by resource."""
    only_first, only_second, elsewhere = moves_apart(first, second)
    before, after = ({node.name: node.after for node in plan.nodes} for plan in (first, second))
    return {
        "apiVersion": "rebalancer/v1",
        "kind": "PlanDifference",
        "onlyFirst": [each.model_dump(mode="json", by_alias=True) for each in only_first],
        "onlySecond": [each.model_dump(mode="json", by_alias=True) for each in only_second],
        "elsewhere": [
            {
                **one.model_dump(include={"namespace", "name", "uid"}),
                "first": list(one.lands),
                "second": list(two.lands),
            }
            for one, two in elsewhere
        ],
        "nodes": [
            {"name": name, "first": dict(before.get(name, {})), "second": dict(after.get(name, {}))}
            for name in sorted({*before, *after})
        ],
    }


def difference_lines(first: Plan, second: Plan) -> Iterator[str]:
    """Yield the same for people."""
    only_first, only_second, elsewhere = moves_apart(first, second)
    if not (only_first or only_second or elsewhere):
        yield "The two plans make the same moves."
    for sign, moves in (("-", only_first), ("+", only_second)):
        for move in moves:
            yield f"{sign} {move}  {move.node} -> {move.likely or '?'}  {move.strategy}: {move.reason}"
    for one, two in elsewhere:
        yield f"~ {one}  {one.node} -> {one.likely or '?'}, then {two.likely or '?'}"
    left, right = _courses(first), _courses(second)
    for name in sorted({*left, *right}):
        if left.get(name) != right.get(name):
            yield f"  {name}: {left.get(name) or 'unknown'} by the first, {right.get(name) or 'unknown'} by the second"


def _courses(plan: Plan) -> dict[str, str]:
    """Return the course of each node, of one strategy after the other."""
    found: dict[str, list[str]] = {}
    for node in plan.nodes:
        found.setdefault(node.name, []).append(_course(node))
    return {name: "; ".join(filter(None, each)) for name, each in found.items()}


def _course(node: PlannedNode) -> str:
    """Return how full a node is before and after: a plan by requests and one by usage begin with other figures."""
    known = [(name, node.before.get(name), share) for name, share in node.after.items()]
    return ", ".join(f"{name} {was:.0f} -> {will:.0f} %" for name, was, will in known if None not in (was, will))


if __name__ == "__main__":  # for `make schema`
    print(json.dumps(Plan.model_json_schema(by_alias=True), indent=2))  # noqa: T201
