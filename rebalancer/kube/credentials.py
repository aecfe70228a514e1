"""Credentials, as the `kubernetes` package loads them: token, exec plugin, client certificate, service account.

Importing this module imports that package, which costs half a second: only `config.connect` does it, and late.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException, load_kube_config_from_dict
from kubernetes.config.incluster_config import InClusterConfigLoader

from rebalancer import __version__
from rebalancer.errors import NoCredentials
from rebalancer.kube import kubeconfig as files
from rebalancer.kube.answers import cut
from rebalancer.kube.endpoint import Endpoint, endpoint_of
from rebalancer.kube.server import addressed

#: What the `kubernetes` package understands.
_AUTH_PROVIDERS = ("gcp", "oidc")

USER_AGENT = f"rebalancer/{__version__}"


@dataclass(frozen=True, slots=True)
class Access:
    """A pool of connections and the credentials that go with it.

    Attributes:
        configuration: the `kubernetes` package's own; it renews tokens that it knows to expire.
        pool: the `kubernetes` package's own, with its TLS settings and proxies.
        endpoint: the API server that the pool leads to.
        impersonation: headers for whom to act as.
    """

    configuration: Configuration
    pool: urllib3.PoolManager
    endpoint: Endpoint
    impersonation: Mapping[str, str] = field(default_factory=dict)

    def headers(self) -> dict[str, str]:
        """Return the headers of the next request.

        Raises:
            NoCredentials: the token cannot be read, or cannot be sent.
        """
        token = self._authorization()
        return {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": USER_AGENT,
            **self.impersonation,
            **({"Authorization": token} if token else {}),
        }

    def _authorization(self) -> str:
        with _as_no_credentials("the credentials cannot be read"):
            token = self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization") or ""
        if not (token.isascii() and token.strip().isprintable()):
            raise NoCredentials("the token has characters that no token has: look into the file it is from")
        return token.strip()


def from_files(kubeconfig: str | None, context: str, environ: Mapping[str, str]) -> Access:
    """Load a kubeconfig's context, from the files as they are now.

    Raises:
        NoCredentials: there is no such context any more, or it cannot be used.
    """
    found = files.find(kubeconfig, environ)
    if found is None:
        raise NoCredentials("the kubeconfig is gone")
    chosen = found.only(context)
    chosen = addressed(chosen)
    _demand_known(chosen)
    configuration = Configuration()
    with _as_no_credentials(f"context {context!r} of {chosen.files} cannot be used"), _complaints() as said:
        load_kube_config_from_dict(  # type: ignore[no-untyped-call]  # the package types its client only
            chosen.document(), context=context, client_configuration=configuration
        )
    _demand_plugin_answer(chosen, configuration, said)
    return _access(configuration, _impersonation(chosen.user))


def from_pod(environ: Mapping[str, str], service_account: Path) -> Access:
    """Load the service account of the pod that this is.

    Raises:
        NoCredentials: a file of it is missing or empty.
    """
    configuration = Configuration()
    with _as_no_credentials("the pod's service account cannot be used"):
        InClusterConfigLoader(  # type: ignore[no-untyped-call]  # the package types its client only
            token_filename=str(service_account / "token"),
            cert_filename=str(service_account / "ca.crt"),
            environ=environ,
        ).load_and_set(configuration)
    return _access(configuration, {})


def _access(configuration: Configuration, impersonation: Mapping[str, str]) -> Access:

    if not configuration.verify_ssl:
        # The kubeconfig asks for it (insecure-skip-tls-verify); a warning a request says nothing new.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    with _as_no_credentials("the connection cannot be set up"):
        pool = ApiClient(configuration).rest_client.pool_manager
        return Access(configuration, pool, endpoint_of(configuration), impersonation)


def _demand_known(chosen: files.Chosen) -> None:
    """Raise what would only show as a refused request: a way to credentials that is not there.

    Raises:
        NoCredentials: the auth-provider is not one that is understood, or the exec plugin is not installed.
    """
    user = f"{chosen.files}: the user of context {chosen.context!r}"
    provider = chosen.user.get("auth-provider")
    if isinstance(provider, dict) and provider.get("name") not in _AUTH_PROVIDERS:
        raise NoCredentials(
            f"{user} has the auth-provider {provider.get('name')!r}, which is not supported (kubectl has dropped these "
            "too): use an exec plugin or a token"
        )
    plugin = chosen.user.get("exec")
    if isinstance(plugin, dict) and plugin.get("command") and _is_missing(plugin):
        raise NoCredentials(
            f"{user} needs the exec plugin {plugin['command']}, which is not installed or not on PATH.{_hint(plugin)}"
        )


def _is_missing(plugin: files.Document) -> bool:
    given = plugin.get("env")
    variables = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    path = next((str(each.get("value")) for each in variables if each.get("name") == "PATH"), None)
    return which(str(plugin["command"]), path=path) is None


def _hint(plugin: files.Document) -> str:
    return f" {cut(str(plugin['installHint']))}" if plugin.get("installHint") else ""


def _demand_plugin_answer(chosen: files.Chosen, configuration: Configuration, said: list[str]) -> None:
    """Raise what the package only logs: an exec plugin that gave nothing."""
    plugin = chosen.user.get("exec")
    if not isinstance(plugin, dict) or configuration.api_key or configuration.cert_file:
        return
    raise NoCredentials(
        f"{chosen.files}: the exec plugin {plugin.get('command')} of context {chosen.context!r} "
        f"gave no credentials: {cut('; '.join(said)) or 'no explanation'}.{_hint(plugin)}"
    )


def _impersonation(user: files.Document) -> dict[str, str]:
    """Return the headers for a user's `as`, which the package leaves out: without them we would act as more.

    Raises:
        NoCredentials: groups or extras are asked for; they would be lost.
    """
    lost = [key for key in ("as-groups", "as-user-extra") if user.get(key)]
    if lost:
        raise NoCredentials(f"the kubeconfig's user has {lost[0]}, which is not supported: use another user")
    named = {"Impersonate-User": user.get("as"), "Impersonate-Uid": user.get("as-uid")}
    return {header: str(value) for header, value in named.items() if value}


@contextmanager
def _as_no_credentials(meaning: str) -> Iterator[None]:
    """Turn what the package raises on bad input into one error that names the place."""
    try:
        yield
    except (ConfigException, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # A file of the wrong shape shows as any of the last four inside the package.
        raise NoCredentials(f"{meaning}: {cut(str(error))}") from error


class _Complaints(logging.Handler):
    """Collects what the package logs of a failing plugin, and keeps it from being logged twice."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        if record.module != "kube_config":
            return True
        self.said.append(record.getMessage())
        return False


@contextmanager
def _complaints() -> Iterator[list[str]]:
    complaints = _Complaints()
    root = logging.getLogger()
    root.addFilter(complaints)
    # As a handler too: without any, `logging.error` would set up the logging of the whole process.
    root.addHandler(complaints)
    try:
        yield complaints.said
    finally:
        root.removeFilter(complaints)
        root.removeHandler(complaints)
