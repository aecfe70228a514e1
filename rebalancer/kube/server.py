"""The API server's address in a kubeconfig, and whether credentials may be sent there."""

from dataclasses import replace

from rebalancer.errors import NoCredentials
from rebalancer.kube.kubeconfig import Chosen, Document
from rebalancer.untrusted.address import AmbiguousUserinfo, read_address, shown

#: The credentials in a kubeconfig's user.
_CREDENTIALS = (
    "token",
    "tokenFile",
    "username",
    "password",
    "exec",
    "auth-provider",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
)
#: The name of our entry among a cluster's `extensions`, and its key.
_EXTENSION = "rebalancer"
_PERMISSION = "allowTokenOverHTTP"


def addressed(chosen: Chosen) -> Chosen:
    """Return the context with its server's address ready for use: without userinfo and blanks.

    Over plain http no credentials are sent, and no plugin is run, unless the cluster's entry allows it:

        extensions: [{name: rebalancer, extension: {allowTokenOverHTTP: true}}]

    Raises:
        NoCredentials: the address cannot be used, or credentials would go over plain http.
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
    if given and not address.is_encrypted and not _is_allowed(chosen.cluster):
        raise NoCredentials(
            f"{place} is {address.url}, and credentials ({given[0]}) are not sent over plain http: use https, "
            f"or a user without credentials, or set {_PERMISSION} in the cluster's extension {_EXTENSION!r}"
        )
    return replace(chosen, cluster={**chosen.cluster, "server": address.url})


def _is_allowed(cluster: Document) -> bool:
    entries = cluster.get("extensions")
    bodies = [
        entry.get("extension")
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and entry.get("name") == _EXTENSION
    ]
    return any(isinstance(body, dict) and body.get(_PERMISSION) is True for body in bodies)
