"""Every query of the dashboard and every alert, asked in a real Prometheus."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.chart.helm import CHART
from tests.e2e.waiting import wait_for
from tests.fake_http import HttpServer, Reply
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
    with (
        HttpServer(lambda _: Reply(200, _stamped(exposition))) as served,
        RealPrometheus(folder, targets=(served.url.removeprefix("http://"),)) as prometheus,
    ):
        scraped = "count_over_time(rebalancer_build_info[1m]) > 2"
        wait_for(lambda: prometheus.query(scraped), "three scrapes")
        asked = {**dashboard_queries(), **alert_queries()}
        return {name: prometheus.query(query) for name, query in asked.items()}


def _stamped(exposition: str) -> str:
    """Return it with the time of each sample: then a scrape that comes too late ends no series."""
    now = time.time_ns() // 1_000_000
    lines = exposition.splitlines()
    return "".join(f"{line} {now}\n" if line and not line.startswith("#") else f"{line}\n" for line in lines)
