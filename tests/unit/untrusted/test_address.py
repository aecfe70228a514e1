"""URLs with passwords: what is read is what every reader reads, and nothing that may be a password is shown."""

import string
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.untrusted.address import AmbiguousUserinfo, read_address, shown, without_userinfo

SECRET = "s3cr3t"


@pytest.mark.parametrize("url", ["https://u:1234/SECRET@h", "https://u:p#x@h", "https://u:p?x@h", "https://u:p@x@h"])
def test_a_url_that_readers_take_in_two_ways_is_refused_with_the_cure(url):
    """Only its scheme is named."""
    with pytest.raises(AmbiguousUserinfo) as caught:
        read_address(url)

    assert str(caught.value).startswith("the URL https://... has an @, but")
    assert "as %40 %2F %3F" in str(caught.value)


@given(st.text(string.printable, min_size=1, max_size=12), st.text(string.printable, max_size=12))
def test_what_is_encoded_is_read_as_it_was(username, password):
    found = read_address(f"https://{quote(username, safe='')}:{quote(password, safe='')}@host:9090/path")

    assert (found.username, found.password, found.url) == (username, password, "https://host:9090/path")


@given(st.text("abc/#?@:\\[]% .", max_size=20), st.text("h./?#@:1[]", max_size=12))
def test_a_secret_in_any_place_before_the_last_at_stays_hidden(before, after):
    url = f"https://{before}{SECRET}{after}@h"

    said = [shown(url)]
    try:
        said.append(read_address(url).url)
    except ValueError as error:
        said.append(str(error))

    assert not [text for text in said if SECRET in text]


@pytest.mark.parametrize(
    ("url", "read"),
    [
        (" HTTPS://Host:9090/ ", "https://Host:9090"),
        ("http://[::1]:80/x?a=b", "http://[::1]:80/x?a=b"),
        ("http://host", "http://host"),
        ("http://host:#part", "http://host"),
    ],
)
def test_a_plain_url_is_read_as_it_stands(url, read):
    """Less blanks, the fragment and the slash at its end."""
    assert read_address(url).url == read


@pytest.mark.parametrize("url", ["", "host:80", "http://", "http://host:99999", "http://ho st", "file:///etc/passwd"])
def test_what_is_not_a_url_of_a_server_is_an_error(url):
    """Without an @ it may be shown."""
    with pytest.raises(ValueError, match="is not a URL"):
        read_address(url)


@pytest.mark.parametrize(
    "password",
    ["s3cret", "a/s3cret", "1234/s3cret", "a#s3cret", "a bs3cret", "s3cret b", "a@s3cret", "a\\s3cret", "[s3cret"],
)
@pytest.mark.parametrize("scheme", ["https://", "HTTPS://", "https:/", "http:", "https:\\\\", "//"])
def test_a_text_loses_passwords_of_any_spelling(scheme, password):
    text = without_userinfo(f"Failed to parse: {scheme}u:{password}@h/path (and so on)")

    assert "s3cret" not in text
    assert text.endswith("h/path (and so on)")


def test_a_text_without_passwords_keeps_all_of_it():
    text = "https://prom:9090/api: HTTP 403, the user bob@example.com may not ask image@sha256:1"

    assert without_userinfo(text) == text


@pytest.mark.parametrize("part", ["http://a:", "http://", "//a:1/", "https:\\", "a"])
def test_a_text_of_many_beginnings_is_gone_through_once(part):
    """Whoever creates a pod may choose such a name for its owner; to look on from each of them would take hours."""
    text = f"me@home {part * 200_000}"

    assert without_userinfo(text) == text
