"""`rebalancer record` collects what `recommend` reads, whoever else writes and whatever ends it."""

import gzip
import resource
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.run.sample_folder import append, packed_sheet, sheets

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
FEW = ("--min-days", "1", "--min-samples", "1", "-o", "json", "--peak", "00:00-24:00")
METRICS = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics"}


def pod(name, **usage):
    containers = [{"name": container, "usage": amounts} for container, amounts in usage.items()]
    return {**METRICS, "metadata": {"name": name, "namespace": "shop"}, "containers": containers}


@pytest.fixture
def record(rebalancer, server, tmp_path):
    """Record what a server's metrics-server knows, if there is one."""
    return lambda *options: rebalancer.at(server, "record", "--out", tmp_path / "samples", *options)


def test_a_sample_is_appended_and_can_be_read_by_hand(server, record, tmp_path):
    """One sheet for each run, in the file of the day; a container without both amounts is left out.

    Files of days that are too long ago are removed, by the day in the name; what is not ours stays.
    """
    used, idle = {"cpu": "120300201n", "memory": "65540Ki"}, {"cpu": "0", "memory": "1Mi"}
    server.add(pod("web-5d8f7b9c64-x2x7k", app=used, proxy=idle), pod("db-0", app={"cpu": "5m"}))
    out = tmp_path / "samples"
    out.mkdir()
    today, newer, older = (f"recorded-{datetime.now(UTC) - timedelta(days=age):%Y%m%d}.txt.gz" for age in (0, 7, 12))
    for name in (older, newer, "notes-20200101.txt"):
        (out / name).touch()
    for _ in range(2):
        outcome = record("--keep", "240h")
        assert outcome.exit_code == 0, outcome.stderr

    assert {each.name for each in out.iterdir()} == {newer, today, "notes-20200101.txt"}
    assert "2 containers recorded" in outcome.stdout
    lines = gzip.decompress((out / today).read_bytes()).decode().splitlines()
    assert lines[0].startswith("# rebalancer record 20")
    assert lines[1:4] == [
        "NAMESPACE POD NAME CPU(cores) MEMORY(bytes)",
        "shop web-5d8f7b9c64-x2x7k app 121m 65540Ki",
        "shop web-5d8f7b9c64-x2x7k proxy 0m 1024Ki",
    ]
    assert len(lines) == 8


def test_a_clock_that_is_months_ahead_removes_nothing(server, record, tmp_path):
    """All that was collected would be too old; so it is after a long break, until the next day."""
    server.add(pod("db-0", app={"cpu": "5m", "memory": "1Mi"}))
    out = tmp_path / "samples"
    out.mkdir()
    names = {f"recorded-{datetime.now(UTC) - timedelta(days=age):%Y%m%d}.txt.gz" for age in (200, 150, 120)}
    for name in names:
        (out / name).touch()

    assert record().exit_code == 0

    assert {each.name for each in out.iterdir()} >= names


def test_a_cluster_without_metrics_server_is_told(record, tmp_path):
    outcome = record()

    assert outcome.exit_code == 3
    assert "metrics-server" in outcome.stderr
    assert not (tmp_path / "samples").exists()


def sheet(minute, pods=("web-5d8f7b9c64-x2x7k",), cpu=100, day=NOW):
    return packed_sheet(day + timedelta(minutes=minute), [f"shop {name} app {cpu}m 65536Ki" for name in pods])


def test_two_writers_lose_nothing(tmp_path):
    path = tmp_path / "recorded-20260115.txt.gz"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda minute: append(path, sheet(minute)), range(200)))

    torn = []
    assert sorted(time for time, _ in sheets(path.read_bytes(), torn)) == [
        int((NOW + timedelta(minutes=each)).timestamp()) for each in range(200)
    ]
    assert not torn


