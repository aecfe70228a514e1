"""The demonstration in docs/demo, made on a real control plane: a plan, the question, the moves, and the plan's page.

    .venv/bin/python -m tests.e2e.demonstration      (`make demonstration`)

The program runs in a terminal of its own.  What is on its screen becomes the frames of one animated SVG, and Chromium
draws the page.
"""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyte
from rich.text import Text

from tests.browser import CHROMIUM
from tests.e2e.acts import cordon
from tests.e2e.binaries import provide
from tests.e2e.builders import deployment, node, pdb
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.functional.program import Program
from tests.functional.terminal import Terminal
from tests.terminal.pictures import svg

FOLDER = Path(__file__).parents[2] / "docs" / "demo"
COLUMNS, LINES = 112, 40
SECONDS_A_FRAME = 5
TIMEOUT = 120.0
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: 20
profiles:
  - name: even
    pluginConfig:
      - {name: DefaultEvictor, args: {nodeFit: true, minReplicas: 2}}
      - {name: LowNodeUtilization, args: {thresholds: {cpu: 30}, targetThresholds: {cpu: 60}}}
    plugins: {balance: {enabled: [LowNodeUtilization]}}
"""


@dataclass
class Cast:
    """A terminal on which commands run one after the other, and its frames."""

    folder: Path
    kubeconfig: Path
    frames: list[str] = field(default_factory=list)
    screen: pyte.Screen = field(default_factory=lambda: pyte.Screen(COLUMNS, LINES))

    def __post_init__(self) -> None:
        self._stream = pyte.Stream(self.screen)

    def run(self, command: str, answer: str = "") -> None:
        """Type a command, and answer its question if it asks one."""
        self.screen.reset()
        self.screen.set_mode(pyte.modes.LNM)
        self._stream.feed(f"$ {command}\n")
        size = {"COLUMNS": str(COLUMNS), "LINES": str(LINES), "TERM": "xterm-256color"}
        program = Program(self.folder, {**size, "KUBECONFIG": str(self.kubeconfig)})
        with Terminal(program, *command.split()[1:], cwd=self.folder, stdout=None) as terminal:
            if answer:
                self._stream.feed(terminal.read_until("[y/N/show]: "))
                self.keep()
                terminal.type(f"{answer}\n")
            done = terminal.finish()
        self._stream.feed(done.stderr)
        assert done.exit_code == 0, "\n".join(self.screen.display)
        self.keep()

    def keep(self) -> None:
        name = f"frame{len(self.frames)}"
        self.frames.append(svg(map(self._line, range(LINES)), COLUMNS, title="rebalancer", unique_id=name))

    def _line(self, row: int) -> Text:
        line = Text()
        for column in range(COLUMNS):
            char = self.screen.buffer[row][column]
            color = {"default": "", "brown": "yellow"}.get(char.fg, char.fg)
            style = " ".join(filter(None, ["bold" if char.bold else "", f"#{color}" if _is_hex(color) else color]))
            line.append(char.data, style=style or None)
        line.rstrip()
        return line


def _is_hex(color: str) -> bool:
    return bool(re.fullmatch("[0-9a-f]{6}", color))


def animated(frames: list[str]) -> str:
    """Return one SVG that shows frames in turn; without animation the last one is seen."""
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', frames[0])
    assert size
    count, total = len(frames), len(frames) * SECONDS_A_FRAME
    share = 100 / count
    shown = f"0%, {share:.3f}% {{ visibility: visible }} {share + 0.001:.3f}%, 100% {{ visibility: hidden }}"
    style = f"@keyframes turn {{ {shown} }}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[1]} {size[2]}"><style>{style}</style>']
    for place, frame in enumerate(frames):
        delay = f"animation: turn {total}s steps(1) {place * SECONDS_A_FRAME - total}s infinite"
        parts.append(f'<g style="{delay}">{frame}</g>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def fill(controlplane: ControlPlane) -> None:
    """Make four nodes, of which two have all the pods: the others have just come back."""
    namespace = Namespace(controlplane.api, "shop")
    namespace.create(*(node(name) for name in ("node-1", "node-2", "node-3", "node-4")))
    cordon(controlplane.api, "node-3", "node-4")
    for name in ("web", "cart", "search"):
        namespace.create(deployment(name, replicas=8, cpu="300m"), pdb(name, min_available=6))
        namespace.wait_ready(8, name)
        namespace.wait_budget(name, allowed=2)
    cordon(controlplane.api, "node-3", "node-4", on=False)


def main() -> None:
    with ControlPlane(provide()) as controlplane, TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "even.yaml").write_text(POLICY)
        fill(controlplane)
        cast = Cast(folder, controlplane.kubeconfig)
        cast.run("rebalancer plan --policy even.yaml --out plan.json")
        cast.run("rebalancer apply plan.json --policy even.yaml", answer="y")
        cast.run("rebalancer run --policy even.yaml --dry-run")
        cast.run("rebalancer report plan.json --out plan.html")
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / "cast.svg").write_text(animated(cast.frames))
        if CHROMIUM:
            shot = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            shot += ["--window-size=1000,760", f"--screenshot={FOLDER / 'page.png'}", (folder / "plan.html").as_uri()]
            subprocess.run(shot, check=True, timeout=TIMEOUT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
