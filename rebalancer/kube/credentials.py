"""Credentials, as the `kubernetes` package loads them: token, exec plugin, client certificate, service account.

Importing this module imports that package, which takes half a second: only `config.connect` does it, when needed.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException, load_kube_config_from_dict
from kubernetes.config.incluster_config import InClusterConfigLoader

from rebalancer import __version__
from rebalancer.errors import NoCredentials
from rebalancer.kube.answers import cut
from rebalancer.kube.config import UNUSABLE, ChosenContext, Document, Overrides, extensions, find, named
from rebalancer.kube.exec_plugin import answered
from rebalancer.untrusted.address import AmbiguousUserinfo, credentials_for, read_address, read_plainly, shown
from rebalancer.untrusted.exchange import cuttable

#: The credentials in a kubeconfig's user.
_CREDENTIALS = (
    *("token", "tokenFile", "username", "password", "exec", "auth-provider"),
    *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
)


def addressed(chosen: ChosenContext) -> ChosenContext:
    """Return the context with its server's address ready for use: without userinfo and blanks.

    Over plain http no credentials are sent, and no plugin is run, unless the cluster's entry allows it by
    `extensions: [{name: rebalancer, extension: {allowTokenOverHTTP: true}}]`.
    """
    server = str(chosen.cluster.get("server") or "")
    place = f"{chosen.files}: the server of context {chosen.context!r}"
    try:
        address = read_address(server)
    except AmbiguousUserinfo as error:
        raise NoCredentials(f"{place}: {error}") from None
    except ValueError:
        raise NoCredentials(f"{place} is {shown(server)!r}, which is not an https:// address") from None
    given = [key for key in _CREDENTIALS if chosen.user.get(key)]
    if address.has_userinfo:
        given.append("what the address has before its @")
    ours = extensions(chosen.cluster, "rebalancer")
    is_allowed = any(isinstance(each, dict) and each.get("allowTokenOverHTTP") is True for each in ours)
    if given and not address.is_encrypted and not is_allowed:
        raise NoCredentials(
            f"{place} is {address.url}, and credentials ({given[0]}) are not sent over plain http: use https, "
            "or a user without credentials, or set allowTokenOverHTTP in the cluster's extension 'rebalancer'"
        )
    return replace(chosen, cluster={**chosen.cluster, "server": address.url})


Headers = tuple[tuple[str, str], ...]  # names with their values; a name may occur more than once


def impersonation(user: Document, overrides: Overrides) -> Headers:
    """Return the headers for acting as the command line says, or a kubeconfig's user; `kubernetes` leaves them out."""
    name, given = overrides.user or str(user.get("as") or ""), user.get("as-user-extra")
    groups = overrides.groups or _texts(user.get("as-groups"))
    # Header names ignore case and allow few characters; the API server decodes this encoding.
    more = {quote(str(key).lower(), safe=""): each for key, each in given.items()} if isinstance(given, dict) else {}
    extra = [(f"Impersonate-Extra-{key}", value) for key, values in more.items() for value in _texts(values)]
    uid = () if overrides.user or not user.get("as-uid") else (("Impersonate-Uid", str(user["as-uid"])),)
    if not name and (groups or extra or uid):
        raise NoCredentials("there are groups to act in, and nobody to act as: say whom with --as")
    named = (("Impersonate-User", name),) if name else ()
    headers = (*named, *uid, *(("Impersonate-Group", each) for each in groups), *extra)
    for header, value in headers:
        if not (value.isascii() and value.isprintable()):
            raise NoCredentials(f"{header} {value!r} cannot be sent: names to act as are of ASCII characters")
    return headers


def _texts(given: object) -> tuple[str, ...]:
    return tuple(map(str, given)) if isinstance(given, list) else ()


def _endpoint(settings: Configuration) -> Mapping[str, object]:
    """Return which API server these settings lead to, and what identifies it: this must not change during a run."""
    file = settings.ssl_ca_cert
    return {
        "server": settings.host.rstrip("/"),
        "certificate-authority": hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else "",
        "insecure-skip-tls-verify": not settings.verify_ssl,
        "tls-server-name": settings.tls_server_name or "",
        "proxy-url": settings.proxy or "",
    }


USER_AGENT = f"rebalancer/{__version__}"


