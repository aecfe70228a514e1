"""A real browser without a screen, asked over its debugging protocol; tests that need one are skipped without it."""

import asyncio
import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tornado.websocket import websocket_connect

from tests.e2e.waiting import wait_for

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_SECONDS, _POLL = 30.0, 0.05


def _debugger(port: str, page: str) -> str | None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=_SECONDS) as answer:
        known = {each["url"]: each["webSocketDebuggerUrl"] for each in json.load(answer)}
    return known.get(page)


@contextmanager
def _running(page: str) -> Iterator[str]:
    """Start the browser with a page, and yield the address of the page's debugger."""
    assert CHROMIUM
    with tempfile.TemporaryDirectory() as profile:
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        process = subprocess.Popen([*command, f"--user-data-dir={profile}", page], stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr
            line = next(each for each in process.stderr if each.startswith("DevTools listening on "))
            port = line.split(":")[2].split("/")[0]
            yield wait_for(lambda: _debugger(port, page), "the page in the browser", _SECONDS)
        finally:
            process.terminate()
            process.communicate(timeout=_SECONDS)


def evaluated(page: str, scripts: Sequence[str]) -> list[Any]:
    """Return what these scripts give in a page, one after the other."""

    async def ask(address: str) -> list[Any]:
        socket = await websocket_connect(address)

        async def value(script: str) -> Any:
            parameters = {"expression": script, "returnByValue": True}
            await socket.write_message(json.dumps({"id": 1, "method": "Runtime.evaluate", "params": parameters}))
            answer = json.loads(await socket.read_message())
            return answer["result"]["result"].get("value")

        while not await value(f"location.href === {json.dumps(page)} && document.readyState === 'complete'"):  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
        found = [await value(script) for script in scripts]
        socket.close()
        await socket.read_message()  # the end of the stream: the connection is closed
        return found

    with _running(page) as address:
        return asyncio.run(asyncio.wait_for(ask(address), _SECONDS))
