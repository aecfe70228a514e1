"""No function and no module of the product grows beyond what a reader takes in at once; no two classes share a name."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = {
    str(path.relative_to(ROOT)): path.read_text()
    for folder in ("rebalancer", "strategies")
    for path in (ROOT / folder).rglob("*.py")
}

#: Lines.
LONGEST_BODY = 31
LONGEST_MODULE = 400  # the whole of one subject in one place reads better than four files with one importer each


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, from its first statement to its last; the docstring does not count."""
    statements = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1 if statements else 0


def functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def test_no_body_of_a_function_is_longer_than_31_lines() -> None:
    """One that is longer does more than one thing."""
    long = {
        f"{name}: {each.name}": lines
        for name, source in SOURCES.items()
        for each in functions(source)
        if (lines := body_lines(each)) > LONGEST_BODY
    }

    assert not long


def test_no_module_is_longer_than_400_lines() -> None:
    """One that is longer holds more than its first line says.  Without any module all this would pass as well."""
    lines = {name: source.count("\n") for name, source in SOURCES.items()}

    assert not {name: count for name, count in lines.items() if count > LONGEST_MODULE}
    assert len(lines) > 100


def test_lines_are_counted_from_the_first_statement_to_the_last() -> None:
    """Docstring and signature do not count; blank lines and nested functions do."""
    function = next(
        functions('def f(\n    a,\n):\n    """Two\n    lines."""\n    b = a\n\n    def g(): ...\n    return b\n')
    )

    assert body_lines(function) == 4


def test_no_two_classes_have_one_name() -> None:
    statements = [each for source in SOURCES.values() for each in ast.parse(source).body]
    names = Counter(each.name for each in statements if isinstance(each, ast.ClassDef))

    assert not [name for name, count in names.items() if count > 1]
