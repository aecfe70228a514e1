"""Large files are read once, and their memory is given back as they are used."""

import os
import threading
from pathlib import Path

import pytest

from rebalancer.untrusted.documents import Copied, Unreadable, read_large

MEGABYTE = 1 << 20


def test_what_was_used_is_given_back_and_the_rest_stays(tmp_path: Path):
    path = tmp_path / "cluster.json"
    path.write_bytes(b"x" * 40 * MEGABYTE)

    content = read_large(str(path), 1 << 30)
    assert isinstance(content, Copied)
    for _ in range(30):
        content.done_with(MEGABYTE - 1)  # a byte less than used: nothing that is still to be read may be lost

    given_back = content[:].rstrip(b"x")
    assert 16 * MEGABYTE <= len(given_back) <= 30 * (MEGABYTE - 1)
    assert not given_back.strip(b"\0")
    assert len(content) == 40 * MEGABYTE


def test_a_pipe_is_read_once_and_to_its_end(tmp_path: Path):
    """As in `--snapshot <(kubectl ...)`."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"y" * 3 * MEGABYTE,))
    writer.start()

    assert read_large(str(path), 1 << 30) == b"y" * 3 * MEGABYTE
    writer.join()


def test_a_file_above_the_limit_is_not_read(tmp_path: Path):
    path = tmp_path / "cluster.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(Unreadable, match="larger than 1 MiB"):
        read_large(str(path), MEGABYTE)
