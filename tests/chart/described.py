"""The values of the chart as values.yaml describes them, and what is written from them and from the templates.

`python -m tests.chart.described` writes the table of chart/README.md and the manifests in examples/kubernetes anew.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from tests.chart.helm import CHART, ROOT, rendered

VALUES = CHART / "values.yaml"
README = CHART / "README.md"
_TABLE = re.compile(r"(?<=<!-- values -->\n).*?(?=<!-- end of values -->)", re.DOTALL)
_LONGEST = 60


@dataclass(frozen=True)
class Value:
    path: str
    default: object
    comment: str


def described() -> list[Value]:
    """Return all values that have a comment, in order; a map without one is a group of values."""
    lines = VALUES.read_text().splitlines()
    root = yaml.compose(VALUES.read_text())
    return list(_values(root, lines, ""))


def _values(node: yaml.Node, lines: list[str], prefix: str) -> Iterator[Value]:
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        comment = _comment(lines, key.start_mark.line)
        if comment:
            yield Value(path, _plain(value), comment)
        # Only groups, and maps whose keys are described one by one, are gone into.
        if isinstance(value, yaml.MappingNode) and (not comment or _described(value, lines)):
            yield from _values(value, lines, f"{path}.")


def _described(node: yaml.MappingNode, lines: list[str]) -> bool:
    return any(_comment(lines, key.start_mark.line) for key, _ in node.value)


def _comment(lines: list[str], line: int) -> str:
    found: list[str] = []
    while line and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].strip("# "))
    return " ".join(found)


def _plain(node: yaml.Node) -> object:
    return yaml.SafeLoader("").construct_object(node, deep=True)


def table() -> str:
    rows = [f"| `{value.path}` | {_shown(value.default)} | {value.comment} |\n" for value in described()]
    return "".join(["| value | default | meaning |\n|---|---|---|\n", *rows])


def _shown(default: object) -> str:
    if default is None:
        return ""
    text = json.dumps(default)
    return f"`{text}`" if len(text) <= _LONGEST else "see values.yaml"


def shown_table() -> str:
    found = _TABLE.search(README.read_text())
    assert found
    return found[0]


FOLDER = ROOT / "examples" / "kubernetes"
_IMAGE = "image: {repository: registry.example/kube-rebalancer}\n"
#: kubectl does not keep it up to date.
_CHECKSUM = re.compile(r"^ +annotations:\n +checksum/config:.*\n", re.MULTILINE)
_OF_HELM = ("app.kubernetes.io/managed-by:", "helm.sh/chart:", "# Source:")


def examples() -> Mapping[str, str]:
    return {
        "rbac.yaml": _of("", "serviceaccount", "rbac"),
        "policy.yaml": _of("", "configmap"),
        **{f"{kind.lower()}.yaml": _of(f"kind: {kind}", kind.lower()) for kind in ("CronJob", "Job", "Deployment")},
    }


def _of(values: str, *templates: str) -> str:
    shown = [part for name in templates for part in ("--show-only", f"templates/{name}.yaml")]
    lines = _CHECKSUM.sub("", rendered(f"{_IMAGE}{values}", *shown)).splitlines()
    kept = [line for line in lines if not line.strip().startswith(_OF_HELM)]
    return "\n".join([*kept[1:], ""])


def main() -> None:
    README.write_text(_TABLE.sub(lambda _: table(), README.read_text()))
    for name, text in examples().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
