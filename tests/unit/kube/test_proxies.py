"""Which setting a proxy comes from."""

import pytest

from rebalancer.kube.proxies import named

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("environ", "setter"),
    [
        ({"HTTPS_PROXY": PROXY}, "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "http://another:3128", "all_proxy": PROXY}, "all_proxy"),
        ({"HTTPS_PROXY": "http://another:3128"}, "proxy-url of the kubeconfig"),
        ({}, "proxy-url of the kubeconfig"),
    ],
)
def test_the_setting_with_this_value_is_named(environ, setter):
    """Whoever has to change it knows where."""
    assert named(PROXY, environ) == f"the proxy {PROXY} ({setter})"
