"""Processes of the program that need not import it first: a process that has imported it all forks them.

They are processes in all that a test sees: signals, streams, environment, exit code.  Importing takes longer than most
of what they do.
"""

import atexit
import ctypes
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import rebalancer
import strategies

_LARGEST = 1 << 20
_SUBREAPER = 36  # of prctl: orphans become children of this process, which can wait for them then


def start(arguments: Iterable[object], **settings: Any) -> "subprocess.Popen[Any]":
    """Start `python -m rebalancer` with these arguments; anew where it is to be what only a new process can be."""
    # `_execute_child` is private to `subprocess`; and since 3.13 streams that are not Python's own complain at the end.
    is_known = sys.platform == "linux" and sys.version_info < (3, 13)
    is_new = not is_known or "preexec_fn" in settings or "PYTHONIOENCODING" in settings["env"]
    command = [sys.executable, "-m", "rebalancer", *map(str, arguments)]
    return (subprocess.Popen if is_new else _Forked)(command, **settings)


class _Forked(subprocess.Popen):
    """A process of the program that is forked from one with all imports."""

    def _execute_child(self, args: list[str], *settings: Any) -> None:
        cwd, environment, pipes = settings[4], settings[5], settings[9:15]
        reading, _, _, writing, _, complaining = pipes
        streams = [given if given >= 0 else own for own, given in enumerate((reading, writing, complaining))]
        wanted = [args[3:], str(cwd or Path.cwd()), dict(os.environ if environment is None else environment)]
        socket.send_fds(_server(), [json.dumps(wanted).encode()], streams)
        self.pid = int(_server().recv(_LARGEST))
        self._child_created = True
        _server().recv(_LARGEST)  # only now the child is ours
        self._close_pipe_fds(*pipes)


@functools.cache
def _server() -> socket.socket:
    """Start what forks; it ends with this process, which closes the socket then."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    number = str(theirs.fileno())
    command = [sys.executable, "-m", "tests.forks", number]
    server = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=Path(__file__).parents[1])
    atexit.register(lambda: (ours.close(), server.wait()))
    theirs.close()
    return ours


def _serve(requests: socket.socket) -> None:
    """Fork for each request; return in the processes that are to be the program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for package in (rebalancer, strategies):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    importlib.import_module("rich.console")
    gc.freeze()
    while True:
        wanted, streams, _, _ = socket.recv_fds(requests, _LARGEST, 3)
        if not wanted:
            os._exit(0)
        between = os.fork()
        if between:
            os.waitpid(between, 0)
            requests.send(b"begun")
            for each in streams:
                os.close(each)
        elif pid := os.fork():  # its parent ends at once, so that it becomes a child of the tests
            requests.send(str(pid).encode())
            os._exit(0)
        else:
            requests.close()
            return _become(*json.loads(wanted), streams)


def _become(arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    """Be as a process that has just been started."""
    for own, given in enumerate(streams):
        os.dup2(given, own)
        os.close(given)
    sys.stdin, sys.stdout, sys.stderr = (
        open(own, mode, errors=errors, closefd=False)  # noqa: SIM115  they are numbers, and stay open
        for own, (mode, errors) in enumerate((("r", "strict"), ("w", "strict"), ("w", "backslashreplace")))
    )
    sys.stderr.reconfigure(line_buffering=True)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.modules["__main__"].__package__ = "rebalancer"  # by which messages call it
    sys.argv = [str(Path(rebalancer.__path__[0], "__main__.py")), *arguments]


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from rebalancer.__main__ import main

    main()
