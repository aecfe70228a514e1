"""Ready pods counted through a watch, so that not even a moment with too few is missed."""

import threading
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Self

from tests.e2e.api import Api, Object
from tests.e2e.namespace import is_ready
from tests.e2e.waiting import wait_for
from tests.fake_kinds import path_of

LABEL = "app"
SECONDS = 3600


class ReadyWatch:
    """Follows the pods of a namespace that have an app and ``labels``, from `with` on.

    Changes are counted in the order in which the API server stored them.
    A pod counts as ready while it is Ready and not on its way out. Where the watch itself breaks off, the end of
    the `with` block raises, since something may have been missed.
    """

    def __init__(self, api: Api, namespace: str, labels: Mapping[str, str] = MappingProxyType({})) -> None:
        self._api = api
        self._namespace = namespace
        self._labels = dict(labels)
        self._selector = ",".join([LABEL, *(f"{key}={value}" for key, value in labels.items())])
        self._ready: dict[str, str] = {}
        self._version = ""
        self._stop = threading.Event()
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._follow, name="ready-watch", daemon=True)
        self.fewest: dict[str, int] = {}  # the fewest pods that were ready at any one time, by app
        self.gone: Counter[str] = Counter()  # how many pods went, by app

    def __enter__(self) -> Self:
        query = {"labelSelector": self._selector}
        listed = self._api.request("GET", path_of("Pod", self._namespace), query=query)
        self._ready = {pod["metadata"]["name"]: app_of(pod) for pod in listed["items"] if counts(pod)}
        self.fewest = dict(Counter(self._ready.values()))
        self._version = listed["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Catch up with all that has happened, and stop."""
        try:
            if error is None:
                self._catch_up()
        finally:
            self._stop.set()
        if self._problem is not None and error is None:
            raise self._problem

    def _catch_up(self) -> None:
        """Have a change of our own come through; the events before it are then counted."""
        mark = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "end-of-watch", "labels": {**self._labels, LABEL: "end-of-watch"}},
            "spec": {"containers": [{"name": "main", "image": "none"}], "schedulerName": "nobody"},
        }
        self._api.create(mark, self._namespace)
        self._api.delete("Pod", "end-of-watch", self._namespace, grace=0)
        wait_for(lambda: self.gone["end-of-watch"] or not self._thread.is_alive(), "the watch up to date")

    def _follow(self) -> None:
        query = {"labelSelector": self._selector, "resourceVersion": self._version}
        try:
            for event in self._api.watch("Pod", self._namespace, SECONDS, **query):
                if self._stop.is_set():
                    return
                self._take(event)
            self._problem = AssertionError(f"the watch ended within {SECONDS} s")
        except Exception as error:  # noqa: BLE001  raised again in the test's own thread
            self._problem = error

    def _take(self, event: Object) -> None:
        pod = event["object"]
        if event["type"] == "ERROR":
            raise AssertionError(f"the watch broke off: {pod}")
        name, app = pod["metadata"]["name"], app_of(pod)
        if event["type"] != "DELETED" and counts(pod):
            self._ready[name] = app
            return
        self.gone[app] += event["type"] == "DELETED"
        if self._ready.pop(name, None):
            left = sum(1 for each in self._ready.values() if each == app)
            self.fewest[app] = min(left, self.fewest.get(app, left))


def app_of(pod: Object) -> str:
    return str(pod["metadata"]["labels"][LABEL])


def counts(pod: Object) -> bool:
    return is_ready(pod) and "deletionTimestamp" not in pod["metadata"]
