"""What the documents say is true: commands run, tables are complete, figures come from the program.

What docs/differences.md says is shown: each of its rows names a test, which runs with all others.
"""

import inspect
import re
import shlex

import pytest
from click.testing import CliRunner

from rebalancer.cli.main import main
from rebalancer.policy.evictor import DEFAULT_EVICTOR
from strategies import BUILTIN
from tests.commands import ROOT
from tests.fake_api_server import FakeApiServer
from tests.functional.objects import old_pods, two_nodes_with
from tests.terminal.screen import on_screen

DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
#: Everything that is written for people.
PAGES = [
    *DOCUMENTS,
    *(ROOT / "docs/measurements").glob("*.md"),
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "chart/README.md", "image/README.md")),
    *(ROOT / name for name in ("examples/kubernetes/README.md", "tests/e2e/README.md", "tests/outcome/README.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: Commands as they are typed in the folder of the checkout.
IN_THE_CHECKOUT = re.findall(
    r"^\$ (\.venv/bin/rebalancer .*)$|`(\.venv/bin/rebalancer [^`\n]+)`",
    (ROOT / "README.md").read_text(),
    re.MULTILINE,
)
#: Commands that need a cluster, and programs that are not ours: shown, not run here.
ELSEWHERE = ("--dry-run", "kubectl", "make", "pip", "rebalancer snapshot")


def blocks(path, language):
    return [body for kind, body in BLOCK.findall(path.read_text()) if kind == language]


def commands():
    """Document, command and the output shown below it, of each `$ rebalancer` line that can run here.

    Those of migrating.md need a cluster, one after the other: tests/e2e/test_migrating.py runs them.
    """
    found = []
    for path in (path for path in DOCUMENTS if path.name != "migrating.md"):
        for block in blocks(path, "console"):
            for part in block.split("$ ")[1:]:
                command, _, output = part.partition("\n")
                if command.startswith("rebalancer") and not any(word in command for word in ELSEWHERE):
                    found.append((path.name, command, output.strip()))
    return found


def invoke(command, monkeypatch, folder):
    """Run a command in a folder that holds the files the documents speak of."""
    for path in DOCUMENTS:
        for body in blocks(path, "yaml"):
            if body.startswith("# ") and body.split("\n", 1)[0].endswith(".yaml"):
                file = folder / body.split("\n", 1)[0][2:]
                file.parent.mkdir(exist_ok=True)
                file.write_text(body)
    for example in (ROOT / "examples").glob("*.json"):
        (folder / example.name).write_text(example.read_text())
    monkeypatch.chdir(folder)
    return CliRunner().invoke(main, shlex.split(command)[1:])


@pytest.mark.parametrize(("document", "command", "output"), commands())
def test_commands_in_documents_work(document, command, output, tmp_path, monkeypatch):
    """Every command runs as written, and prints what stands below it."""
    result = invoke(command, monkeypatch, tmp_path)

    assert result.exit_code == 0, result.output
    assert output in "\n".join(line.rstrip() for line in result.stdout.splitlines())


@pytest.mark.parametrize("command", [first or second for first, second in IN_THE_CHECKOUT])
def test_commands_in_the_checkout_work_as_written(command, tmp_path, monkeypatch):
    """Those that name no file meet a cluster, as the kubeconfig says; nothing is changed there."""
    with FakeApiServer(two_nodes_with(*old_pods("a"))) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path)))
        result = invoke(command, monkeypatch, tmp_path)

    assert result.exit_code == 0, result.output
    assert not server.sent("POST", "*")


def test_the_policy_of_the_readme_is_in_the_checkout():
    """Beside a command to look at one's own cluster, one to check a policy, and one to plan offline."""
    (shown,) = re.findall(r"```yaml\n# examples/policy.yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    assert shown == (ROOT / "examples/policy.yaml").read_text()
    assert len(IN_THE_CHECKOUT) >= 3


def test_the_readme_shows_what_the_demo_prints():
    """The text on the first screen is the program's own output, on a terminal."""
    shown = re.search(r"<!-- demo -->\n```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    plain = on_screen("run", "--policy", "demo", "--snapshot", "examples/cluster.json", columns=120).text

    assert shown
    pieces = [piece.strip() for piece in re.split(r"\n\.\.\.\n|\n\n", shown[1]) if piece.strip()]
    assert pieces
    for piece in pieces:
        assert piece in plain


def test_every_strategy_and_every_argument_of_the_evictor_is_named():
    """In the README with its extension point, and in the guide."""
    readme, guide = ((ROOT / name).read_text() for name in ("README.md", "docs/usage-guide.md"))

    assert [each.name for each in BUILTIN if f"| {each.name} | {each.point} |" not in readme] == []
    arguments = (field.alias for field in DEFAULT_EVICTOR.args.model_fields.values())
    assert [each for each in arguments if f"`{each}`" not in guide] == []


def test_every_strategy_is_measured_and_attacked():
    """Those that a newcomer adds as well."""
    texts = {name: (ROOT / name).read_text() for name in ("tests/bench/policy.yaml", "tests/attack/random_clusters.py")}

    assert [f"{each.name} in {name}" for each in BUILTIN for name in texts if each.name not in texts[name]] == []


def test_the_strategies_that_evict_at_once_are_those_that_list_their_pods():
    """`--max-parallel` has an effect for no other."""
    text = (ROOT / "docs/command-line.md").read_text()
    (listed,) = re.findall(r"strategies that list their pods beforehand: (.*?)\.", text)

    named = [each.name for each in BUILTIN if "evict.each(" in inspect.getsource(inspect.getmodule(each))]
    assert re.findall(r"\w{4,}", listed) == named


def anchors(path):
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """A link within the project names a file that is there, and a heading in it."""
    for link in re.findall(r"\]\(([^):]+)\)", page.read_text()):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page

        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)` \|$")


def rows():
    lines = (ROOT / "docs/differences.md").read_text().splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith("| here |")]


@pytest.mark.parametrize("row", rows())
def test_each_difference_names_a_test(row):
    """A row that names none, or one that is gone, is a claim without proof."""
    named = _NAMED.search(row)

    assert named
    assert f"def {named[2]}(" in (ROOT / named[1]).read_text()
