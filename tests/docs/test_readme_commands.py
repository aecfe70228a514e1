"""The README's commands work as they are written, in the folder of the checkout."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, run
from tests.fake_api_server import FakeApiServer
from tests.functional.objects import old_pods, two_nodes_with

README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^\$ (\.venv/bin/rebalancer .*)$|`(\.venv/bin/rebalancer [^`\n]+)`", README, re.MULTILINE)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The checkout's folder, with the program where make puts it and the file that kubectl would have written."""
    for each in ROOT.iterdir():
        if not each.name.startswith("."):
            (tmp_path / each.name).symlink_to(each)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    program = tmp_path / ".venv/bin/rebalancer"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rebalancer "$@"\n')
    program.chmod(0o755)
    (tmp_path / "cluster.json").write_text((ROOT / "examples/cluster.json").read_text())
    return tmp_path


@pytest.mark.parametrize("command", [first or second for first, second in COMMANDS])
def test_a_command_works_as_written(command: str, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Those that name no file meet a cluster, as the kubeconfig says."""
    with FakeApiServer(two_nodes_with(*old_pods("a"))) as server:
        kubeconfig = server.kubeconfig(tmp_path_factory.mktemp("home"))
        run(*shlex.split(command), cwd=checkout, env={"KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(ROOT)})

    assert not server.sent("POST", "*")


def test_there_are_commands() -> None:
    """One to look at one's own cluster, one to check a policy, and one to plan offline."""
    assert len(COMMANDS) >= 3


def test_the_policy_of_the_readme_is_in_the_checkout() -> None:
    (shown,) = re.findall(r"```yaml\n# examples/policy.yaml\n(.*?)```", README, re.DOTALL)

    assert shown == (ROOT / "examples/policy.yaml").read_text()
