"""The changes that `make mutants` makes are small, real and none twice."""

import ast
from pathlib import Path

import pytest

from tests.mutants.changes import changes
from tests.mutants.equivalent import EQUIVALENT

ROOT = Path(__file__).parents[2]
SOURCE = b"""
@dataclass(frozen=True)
class Box:
    size: "int > 5" = 3

    def fits(self, other):
        logger.info("asked %d", 7)
        note("\xc3\xbc")
        return not self.full and other < self.size or f"{1 + 1}"
"""


def test_what_is_changed_and_what_is_left_alone() -> None:
    """Decisions are changed; texts, annotations, decorators and logs are not."""
    found = [(each.before, each.after) for each in changes(Path("box.py"), SOURCE)]

    whole, part = 'not self.full and other < self.size or f"{1 + 1}"', "not self.full and other < self.size"
    assert sorted(found) == sorted(
        [
            ("3", "(4)"),
            ('note("ü")', "pass"),
            (whole, "(f'{1 + 1}')"),
            (whole, f"({part})"),
            (whole, f"(({part}) and f'{{1 + 1}}')"),
            (part, "(not self.full)"),
            (part, "(other < self.size)"),
            (part, "(not self.full or other < self.size)"),
            ("not self.full", "(self.full)"),
            ("other < self.size", "(other <= self.size)"),
        ]
    )


@pytest.mark.parametrize("path", sorted((ROOT / "rebalancer/marking").glob("*.py")), ids=lambda path: path.stem)
def test_a_changed_module_is_python_and_another_one(path: Path) -> None:
    """A change that cannot be read would be noticed by any test, and one without effect by none."""
    source = path.read_bytes()
    plain = ast.dump(ast.parse(source))

    for change in changes(path, source):
        assert ast.dump(ast.parse(change.applied(source))) != plain


def test_equivalent_changes_are_still_there() -> None:
    paths = {name.partition(":")[0] for name in EQUIVALENT}
    names = {each.name for path in paths for each in changes(Path(path), (ROOT / path).read_bytes())}

    assert EQUIVALENT.keys() <= names
