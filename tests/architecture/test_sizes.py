"""No function and no module of the product grows beyond what a reader takes in at once."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for folder in ("rebalancer", "strategies") for path in (ROOT / folder).rglob("*.py"))

#: Lines.
LONGEST_BODY = 31
LONGEST_MODULE = 400  # the whole of one subject in one place reads better than four files with one importer each


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, from its first statement to its last; the docstring does not count."""
    statements = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1 if statements else 0


def functions(source: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_no_body_of_a_function_is_longer_than_31_lines() -> None:
    """One that is longer does more than one thing."""
    long = {
        f"{path.relative_to(ROOT)}: {each.name}": body_lines(each)
        for path in MODULES
        for each in functions(path.read_text())
        if body_lines(each) > LONGEST_BODY
    }

    assert not long


def test_no_module_is_longer_than_400_lines() -> None:
    """One that is longer holds more than its first line says."""
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES}

    assert not {name: count for name, count in lines.items() if count > LONGEST_MODULE}


def test_lines_are_counted_from_the_first_statement_to_the_last() -> None:
    """Docstring and signature do not count; blank lines and nested functions do."""
    (function, *_) = functions(
        'def f(\n    a,\n):\n    """Two\n    lines."""\n    b = a\n\n    def g(): ...\n    return b\n'
    )

    assert body_lines(function) == 4


def test_there_is_something_to_measure() -> None:
    """An empty list would pass as well."""
    assert len(MODULES) > 100
