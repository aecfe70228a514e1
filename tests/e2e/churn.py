"""Pods that come and go all the time, beside the program: a cluster that is in use."""

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Self

from tests.e2e.api import Api, ApiError
from tests.e2e.builders import pod

# Seconds between two acts of one kind, so that the test leaves the control plane time for the rest.
PACE = 0.4
# What the API server says of a pod that is gone, has changed, or may not go now; 504 where its PDB changes too often.
EXPECTED = frozenset({404, 409, 429, 504})


class Churn:
    """Creates, deletes, scales and evicts pods in threads of its own, from `with` on to its end.

    Args:
        api: The tests' own client.
        namespace: Where.
        free: Names of ReplicaSets to scale up and down, and to delete pods of.
        guarded: Names of ReplicaSets whose pods are evicted, as another program would, within their PDBs.
        replicas: The size around which ``free`` ones are scaled.

    Attributes:
        done: How often each act succeeded.
    """

    def __init__(self, api: Api, namespace: str, free: Sequence[str], guarded: Sequence[str], replicas: int) -> None:
        self._api = api
        self._namespace = namespace
        self._free = free
        self._guarded = guarded
        self._replicas = replicas
        self._random = random.Random(1)
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self._problems: list[Exception] = []
        acts = (self._create_and_delete, self._delete, self._scale, self._evict)
        self._threads = [threading.Thread(target=self._repeat, args=(act,), daemon=True) for act in acts]
        self.done: Counter[str] = Counter()

    def __enter__(self) -> Self:
        """Begin."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End, and raise what went wrong."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._problems and kind is None:
            raise self._problems[0]

    def _repeat(self, act: Callable[[], str]) -> None:
        while not self._stop.wait(PACE):
            try:
                self.done[act()] += 1
            except ApiError as error:
                if error.status not in EXPECTED:
                    self._problems.append(error)
                    return
            except Exception as error:  # noqa: BLE001  raised again in the test's own thread
                self._problems.append(error)
                return

    def _create_and_delete(self) -> str:
        """Make a pod without an owner, and delete one that was made some time before."""
        number = next(self._numbers)
        self._api.create(pod(f"loose-{number}"), self._namespace)
        if number >= 20:
            self._api.delete("Pod", f"loose-{number - 20}", self._namespace, grace=0)
        return "pods without an owner made and deleted"

    def _delete(self) -> str:
        self._api.delete("Pod", self._some_pod(self._free), self._namespace)
        return "pods deleted"

    def _scale(self) -> str:
        replicas = self._replicas + self._random.randrange(-2, 3)
        name = self._random.choice(self._free)
        self._api.patch("ReplicaSet", name, self._namespace, {"spec": {"replicas": replicas}})
        return "ReplicaSets scaled"

    def _evict(self) -> str:
        self._api.evict(self._some_pod(self._guarded), self._namespace)
        return "pods evicted by another"

    def _some_pod(self, apps: Sequence[str]) -> str:
        app = self._random.choice(apps)
        pods = self._api.list("Pod", self._namespace, labelSelector=f"app={app}", limit=20)
        return str(self._random.choice(pods)["metadata"]["name"]) if pods else "none"
