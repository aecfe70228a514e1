"""Every query of the dashboard and every alert, asked in a real Prometheus."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from tests.chart.helm import CHART
from tests.e2e.waiting import wait_for
from tests.real_prometheus import RealPrometheus


def dashboard_queries() -> Mapping[str, str]:
    """Return the dashboard's queries by panel, for every job and the last minute."""
    panels = json.loads((CHART / "dashboards/rebalancer.json").read_text())["panels"]
    return {
        f"{panel['title']} {target['refId']}": target["expr"].replace("$job", ".*").replace("$__rate_interval", "1m")
        for panel in panels
        for target in panel["targets"]
    }


def alert_queries() -> Mapping[str, str]:
    """Return the alerts' expressions by name."""
    rules = yaml.safe_load((CHART / "rules/alerts.yaml").read_text())["groups"][0]["rules"]
    return {rule["alert"]: rule["expr"] for rule in rules}


def answers(exposition: str, folder: Path) -> Mapping[str, list[dict[str, object]]]:
    """Return what each query and each alert comes to where this was scraped, at least twice."""
    with _served(exposition) as target, RealPrometheus(folder, targets=(target,)) as prometheus:
        scraped = "count_over_time(rebalancer_build_info[1m]) > 2"
        wait_for(lambda: prometheus.query(scraped), "three scrapes")
        asked = {**dashboard_queries(), **alert_queries()}
        return {name: prometheus.query(query) for name, query in asked.items()}


def _stamped(exposition: str) -> str:
    """Return it with the time of each sample: then a scrape that comes too late ends no series."""
    now = time.time_ns() // 1_000_000
    lines = exposition.splitlines()
    return "".join(f"{line} {now}\n" if line and not line.startswith("#") else f"{line}\n" for line in lines)


@contextmanager
def _served(exposition: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(_stamped(exposition).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
