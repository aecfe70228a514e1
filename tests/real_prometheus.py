"""A real Prometheus on the loopback, with a past that the test writes or an exporter that it scrapes.

    with RealPrometheus(folder, [Series("up", {"instance": "n1"}, lambda age: 1.0)]) as server:
        server.url

The programs `prometheus` and `promtool` come with Debian's package `prometheus`; `python -m tests.real_prometheus`
installs it where apt-get may.
"""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import pytest
import yaml

from tests.commands import run
from tests.make import NOW
from tests.ports import free_port, serving

PROGRAMS = ("prometheus", "promtool")
#: Seconds between two samples of a past.
INTERVAL = 15
_TIMEOUT = 120


def missing() -> str:
    """Return why no real Prometheus can be started; empty if one can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"there is no {' and no '.join(absent)}: apt-get install prometheus" if absent else ""


needed = pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")


@dataclass(frozen=True)
class Series:
    """A series of a past: `value` by the seconds before `NOW` gives its samples, None leaves a gap."""

    name: str
    labels: Mapping[str, str]
    value: Callable[[int], float | None]
    seconds: int = 1500
    interval: int = INTERVAL

    def lines(self, now: datetime) -> Iterator[str]:
        labels = ",".join(f"{name}={json.dumps(value)}" for name, value in self.labels.items())
        for age in range(self.seconds, -1, -self.interval):
            value = self.value(age)
            if value is not None:
                yield f"{self.name}{{{labels}}} {value} {now.timestamp() - age:.3f}"


@dataclass
class RealPrometheus:
    """See the module.  `folder` takes its data.

    `options` are more of its own, `rules` files of rules that it evaluates every second.
    Scraped every second are `targets`, host:port of exporters, and `instances`, full URLs by the label `instance`.
    """

    folder: Path
    past: Iterable[Series] = ()
    targets: tuple[str, ...] = ()
    instances: Mapping[str, str] = field(default_factory=dict)
    now: datetime = NOW
    options: tuple[str, ...] = ()
    rules: tuple[Path, ...] = ()
    port: int = field(default_factory=free_port)
    _open: ExitStack = field(default_factory=ExitStack)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._write_past()
        log = self.folder / "prometheus.log"
        self._open.enter_context(serving(self._command(), f"{self.url}/-/ready", log))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def query(self, query: str, time: float | None = None) -> list[dict[str, object]]:
        """Return the instant vector of a query, asked directly."""
        at = {} if time is None else {"time": str(time)}
        return self.ask(f"query?{urlencode({'query': query, **at})}")["result"]

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=_TIMEOUT) as answer:
            return json.load(answer)["data"]

    def _command(self) -> list[str]:
        config = {"scrape_configs": [self._job()]} if self.targets or self.instances else {}
        config |= {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}}
        config |= {"rule_files": [str(each) for each in self.rules]}
        (self.folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        return [
            "prometheus",
            f"--config.file={self.folder}/prometheus.yaml",
            f"--storage.tsdb.path={self.folder}/data",
            "--storage.tsdb.retention.time=20y",
            f"--web.listen-address=127.0.0.1:{self.port}",
            *self.options,
        ]

    def _job(self) -> dict[str, object]:
        static: list[dict[str, object]] = [{"targets": list(self.targets)}]
        for instance, url in self.instances.items():
            parts = urlsplit(url)
            labels = {"instance": instance, "__scheme__": parts.scheme, "__metrics_path__": parts.path}
            static.append({"targets": [parts.netloc], "labels": labels})
        tls = {"insecure_skip_verify": True}
        return {"job_name": "nodes", "honor_labels": True, "tls_config": tls, "static_configs": static}

    def _write_past(self) -> None:
        by_name: dict[str, list[str]] = {}
        for series in self.past:
            by_name.setdefault(series.name, []).extend(series.lines(self.now))
        if not by_name:
            return
        lines = [line for name, samples in by_name.items() for line in (f"# TYPE {name} gauge", *samples)]
        written = self.folder / "past.om"
        written.write_text("\n".join([*lines, "# EOF", ""]))
        # By default it reads all samples again for every two hours of them.
        make = ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=200h", "openmetrics"]
        files = [str(written), str(self.folder / "data")]
        run(*make, *files)


def install() -> None:
    if missing():
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", "prometheus"]):
            subprocess.run(["apt-get", *command], check=True, env=environ)


if __name__ == "__main__":
    install()
