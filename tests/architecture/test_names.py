"""A class is found by its name alone: no two have the same."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def class_names() -> Counter[str]:
    sources = [path for folder in ("rebalancer", "strategies") for path in (ROOT / folder).rglob("*.py")]
    statements = [each for path in sources for each in ast.parse(path.read_text()).body]
    return Counter(each.name for each in statements if isinstance(each, ast.ClassDef))


def test_no_two_classes_have_one_name() -> None:
    assert not [name for name, count in class_names().items() if count > 1]
