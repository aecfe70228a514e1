"""A file that is written completely or not at all, and that only its owner may read."""

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file with mode 0600; an older one stays as it is until the new one is complete.

    What is not a file, like /dev/stdout, is written to directly; a pipe only where somebody reads it.

    Raises:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():
        _write_to_device(path, content)
        return
    target = path.resolve()  # a link stays a link
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:_LONGEST_PREFIX]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    finally:
        with suppress(FileNotFoundError):  # it was renamed to the target
            Path(name).unlink()


def _write_to_device(path: Path, content: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # a pipe without a reader would block for ever
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe that nobody reads") from None
        raise
    os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


#: How much of the file's name the temporary file's name takes over: a name may have at most 255 bytes.
_LONGEST_PREFIX = 40
