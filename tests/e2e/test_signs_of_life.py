"""Signs of life on a terminal, while a real API server is read.

Its pages say how many objects are to come, and each takes no longer than the proxy in between holds it.
"""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.builders import pod
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import everything_in
from tests.e2e.proxy import Hold, Proxy
from tests.functional.program import Program
from tests.functional.terminal import Terminal

#: One more than a page, so that there is a second one.
PODS = 501


class SecondPage(Hold):
    """Holds the second page of the pods."""

    def pass_through(self, method: str, path: str) -> None:
        """Hold the request if it continues the list."""
        if path.startswith("/api/v1/pods?") and "continue=" in path:
            super().pass_through(method, path)


@pytest.mark.usefixtures("two_nodes")
def test_objects_of_how_many_are_shown_while_they_are_read(
    controlplane: ControlPlane, namespace: Namespace, tmp_path: Path
) -> None:
    """The API server's remainingItemCount makes the whole."""
    namespace.create(*(pod(f"p{number}", spec={"schedulingGates": [{"name": "e2e/never"}]}) for number in range(PODS)))

    with (
        Proxy(controlplane, hold := SecondPage("GET", "")) as proxy,
        Terminal(*command(proxy, controlplane, namespace, tmp_path, "--dry-run")) as terminal,
    ):
        shown = terminal.read_until("reading pods: 500 of ")
        shown += terminal.read_until("\r")
        hold.release()
        outcome = terminal.finish()

    assert outcome.exit_code == 0, outcome.stderr
    there = re.search(r"reading pods: 500 of (\d+)", shown)
    assert there
    assert int(there[1]) >= PODS


def command(
    proxy: Proxy, controlplane: ControlPlane, namespace: Namespace, folder: Path, *options: str
) -> tuple[Program | str, ...]:
    """The program, on a terminal that can move its cursor, and its arguments."""
    policy = folder / "policy.yaml"
    policy.write_text(json.dumps(everything_in(namespace.name, maxNoOfPodsToEvictTotal=2)))  # JSON is YAML
    kubeconfig = proxy.kubeconfig(controlplane.kubeconfig)
    program = Program(folder, {"TERM": "xterm-256color", "KUBECONFIG": str(kubeconfig)})
    return program, "run", "--policy", str(policy), *options
