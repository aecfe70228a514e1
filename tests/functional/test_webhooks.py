"""Only a denial is a webhook's refusal; other answers that speak of one are failures, and count as such."""

import pytest

from tests.functional.objects import OLD, old_pods, policy, two_nodes_with

DENIALS = (
    'admission webhook "guard.example.com" denied the request: not now',
    "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not now",
)
OTHERS = (
    'admission webhook "guard.example.com" attempted to modify the object, which is not supported',
    "the proxy denied the request",
    "the proxy denied request",
    "ValidatingAdmissionPolicy 'p' has no binding",
)


@pytest.fixture
def answered(server, rebalancer):
    """Evict a pod, and answer with a code that is a definite no and these words."""
    for each in two_nodes_with(*old_pods("a")):
        server.add(each)

    def run(words):
        server.fail("POST", "*/eviction", status=422, message=words)
        return rebalancer.run(server, policy(OLD))

    return run


@pytest.mark.parametrize("words", DENIALS)
def test_a_denial_is_a_refusal(answered, words):
    """The pod stays by somebody's rule: nothing is wrong."""
    outcome = answered(words)

    assert (outcome.refused(), outcome.failed()) == ({"a": "Webhook"}, {})
    assert outcome.exit_code == 0


@pytest.mark.parametrize("words", OTHERS)
def test_other_words_about_webhooks_are_failures(answered, words):
    """Something is broken, and who reads the report is told."""
    outcome = answered(words)

    assert outcome.refused() == {}
    assert words in outcome.failed()["a"]
    assert outcome.exit_code == 1
