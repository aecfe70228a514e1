"""When no more is asked for in a namespace, or at all: by verdicts alone."""

import pytest

from rebalancer.engine.closures import Closures
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import GRANTED, Failed, Unknown, refused
from tests import make

NOT_ALLOWED = Failed("no", forbidden=True)
EXPECTED = refused(Code("PDB"), message="allows none")


def told(closures, *verdicts, namespace="a"):
    for number, verdict in enumerate(verdicts):
        closures.heard(make.pod(f"p-{number}", namespace=namespace), verdict)
    return closures


def refusal(closures, namespace):
    return closures.refusal(make.pod("p", namespace=namespace))


def test_a_missing_permission_closes_its_namespace_alone():
    closures = told(Closures(), NOT_ALLOWED)

    assert refusal(closures, "a") == refused(Code.NO_PERMISSION, namespace="a")
    assert refusal(closures, "b") is None


@pytest.mark.parametrize(("before", "ended"), [((), True), ((GRANTED,), False), ((EXPECTED,), True)])
def test_five_without_permission_end_the_run_unless_some_were_granted(before, ended):
    """A role for some namespaces works there."""
    closures = told(Closures(), *before, namespace="z")
    for namespace in "abcde":
        assert closures.ended == ""
        told(closures, NOT_ALLOWED, namespace=namespace)

    assert bool(closures.ended) is ended


@pytest.mark.parametrize(
    "failure", [Failed("500"), Unknown("no answer"), refused(Code("Webhook"), message="hook says no")]
)
def test_the_twentieth_failure_in_a_row_closes(failure):
    closures = told(Closures(), *[failure] * 19)
    assert refusal(closures, "a") is None

    assert refusal(told(closures, failure), "a").by == "Closed"
    assert refusal(closures, "b") is None
    assert closures.ended == ""


@pytest.mark.parametrize(
    "between", [GRANTED, EXPECTED, Failed("something else"), refused(Code("Gone"), message="gone")]
)
def test_anything_else_in_between_begins_anew(between):
    """It shows that not everything fails for that cause."""
    failure = Failed("no")

    assert refusal(told(Closures(), *[failure] * 19, between, *[failure] * 19), "a") is None


WORDS = "abcdefghijklmnopqrst"
OF_PODS = [Failed(f"500 for a/p-{number} after {number} s") for number in range(20)]
OF_A_WEBHOOK = [
    refused(Code.WEBHOOK, message=f'admission webhook "guard" denied the request: {word}') for word in WORDS
]


@pytest.mark.parametrize("failures", [OF_PODS, OF_A_WEBHOOK])
def test_names_numbers_and_what_one_webhook_says_make_no_other_cause(failures):
    assert refusal(told(Closures(), *failures), "a") is not None


def test_over_five_namespaces_the_run_ends():
    closures = Closures()
    for number in range(20):
        told(closures, Failed("no"), namespace=f"n{number % 4}")
    assert closures.ended == ""

    told(closures, Failed("no"), namespace="n4")

    assert closures.ended == "evictions were given up in namespaces n0, n1, n2, n3, n4, after 20 failures in a row: no"


@pytest.mark.parametrize("granted", [True, False], ids=["elsewhere evictions succeed", "nothing succeeds"])
def test_namespaces_with_causes_of_their_own_end_the_run_without_a_grant_between_them(granted):
    """Each has a webhook of its own that is broken."""
    closures = Closures()
    for namespace in "abcde":
        assert closures.ended == ""
        told(closures, *[Failed(f"{namespace * 3} is broken")] * 20, namespace=namespace)
        told(closures, *[GRANTED] * granted, namespace="z")

    assert bool(closures.ended) is not granted
    assert refusal(closures, "e") is not None


def test_what_was_closed_is_named_in_the_report():
    """One namespace or more, what is missing, and what the server said last."""
    closures = told(Closures(), *[Failed("no")] * 20)
    assert closures.notices() == ("evictions were given up in namespace a, after 20 failures in a row: no",)

    told(closures, NOT_ALLOWED, namespace="c")
    told(closures, NOT_ALLOWED, namespace="b")

    assert closures.notices()[0].startswith("no permission to create pods/eviction in namespaces b, c: give the ")
