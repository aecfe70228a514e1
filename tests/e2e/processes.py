"""The processes of one control plane: each in a session of its own, with a log, and none left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

REAPER = Path(__file__).with_name("reaper.py")


class ProcessDiedError(Exception):
    """A process ended that should be running; the message has the end of its log."""


def tail(log: Path) -> str:
    return "\n".join(line[:160] for line in log.read_text(errors="replace").splitlines()[-15:])


class Processes:
    """Starts and kills processes by name.

    A reaper process watches over them: whatever ends this one (an exception, Ctrl-C, SIGKILL), they end too
    and ``directory`` is removed.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._reaper = subprocess.Popen(
            [sys.executable, "-E", "-S", str(REAPER), str(directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,  # out of Ctrl-C's way
            text=True,
        )

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def runs(self, name: str) -> bool:
        return name in self._running

    def tails(self) -> str:
        return "\n".join(f"--- {log.name}\n{tail(log)}" for log in sorted(self.directory.glob("*.log")))

    def start(self, name: str, command: list[str]) -> None:
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._running[name] = process
        self._tell_reaper(f"+{process.pid}")

    def check(self) -> None:
        for name, process in self._running.items():
            if process.poll() is not None:
                end = tail(self.log(name))
                raise ProcessDiedError(f"{name} ended with exit code {process.returncode}; its log ends:\n{end}")

    def kill(self, *names: str) -> None:
        """Kill these, in this order, without asking politely, and wait until they are gone."""
        processes = [self._running.pop(name) for name in names if name in self._running]
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            process.wait()
            self._tell_reaper(f"-{process.pid}")

    def pid(self, name: str) -> int:
        """Of one that runs; 0 if it does not."""
        return self._running[name].pid if name in self._running else 0

    def end(self, name: str) -> int:
        """Ask one to end, and return its exit code."""
        os.kill(self.pid(name), signal.SIGTERM)
        exit_code = self._running[name].wait(300)
        self.kill(name)
        return exit_code

    def pause(self, name: str) -> None:
        """Let a process stand still, until `resume`: those who ask it something get no answer."""
        os.killpg(self._running[name].pid, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        os.killpg(self._running[name].pid, signal.SIGCONT)

    def close(self, first: str) -> None:
        self.kill(first, *[name for name in self._running if name != first])
        if self._reaper.poll() is None:
            self._reaper.communicate()  # closes its input: its signal to clear up and end

    def _tell_reaper(self, line: str) -> None:
        assert self._reaper.stdin is not None
        self._reaper.stdin.write(line + "\n")
        self._reaper.stdin.flush()