@pytest.mark.parametrize("length", [3, 9, 12, 40, -1])
def test_half_a_sheet_costs_no_other(tmp_path, length):
    """A writer was killed in the middle, and others went on: `recommend` says so and reads the rest."""
    path = tmp_path / "recorded-20260115.txt.gz"
    path.write_bytes(sheet(0) + sheet(1)[:length] + sheet(2) + sheet(3)[:length])
    torn = []

    found = [time for time, _ in sheets(path.read_bytes(), torn)]

    assert found == [int((NOW + timedelta(minutes=each)).timestamp()) for each in (0, 2)]
    assert len(torn) == 2


def test_a_full_disk_takes_nothing(tmp_path):
    """The file is cut back, so that nothing is torn; here the largest size of a file ends the write."""
    path = tmp_path / "recorded-20260115.txt.gz"
    append(path, sheet(0))
    whole = path.read_bytes()
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 30, most))
    try:
        with pytest.raises(Exception, match="File too large"):
            append(path, whole)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))

    assert path.read_bytes() == whole


HEADING = "NAMESPACE POD NAME CPU(cores) MEMORY(bytes)"
OURS, NEW = "web-5d8f7b9c64-x2x7k", ("web-7f6d5c4b22-k4k4k",)
CLOCKS = (NOW, NOW + timedelta(minutes=9), NOW + timedelta(minutes=4), datetime(2199, 1, 1, tzinfo=UTC))
#: By what is in a folder: what was recorded, files of `kubectl top` by minute, how many samples count, what is said.
FOLDERS = {
    "beside files of kubectl top, and a sheet that is torn": (
        sheet(0) + sheet(5)[:30] + sheet(10),
        {30: f"shop {OURS} app 1m 1Mi"},
        {"web": 3},
        f"recorded-20260115.txt.gz: 1 sheet not whole, the first at byte {len(sheet(0))}",
    ),
    "a clock of the far future, and of years ago; one that was set back a little is in order": (
        b"".join(sheet(0, day=day) for day in (*CLOCKS, datetime(2001, 1, 1, tzinfo=UTC))),
        {},
        {"web": 3},
        "2 sheets from a wrong clock, the first in recorded-20260115.txt.gz: 2199-01-01T00:00Z",
    ),
    "text that was not packed, a figure without end, half a line": (
        b"# rebalancer record 2026-01-15T12:00:00Z",
        {30: f"shop {OURS} app 1m {'9' * 400}Mi\nshop \nshop {OURS} app 1m 1Mi"},
        {"web": 1},
        "recorded-20260115.txt.gz: 1 sheet not whole, the first at byte 0",
    ),
    "a rollout, which replaces all pods": (sheet(0) + sheet(5) + sheet(10, NEW) + sheet(15, NEW), {}, {"web": 4}, ""),
}


@pytest.mark.parametrize(("recorded", "tops", "samples", "words"), FOLDERS.values(), ids=FOLDERS)
def test_recommend_reads_what_was_recorded(rebalancer, tmp_path, recorded, tops, samples, words):
    """All samples count; what does not is named."""
    (tmp_path / "recorded-20260115.txt.gz").write_bytes(recorded)
    for minute, lines in tops.items():
        (tmp_path / f"top-20260115{1200 + minute}00.txt").write_text(f"{HEADING}\n{lines}\n")

    outcome = rebalancer("recommend", "--samples", tmp_path, *FEW)

    assert {each["name"]: each["samples"] for each in outcome.report["containers"]} == samples
    assert words in outcome.stderr


def test_a_day_may_be_longer_than_one_answer_of_a_server(rebalancer, tmp_path, monkeypatch):
    """1,500 nodes fill 256 MiB a day at a sheet every five minutes; that is the bound of each sheet."""
    monkeypatch.setattr("rebalancer.run.sample_folder.LARGEST_PAGE", 200)
    (tmp_path / "recorded-20260115.txt.gz").write_bytes(b"".join(map(sheet, range(20))))

    outcome = rebalancer("recommend", "--samples", tmp_path, *FEW)

    assert {each["name"]: each["samples"] for each in outcome.report["containers"]} == {"web": 20}
    assert "cannot be read" not in outcome.stderr
