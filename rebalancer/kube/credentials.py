"""Credentials, as the `kubernetes` package loads them: token, exec plugin, client certificate, service account.

Importing this module imports that package, which takes half a second: only `config.connect` does it, when needed.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException, load_kube_config_from_dict
from kubernetes.config.incluster_config import InClusterConfigLoader

from rebalancer import __version__
from rebalancer.errors import NoCredentials
from rebalancer.kube import kubeconfig as files
from rebalancer.kube.answers import cut
from rebalancer.kube.endpoint import Endpoint, endpoint_of
from rebalancer.kube.exec_plugin import answered
from rebalancer.kube.impersonation import Headers, impersonation
from rebalancer.kube.overrides import Overrides
from rebalancer.kube.proxies import credentials_for, trouble_with
from rebalancer.kube.server import addressed
from rebalancer.untrusted.address import read_plainly
from rebalancer.untrusted.exchange import cuttable

#: What the `kubernetes` package understands.
_AUTH_PROVIDERS = ("gcp", "oidc")

USER_AGENT = f"rebalancer/{__version__}"


@dataclass(frozen=True, slots=True)
class Access:
    """A pool of connections and the credentials that go with it.

    Attributes:
        configuration: the `kubernetes` package's own.
        pool: the `kubernetes` package's own, with its TLS settings and proxies.
        endpoint: the API server that the pool leads to.
        acting_as: the headers for impersonation.
        expires: when the credentials end; None where that is not known.
    """

    configuration: Configuration
    pool: urllib3.PoolManager
    endpoint: Endpoint
    acting_as: Headers = ()
    expires: datetime | None = None

    @property
    def proxy(self) -> str:
        """The address of the proxy on the way, with its password; empty if none is used."""
        is_used = getattr(self.pool, "proxy", None) is not None
        return str(self.configuration.proxy) if is_used else ""

    def has_expired(self) -> bool:
        """Return whether the credentials have expired."""
        return self.expires is not None and datetime.now(UTC) >= self.expires

    def headers(self) -> urllib3.HTTPHeaderDict:
        """Return the headers of the next request.

        Raises:
            NoCredentials: the token cannot be read, or cannot be sent.
        """
        token = self._authorization()
        headers = urllib3.HTTPHeaderDict(
            {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": USER_AGENT}
        )
        for name, value in self.acting_as:
            headers.add(name, value)
        if token:
            headers["Authorization"] = token
        return headers

    def _authorization(self) -> str:
        with _as_no_credentials("the credentials cannot be read"):
            token = self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization") or ""
        if not (token.isascii() and token.strip().isprintable()):
            raise NoCredentials(
                "the token has characters that are not allowed in a token: check the file it comes from"
            )
        return token.strip()


def from_files(
    kubeconfig: str | None, context: str, environ: Mapping[str, str], overrides: Overrides, seconds: float
) -> Access:
    """Load a kubeconfig's context, from the files as they are now.

    Args:
        kubeconfig: the explicit file, if any.
        context: the context's name.
        environ: the environment.
        overrides: settings of the command line, which override the kubeconfig.
        seconds: how long a plugin may take, if that is less than by the command line.

    Raises:
        NoCredentials: there is no such context any more, or it cannot be used.
    """
    found = files.find(kubeconfig, environ)
    if found is None:
        raise NoCredentials("the kubeconfig is gone")
    chosen = addressed(found.only(context))
    _demand_known(chosen)
    acting_as = impersonation(chosen.user, overrides)
    if overrides.insecure:
        chosen = replace(chosen, cluster=_unverified(chosen.cluster))
    ready = answered(chosen, min(seconds, overrides.exec_seconds))
    configuration = Configuration()
    with _as_no_credentials(f"context {context!r} of {chosen.files} cannot be used"):
        load_kube_config_from_dict(  # type: ignore[no-untyped-call]  # the package types its client only
            ready.chosen.document(), context=context, client_configuration=configuration
        )
    return _access(configuration, acting_as, ready.expires)


def from_pod(environ: Mapping[str, str], service_account: Path, overrides: Overrides) -> Access:
    """Load the service account of the pod in which this process runs.

    Args:
        environ: the environment.
        service_account: the folder with its token and certificate.
        overrides: settings of the command line, which override the service account.

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
    if overrides.insecure:
        configuration.verify_ssl, configuration.ssl_ca_cert = False, None
    return _access(configuration, impersonation({}, overrides))


def _unverified(cluster: files.Document) -> files.Document:
    """Return the cluster without checks of its certificate; like kubectl's flag, this drops certificate-authority."""
    kept = {key: value for key, value in cluster.items() if not key.startswith("certificate-authority")}
    return kept | {"insecure-skip-tls-verify": True}


def _access(configuration: Configuration, acting_as: Headers, expires: datetime | None = None) -> Access:
    if not configuration.verify_ssl:
        # The kubeconfig asks for it (insecure-skip-tls-verify): one warning per request would not help.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    urllib3.disable_warnings(urllib3.exceptions.DependencyWarning)  # without PySocks there is an error that says it
    with _as_no_credentials("the connection cannot be set up"):
        try:
            configuration.proxy_headers = credentials_for(str(configuration.proxy or ""))
            pool = cuttable(ApiClient(configuration).rest_client.pool_manager)
            access = Access(configuration, pool, endpoint_of(configuration), acting_as, expires)
            read_plainly(access.proxy)
        except (ImportError, ValueError):  # a proxy that NO_PROXY makes superfluous may be a bad one
            if proxy := configuration.proxy:
                raise NoCredentials(trouble_with(str(proxy))) from None
            raise
        return access


def _demand_known(chosen: files.Chosen) -> None:
    """Check the auth-provider now: one that is not supported would only show later, as a refused request.

    Raises:
        NoCredentials: the auth-provider is not supported.
    """
    provider = chosen.user.get("auth-provider")
    if isinstance(provider, dict) and provider.get("name") not in _AUTH_PROVIDERS:
        raise NoCredentials(
            f"{chosen.files}: the user of context {chosen.context!r} has the auth-provider {provider.get('name')!r}, "
            "which is not supported (kubectl has dropped these too): use an exec plugin or a token"
        )


@contextmanager
def _as_no_credentials(meaning: str) -> Iterator[None]:
    """Turn what the package raises on bad input into one error that names the place."""
    try:
        yield
    except (ConfigException, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # Inside the package, a file of the wrong form can raise any of the last four.
        raise NoCredentials(f"{meaning}: {cut(str(error))}") from error
