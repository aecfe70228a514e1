"""Small changes of a module's source, each of which ought to make some test fail.

A change swaps a comparison, an operator, a number or a truth value, negates a condition, or leaves a statement out.
Texts, annotations, decorators, `__repr__` and lines that only log are left alone: what they say is not a decision.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

_COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LEFT_OUT = (ast.Raise, ast.AugAssign, ast.Break, ast.Continue)


@dataclass(frozen=True)
class Change:
    """One change: where it is, and the code before and after.

    `start` and `end` are offsets into the source's UTF-8 bytes; `on` is the line on which the change begins.
    """

    path: Path
    line: int
    before: str
    after: str
    start: int
    end: int
    on: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {_shown(self.before)}  ->  {_shown(self.after)}"

    @property
    def name(self) -> str:
        """What the change is, wherever its line moves to."""
        return f"{self.path}: {_shown(self.before)} -> {_shown(self.after)} on: {self.on}"

    def applied(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def changes(path: Path, source: bytes) -> list[Change]:
    """Return every change of a module, in the order of its source."""
    lines = source.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    found = []
    for node, after in _walk(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        on = lines[node.lineno - 1].decode().strip()
        found.append(Change(path, node.lineno, source[start:end].decode(), after, start, end, on))
    return sorted(found, key=lambda change: (change.start, change.end, change.after))


def _walk(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield the nodes that can be changed, with the code that replaces each."""
    if isinstance(node, ast.expr):
        for changed in _expressions(node):
            yield node, f"({ast.unparse(changed)})"
    if isinstance(node, _LEFT_OUT) or _is_call_for_its_effect(node):
        assert isinstance(node, ast.stmt)
        yield node, "pass"
    for child in _children(node):
        yield from _walk(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node in which something is decided."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "keywords"} and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                yield child


def _is_left_alone(node: ast.AST) -> bool:
    is_repr = isinstance(node, ast.FunctionDef) and node.name == "__repr__"
    return is_repr or isinstance(node, ast.JoinedStr) or _logs(node)


def _logs(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).startswith("logger.")


def _is_call_for_its_effect(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Yield)


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in _COMPARISONS:
            yield ast.Compare(left, [_COMPARISONS[type(operator)]()], [right])
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
            yield from (_joined(operator, values[:place] + values[place + 1 :]) for place in range(len(values)))
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            yield ast.BinOp(left, _OPERATORS[type(operator)](), right)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Call(ast.Name(name), arguments, keywords) if name in _CALLS:
            yield ast.Call(ast.Name(_CALLS[name]), arguments, keywords)


def _joined(operator: ast.boolop, values: list[ast.expr]) -> ast.expr:
    return ast.BoolOp(operator, values) if len(values) > 1 else values[0]


def _shown(code: str) -> str:
    return " ".join(code.split())
