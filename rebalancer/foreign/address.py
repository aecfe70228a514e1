"""URLs as people write them: with blanks, capitals, and sometimes with a password inside."""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_USERINFO = re.compile(r"(?<=//)[^/?#\s]*@")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server, and apart from it the credentials that the URL contains.

    Attributes:
        url: with its scheme in lower case, and without userinfo, blanks and a slash at its end; safe to show.
        is_encrypted: whether it is https.
        username: from the URL's userinfo; empty where it has none.
        password: from the URL's userinfo; empty where it has none.
    """

    url: str
    is_encrypted: bool
    username: str = ""
    password: str = ""

    @property
    def has_userinfo(self) -> bool:
        """Return whether the URL contains credentials."""
        return bool(self.username or self.password)


def read_address(text: str) -> Address:
    """Read a URL of http or https.

    Raises:
        ValueError: it is not one; the message does not repeat userinfo.
    """
    try:
        parts = urlsplit(text.strip())
        _ = parts.port  # raises for a bad port
    except ValueError as error:
        raise ValueError(f"{shown(text)!r} is not a URL: {shown(str(error))}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{shown(text)!r} is not a URL that begins with http:// or https:// and a host")
    host = parts.netloc.rpartition("@")[2]
    query = f"?{parts.query}" if parts.query else ""
    return Address(
        url=f"{parts.scheme}://{host}{parts.path}".rstrip("/") + query,
        is_encrypted=parts.scheme == "https",
        username=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def without_userinfo(text: str) -> str:
    """Return a text without the userinfo of the URLs in it."""
    return _USERINFO.sub("", text) if "@" in text else text


def shown(url: str) -> str:
    """Return the part of a URL that is safe to show, even if it is malformed: nothing that may be userinfo."""
    stripped = without_userinfo(url)
    scheme, separator, rest = stripped.partition("//")
    if separator and "@" not in scheme and "@" not in re.split(r"[/?#]", rest, maxsplit=1)[0]:
        return stripped
    return stripped.rpartition("@")[2]
