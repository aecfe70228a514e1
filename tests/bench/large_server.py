"""An API server with a large cluster, whose pages are made beforehand and which grants every eviction.

    python -m tests.bench.large_server NODES PODS FOLDER

It writes a kubeconfig into the folder, says where, and serves until its standard input ends.
"""

import sys
import time
from pathlib import Path

import msgspec

from tests.bench.large_cluster import Object, cluster
from tests.fake_api_server import FakeApiServer
from tests.fake_http import Reply, Request
from tests.fake_kinds import path_of

PAGE = 500
PATHS = {kind: path_of(kind) for kind in ("Node", "Pod", "PodDisruptionBudget")}
#: A real server writes to etcd before it answers.
EVICTION_SECONDS = 0.005
GRANTED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def pages(kind: str, items: list[Object]) -> list[bytes]:
    """Return the pages of a list; the token of the next one is its number."""
    starts = range(0, len(items), PAGE)
    version = items[0]["apiVersion"]
    made = []
    for number, start in enumerate(starts, start=1):
        more = {"continue": str(number)} if number < len(starts) else {}
        metadata = {"resourceVersion": "1", **more}
        page = {
            "kind": f"{kind}List",
            "apiVersion": version,
            "metadata": metadata,
            "items": items[start : start + PAGE],
        }
        made.append(msgspec.json.encode(page))
    return made


class LargeServer(FakeApiServer):
    def __init__(self, nodes: int, pods: int) -> None:
        items = cluster(nodes, pods)["items"]
        super().__init__([each for each in items if each["kind"] not in PATHS])
        found = {path: [each for each in items if each["kind"] == kind] for kind, path in PATHS.items()}
        self._pages = {path: pages(kind, found[path]) for kind, path in PATHS.items()}

    def reply(self, request: Request) -> Reply:
        if request.method == "GET" and request.path in self._pages:
            return Reply(200, self._pages[request.path][int(request.query.get("continue", "0"))])
        if request.method == "POST" and request.path.endswith("/eviction"):
            time.sleep(EVICTION_SECONDS)
            return Reply(201, GRANTED)
        return super().reply(request)


if __name__ == "__main__":
    with LargeServer(*map(int, sys.argv[1:3])) as running:
        sys.stdout.write(f"{running.kubeconfig(Path(sys.argv[3]))}\n")
        sys.stdout.flush()
        sys.stdin.read()
        running.requests.clear()
