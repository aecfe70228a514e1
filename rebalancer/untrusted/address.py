"""URLs as people write them: with blanks, capitals, and sometimes with a password inside.

A password may hold characters that end the part before the `@` for one reader and not for the next: in
`https://u:1234/SECRET@h` the host is u for some and h for others.  So a URL with an `@` is read only where all
readers agree, and nothing but the scheme of any other one is ever shown.
"""

import re
from base64 import b64encode
from dataclasses import dataclass
from urllib.parse import unquote

_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*)://")
#: A URL of any scheme whose userinfo, host and port are plain to every reader: RFC 3986 without what it leaves open.
_PLAIN = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?:(?P<userinfo>[^/?#@\\\s\[\]]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%[\w.~-]+)?\]|[^/?#@\\\s\[\]:]+)"
    r"(?::(?P<port>[0-9]*))?"
    r"(?P<path>/[^?#@\s]*)?(?:\?(?P<query>[^#@\s]*))?(?:#[^@\s]*)?"
)
#: Where a URL begins in a text, after its scheme, also one with the wrong slashes.
_BEGINNING = re.compile(r"(//|https?:(?://|[/\\]*+))", re.IGNORECASE)
#: The same where a password seems to begin: a colon, and then no port and no blank.
_WITH_PASSWORD = re.compile(_BEGINNING.pattern + r"[^\s/:@]*:(?!\s|[0-9]+(?:[/?#\s]|$))", re.IGNORECASE)
_LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server, and apart from it the credentials that the URL contains."""

    url: str  # with its scheme in lower case, and without userinfo, blanks and a slash at its end; safe to show
    is_encrypted: bool  # whether it is https
    username: str = ""  # from the URL's userinfo; empty where it has none
    password: str = ""  # from the URL's userinfo; empty where it has none

    @property
    def has_userinfo(self) -> bool:
        """Return whether the URL contains credentials."""
        return bool(self.username or self.password)


class AmbiguousUserinfo(ValueError):  # noqa: N818  it says what the URL has
    """A URL has an `@`, and readers differ about where its password ends."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"the URL {shown(text)} has an @, but what stands before it is not plainly a user and a password: "
            "write their characters @ / ? # : % and \\ as %40 %2F %3F %23 %3A %25 and %5C"
        )


def read_address(text: str) -> Address:
    """Read a URL of http or https; raises AmbiguousUserinfo where readers differ, or ValueError without userinfo."""
    found = read_plainly(text)
    if found is None or found["scheme"].lower() not in ("http", "https"):
        raise ValueError(f"{shown(text)!r} is not a URL that begins with http:// or https:// and a host")
    if int(found["port"] or 0) > _LARGEST_PORT:
        raise ValueError(f"{shown(text)!r} is not a URL: the port is larger than {_LARGEST_PORT}")
    scheme = found["scheme"].lower()
    port = f":{found['port']}" if found["port"] else ""
    query = f"?{found['query']}" if found["query"] else ""
    username, _, password = (found["userinfo"] or "").partition(":")
    return Address(
        url=f"{scheme}://{found['host']}{port}{found['path'] or ''}".rstrip("/") + query,
        is_encrypted=scheme == "https",
        username=unquote(username),
        password=unquote(password),
    )


def basic(username: str, password: str) -> str:
    """Return credentials as a header has them: in UTF-8, as curl sends them."""
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"


def credentials_for(proxy: str) -> dict[str, str]:
    """Return the header that tells an HTTP proxy, and nobody else, who we are; empty if its address has no user."""
    try:
        found = read_address(proxy)
    except ValueError:  # no error if NO_PROXY makes the proxy superfluous
        return {}
    return {"Proxy-Authorization": basic(found.username, found.password)} if found.has_userinfo else {}


def read_plainly(text: str) -> re.Match[str] | None:
    """Return the parts of a URL, None if it is not one; raises AmbiguousUserinfo where readers may differ."""
    found = _PLAIN.fullmatch(text.strip())
    if found is None and "@" in text:
        raise AmbiguousUserinfo(text)
    return found


def without_userinfo(text: str) -> str:
    """Return a text without what may be userinfo of the URLs in it; a password may have blanks."""
    if "@" not in text:
        return text
    words = re.sub(r"\S+", lambda word: _cut(word[0], _BEGINNING), text)
    return "\n".join(_cut(line, _WITH_PASSWORD) for line in words.split("\n"))


def _cut(text: str, begins: re.Pattern[str]) -> str:
    """Return a word or a line without what stands between the first such beginning and its last `@`."""
    at = text.rfind("@")
    found = begins.search(text, 0, at + 1)
    return text[: found.end(1)] + text[at + 1 :] if found else text


def shown(url: str) -> str:
    """Return the part of a URL that is safe to show: without userinfo, and of a doubtful one the scheme alone."""
    if "@" not in url:
        return url
    found = _PLAIN.fullmatch(url.strip())
    if found:
        return url.strip().replace(f"//{found['userinfo']}@", "//", 1)
    scheme = _SCHEME.match(url)
    return f"{scheme[1]}://..." if scheme else "..."
