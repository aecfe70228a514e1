"""Reminding controllers of their work, while a test waits for it.

The controllers of ReplicaSets and StatefulSets in 1.36 do nothing until their cache has their own last write
(`read version ... is not as new as written version`), and try again later and later, as each of the pods' changes
counts as one more try in vain: after the restart of an API server it may take a quarter of an hour, although the
cache caught up long ago.  A change of the object itself is looked at at once.
"""

import time
from collections.abc import Callable

from tests.e2e.api import Api, ApiError
from tests.e2e.waiting import TIMEOUT, ClusterDeadlineError, T, wait_for

#: Longer than any wait takes while all goes well, and much shorter than the deadlines.
INTERVAL = 15.0  # seconds
ANNOTATION = "e2e/reminded"


def wait_for_controllers(
    api: Api, namespace: str, condition: Callable[[], T | None], what: str, deadline: float = TIMEOUT
) -> T:
    """Wait for what controllers of a namespace have to do, and remind them now and then.

    Raises:
        ClusterDeadlineError: The condition was still false at the deadline.
    """
    reminded = time.monotonic()

    def settled() -> T | None:
        nonlocal reminded
        seen = condition()
        if not seen and time.monotonic() > reminded + INTERVAL:
            remind(api, namespace)
            reminded = time.monotonic()
        return seen

    return wait_for(settled, what, deadline, error=ClusterDeadlineError)


def remind(api: Api, namespace: str) -> None:
    """Change an annotation of each ReplicaSet and StatefulSet."""
    for kind in ("ReplicaSet", "StatefulSet"):
        for each in api.list(kind, namespace):
            try:
                mark = {"metadata": {"annotations": {ANNOTATION: str(time.monotonic())}}}
                api.patch(kind, each["metadata"]["name"], namespace, mark)
            except ApiError as error:
                if error.status != 404:
                    raise
