"""What is said of a request that got no answer."""

import pytest
from urllib3.exceptions import DecodeError, HTTPError, ProtocolError

from rebalancer.kube.client import no_answer


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DecodeError("the body is not what its header says"), "the body is not what its header says"),
        (ProtocolError("the answer is cut off"), "the answer is cut off"),
        (ProtocolError("aborted", ConnectionResetError(104, "Connection reset by peer")), "Connection reset by peer"),
        (HTTPError(), "HTTPError"),
    ],
)
def test_the_nearest_words_there_are_tell_what_went_wrong(error, words):
    """Those of the system, else those of the error, else its name."""
    assert str(no_answer(error, "the API server", "")) == f"no answer from the API server: {words}"
