"""A file that is written completely or not at all, and that only its owner may read."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file with mode 0600; an older one stays as it is until the new one is complete.

    What is not a file, like /dev/stdout, is written to directly.

    Raises:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
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


#: How much of the file's name the temporary file's name takes over: a name may have at most 255 bytes.
_LONGEST_PREFIX = 40
