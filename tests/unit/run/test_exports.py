"""Metrics that a run leaves behind: nothing that is in the way is harmed, and nothing holds the run up."""

import os
import stat
import threading

import pytest

from rebalancer.run import telemetry
from rebalancer.run.capture import write_whole
from rebalancer.run.options import ExportOptions
from rebalancer.run.telemetry import export
from rebalancer.telemetry.metrics import ProcessMetrics
from tests.fake_http import Reply
from tests.fake_servers import FakeServer


def write(path):
    export(ExportOptions(metrics_textfile=str(path)), ProcessMetrics(dry_run=False), {}, lambda: False)


def test_a_file_is_replaced_and_a_link_to_it_stays(tmp_path):
    (tmp_path / "metrics.prom").write_text("old")
    (tmp_path / "link.prom").symlink_to(tmp_path / "metrics.prom")

    write(tmp_path / "link.prom")

    assert (tmp_path / "link.prom").is_symlink()
    assert "rebalancer_" in (tmp_path / "metrics.prom").read_text()


def test_what_is_no_file_is_not_replaced(tmp_path, caplog):
    os.mkfifo(tmp_path / "pipe")

    write(tmp_path / "pipe")

    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert f"cannot be written to {tmp_path / 'pipe'}: it is not a regular file" in caplog.text


def test_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    write_whole(tmp_path / "pipe", b"x")

    assert os.read(reading, 2) == b"x"
    os.close(reading)


@pytest.mark.parametrize("part", ["headers", "body"])
def test_a_pushgateway_that_trickles_is_given_up(monkeypatch, caplog, part):
    """A byte now and then: each comes in time, the whole never does."""
    monkeypatch.setattr(telemetry, "_PUSH_SECONDS", 0.3)
    over = threading.Event()
    with FakeServer() as gateway:
        gateway.answers = lambda _: Reply(200, "", dripping=part, over=over)
        export(ExportOptions(pushgateway=gateway.url), ProcessMetrics(dry_run=False), {}, lambda: False)
        over.set()

    assert f"cannot be pushed to {gateway.url}: the Pushgateway did not answer within 0.3 s" in caplog.text
