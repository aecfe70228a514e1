"""The tests' own client of an API server: plain documents in and out, a time-out on every request."""

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml

from tests.e2e.waiting import wait_for
from tests.fake_kinds import path_of

Object = dict[str, Any]
Query = Mapping[str, str | int]
NO_QUERY: Query = MappingProxyType({})


class ApiError(Exception):
    def __init__(self, request: str, status: int, message: str) -> None:
        super().__init__(f"{request}: {status} {message}")
        self.status = status
        self.message = message


class Api:
    """An API server as seen through a kubeconfig that `write_kubeconfig` has written."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        (cluster,), (user,) = config["clusters"], config["users"]
        self._token = str(user["user"]["token"])
        self._server = str(cluster["cluster"]["server"])
        self._pool = urllib3.PoolManager(ca_certs=cluster["cluster"]["certificate-authority"])

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "application/json",
        query: Query = NO_QUERY,
    ) -> Object:
        """Send one request and return the decoded answer; one that is an error is raised."""
        response = self._send(method, path, query=query, body=body, content_type=content_type)
        if response.status >= 400:
            raise ApiError(f"{method} {path}", response.status, _message(response.data))
        return response.json()

    def ready(self, path: str = "/readyz") -> bool:
        """Whether the server, or the part of it that ``path`` names, says it is ready."""
        try:
            return self._send("GET", path).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def create(self, manifest: Object, namespace: str = "") -> Object:
        return self.request("POST", path_of(manifest["kind"], namespace), manifest)

    def read(self, kind: str, name: str, namespace: str = "") -> Object:
        return self.request("GET", path_of(kind, namespace, name))

    def list(self, kind: str, namespace: str = "", **query: str | int) -> list[Object]:
        return self.request("GET", path_of(kind, namespace), query=query)["items"]

    def patch(self, kind: str, name: str, namespace: str, change: Object, subresource: str = "") -> Object:
        """Merge a change into an object, or into its status when that is the ``subresource``."""
        path = path_of(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        return self.request("PATCH", path, change, "application/merge-patch+json")

    def delete(self, kind: str, name: str, namespace: str = "", grace: int | None = None) -> None:
        """Delete an object; that it is gone already is not an error."""
        options: Object = {"propagationPolicy": "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            self.request("DELETE", path_of(kind, namespace, name), options)
        except ApiError as error:
            if error.status != 404:
                raise

    def evict(self, pod: str, namespace: str, **options: object) -> None:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
        self.request("POST", path_of("Pod", namespace, pod) + "/eviction", {**eviction, "deleteOptions": options})

    def token(self, service_account: str, namespace: str, seconds: int = 600) -> str:
        """Ask for a token of a ServiceAccount, and wait until the server accepts it."""
        path = path_of("ServiceAccount", namespace, service_account) + "/token"
        token = str(self.request("POST", path, {"spec": {"expirationSeconds": seconds}})["status"]["token"])
        # The server may still go by an account of that name that is gone.
        wait_for(
            lambda: self._send("GET", "/version", token=token).status != HTTPStatus.UNAUTHORIZED,
            f"a token of {service_account} at work",
        )
        return token

    def watch(self, kind: str, namespace: str = "", seconds: int = 60, **query: str | int) -> Iterator[Object]:
        """Yield the events of a watch ({"type", "object"}) as they come, for ``seconds``."""
        query = {"watch": "true", "timeoutSeconds": seconds, **query}
        response = self._send("GET", path_of(kind, namespace), query=query, stream=True)
        try:
            if response.status >= 400:
                raise ApiError(f"watch {kind}", response.status, _message(response.data))
            yield from map(json.loads, response)
        finally:
            response.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Query = NO_QUERY,
        body: Object | None = None,
        content_type: str = "application/json",
        stream: bool = False,
        token: str = "",
    ) -> urllib3.BaseHTTPResponse:
        return self._pool.request(
            method,
            f"{self._server}{path}" + (f"?{urlencode(query)}" if query else ""),
            body=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {token or self._token}", "content-type": content_type},
            timeout=urllib3.Timeout(connect=5, read=30 + int(query.get("timeoutSeconds", 0))),
            retries=False,
            preload_content=not stream,
        )


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body[:256].decode(errors="replace")