@dataclass(frozen=True, slots=True)
class Access:
    """A pool of connections, with TLS settings and proxies, and the credentials that go with it."""

    configuration: Configuration
    pool: urllib3.PoolManager
    endpoint: Mapping[str, object]  # the API server that the pool leads to, by the settings of a kubeconfig
    acting_as: Headers = ()  # the headers for impersonation
    expires: datetime | None = None  # when the credentials end; None where that is not known

    @property
    def proxy(self) -> str:
        """The address of the proxy on the way, with its password; empty if none is used."""
        is_used = getattr(self.pool, "proxy", None) is not None
        return str(self.configuration.proxy) if is_used else ""

    def has_expired(self) -> bool:
        """Return whether the credentials have expired."""
        return self.expires is not None and datetime.now(UTC) >= self.expires

    def headers(self) -> urllib3.HTTPHeaderDict:
        """Return the headers of the next request."""
        with _as_no_credentials("the credentials cannot be read"):
            token = self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization") or ""
        if not (token.isascii() and token.strip().isprintable()):
            raise NoCredentials(
                "the token has characters that are not allowed in a token: check the file it comes from"
            )
        usual = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": USER_AGENT}
        headers = urllib3.HTTPHeaderDict(usual | ({"Authorization": token.strip()} if token else {}))
        for name, value in self.acting_as:
            headers.add(name, value)
        return headers


def from_files(
    kubeconfig: str | None, context: str, environ: Mapping[str, str], overrides: Overrides, seconds: float
) -> Access:
    """Load a kubeconfig's context, from the files as they are now; a plugin may take so many seconds at most."""
    found = find(kubeconfig, environ)
    if found is None:
        raise NoCredentials("the kubeconfig is gone")
    chosen = addressed(found.only(context))
    provider = chosen.user.get("auth-provider")
    # One that is not supported would only show later, as a refused request.
    if isinstance(provider, dict) and provider.get("name") not in ("gcp", "oidc"):
        raise NoCredentials(
            f"{chosen.files}: the user of context {chosen.context!r} has the auth-provider {provider.get('name')!r}, "
            "which is not supported (kubectl has dropped these too): use an exec plugin or a token"
        )
    acting_as = impersonation(chosen.user, overrides)
    if overrides.insecure:
        # Like kubectl's flag, this drops certificate-authority.
        kept = {key: value for key, value in chosen.cluster.items() if not key.startswith("certificate-authority")}
        chosen = replace(chosen, cluster=kept | {"insecure-skip-tls-verify": True})
    chosen, expires = answered(chosen, min(seconds, overrides.exec_seconds))
    configuration = Configuration()
    with _as_no_credentials(f"context {context!r} of {chosen.files} cannot be used"):
        load_kube_config_from_dict(  # type: ignore[no-untyped-call]  # the package types its client only
            chosen.document(), context=context, client_configuration=configuration
        )
    if not provider:
        # Nothing renews the token.  The hook would set all settings again for each request, which is slow.
        configuration.refresh_api_key_hook = None
    return _access(configuration, acting_as, expires)


def from_pod(environ: Mapping[str, str], service_account: Path, overrides: Overrides, _seconds: float) -> Access:
    """Load the service account of the pod in which this process runs: its token and certificate are in a folder."""
    configuration: Any = Configuration()
    with _as_no_credentials("the pod's service account cannot be used"):
        loader = InClusterConfigLoader(  # type: ignore[no-untyped-call]  # the package types its client only
            token_filename=str(service_account / "token"),
            cert_filename=str(service_account / "ca.crt"),
            environ=environ,
        )
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]  # as above
    if overrides.insecure:
        configuration.verify_ssl, configuration.ssl_ca_cert = False, None
    access = _access(configuration, impersonation({}, overrides))
    # Over the months of a loop the kubelet renews the authority: nobody else writes to this folder.
    return replace(access, endpoint={**access.endpoint, "certificate-authority": ""})


def _access(configuration: Configuration, acting_as: Headers, expires: datetime | None = None) -> Access:
    if not configuration.verify_ssl:
        # The kubeconfig asks for it (insecure-skip-tls-verify): one warning per request would not help.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    urllib3.disable_warnings(urllib3.exceptions.DependencyWarning)  # without PySocks there is an error that says it
    with _as_no_credentials("the connection cannot be set up"):
        try:
            configuration.proxy_headers = credentials_for(str(configuration.proxy or ""))
            pool = cuttable(ApiClient(configuration).rest_client.pool_manager)
            access = Access(configuration, pool, _endpoint(configuration), acting_as, expires)
            read_plainly(access.proxy)
        except (ImportError, ValueError):  # a proxy that NO_PROXY makes superfluous may be a bad one
            if proxy := configuration.proxy:
                raise NoCredentials(f"{named(str(proxy))} {UNUSABLE}") from None
            raise
        return access


@contextmanager
def _as_no_credentials(meaning: str) -> Iterator[None]:
    try:
        yield
    except (ConfigException, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # Inside the package, a file of the wrong form can raise any of the last four.
        raise NoCredentials(f"{meaning}: {cut(str(error))}") from error
