"""Files that people write, read as text up to a largest size."""

from rebalancer.errors import UsageError
from rebalancer.untrusted.documents import LARGEST_SETTINGS, Unreadable, read_input


def settings_text(name: str, what: str) -> str:
    """Return the text of a file, `-` for standard input.

    Args:
        name: the file.
        what: what messages call it, like `policy`.

    Raises:
        FileNotFoundError: there is no such file.
        UsageError: it cannot be read.
    """
    try:
        return read_input(name, LARGEST_SETTINGS).decode()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"{what} {name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {name} cannot be read: it is not text in UTF-8 ({error.reason})") from error
    except Unreadable as error:
        raise UsageError(f"{what} {name} cannot be read: {error}") from error
