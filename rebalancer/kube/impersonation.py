"""Acting as somebody else: the headers that tell this to the API server.

The `kubernetes` package leaves them out: without them a run would act with more rights than were meant.
"""

from collections.abc import Iterator
from urllib.parse import quote

from rebalancer.errors import NoCredentials
from rebalancer.kube.kubeconfig import Document
from rebalancer.kube.overrides import Overrides

#: Names with their values; a name may occur more than once.
Headers = tuple[tuple[str, str], ...]


def impersonation(user: Document, overrides: Overrides) -> Headers:
    """Return the headers for a kubeconfig's user and for the settings of the command line, which override it.

    Raises:
        NoCredentials: there are groups but no user to act as, or a name cannot be sent.
    """
    name = overrides.user or str(user.get("as") or "")
    groups = overrides.groups or _texts(user.get("as-groups"))
    extra = tuple(_extra(user.get("as-user-extra")))
    uid = () if overrides.user or not user.get("as-uid") else (("Impersonate-Uid", str(user["as-uid"])),)
    if not name and (groups or extra or uid):
        raise NoCredentials("there are groups to act in, and nobody to act as: say whom with --as")
    named = (("Impersonate-User", name),) if name else ()
    headers = (*named, *uid, *(("Impersonate-Group", each) for each in groups), *extra)
    for header, value in headers:
        if not (value.isascii() and value.isprintable()):
            raise NoCredentials(f"{header} {value!r} cannot be sent: names to act as are of ASCII characters")
    return headers


def _extra(given: object) -> Iterator[tuple[str, str]]:
    for key, values in given.items() if isinstance(given, dict) else ():
        # Header names ignore case and allow few characters; the API server decodes this encoding.
        yield from ((f"Impersonate-Extra-{quote(str(key).lower(), safe='')}", value) for value in _texts(values))


def _texts(given: object) -> tuple[str, ...]:
    return tuple(map(str, given)) if isinstance(given, list) else ()
