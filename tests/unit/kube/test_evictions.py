from dataclasses import replace

import pytest

from rebalancer.eviction.causes import Code, cause
from rebalancer.eviction.verdict import GRANTED, Failed, Granted, Refused, Unknown
from rebalancer.kube.client import LARGEST_OBJECT, Client
from rebalancer.kube.evictions import Evictions
from rebalancer.kube.halt import Halt
from rebalancer.report.words import text
from rebalancer.run.live import LiveSink
from tests.fake_http import Reply
from tests.make import pod as made_pod
from tests.make import says_no
from tests.unit.kube.conftest import WHO

EVICTION = "*/eviction"
DENIED = 'admission webhook "guard.example.com" denied the request: not now'


def test_the_request_is_the_documented_one(evict, server):
    """policy/v1, the pod's UID as a precondition, the annotations that others match on, and never a dry run."""
    assert evict() == GRANTED

    (request,) = server.requests
    assert request.path == "/api/v1/namespaces/default/pods/a/eviction"
    assert request.query == {}
    assert request.body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "annotations": {
                "requested-by": "sigs.k8s.io/descheduler",
                "reason": "triggered by default/PodLifeTime: older than 1 day",
            },
        },
        "deleteOptions": {"preconditions": {"uid": "uid-of-a"}},
    }
    assert server.evicted == ["default/a"]


@pytest.mark.parametrize("seconds", [0, 30])
def test_a_grace_period_is_sent_when_it_is_set(client, server, pod, seconds):
    """0 is a grace period too, and not the same as none."""
    server.add(pod("a"))

    Evictions(client, grace_period_seconds=seconds).evict("default", "a", "uid-of-a", **WHO)

    assert server.requests[0].body["deleteOptions"]["gracePeriodSeconds"] == seconds


def test_a_pod_that_is_not_there_may_have_gone_by_this_request(evictions):
    """A proxy may have sent the request before, and lost the answer."""
    verdict = evictions.evict("default", "b", "uid", **WHO)

    assert isinstance(verdict, Unknown)
    assert 'by itself or by this request (pods "b" not found)' in verdict.error


def test_a_new_pod_of_the_same_name_is_left_alone(evict, server):
    """The UID protects the successor of the pod that was meant; what became of that one is not known."""
    verdict = evict("uid-of-the-old-one")

    assert isinstance(verdict, Unknown)
    assert (len(server.requests), server.evicted) == (1, [])
    assert "UID in the precondition" in verdict.error


def test_an_api_without_evictions_is_named(evict, server):
    """Every other eviction would fail in the same way."""
    server.fail("POST", EVICTION, status=404, message="the server could not find the requested resource")

    verdict = evict()

    assert isinstance(verdict, Failed)
    assert verdict.hopeless
    assert "the API server does not offer evictions" in verdict.error


def test_pods_of_a_namespace_that_is_being_deleted_are_gone(evict, server):
    """The 403 is not a missing permission: the pods go without us."""
    body = {
        "kind": "Status",
        "message": "unable to create new content in namespace default because it is being terminated",
        "details": {"causes": [{"reason": "NamespaceTerminating", "message": "namespace default"}]},
    }
    server.fail("POST", EVICTION, status=403, body=body)

    verdict = evict()

    assert isinstance(verdict, Refused)
    assert verdict.by == "Gone"


def test_an_exhausted_pdb_refuses(evict, server, pdb):
    """The refusal has the server's numbers, and is not asked for again."""
    server.add(pdb("web", allowed=0, app="web"))

    assert evict() == says_no(
        "PDB",
        "Cannot evict pod as it would violate the pod's disruption budget. "
        "The disruption budget web needs 2 healthy pods and has 2 currently",
    )
    assert len(server.sent("POST", EVICTION)) == 1


@pytest.mark.parametrize(
    ("budgets", "said"),
    [
        pytest.param([{"allowed": 1, "generation": 2, "observed": 1}], "still being processed", id="not up to date"),
        pytest.param([{"allowed": 1}, {"allowed": 1}], "more than one PodDisruptionBudget", id="two of them"),
    ],
)
def test_a_pdb_whose_answer_would_not_pass_refuses_at_once(evict, server, pdb, time, budgets, said):
    """The server would have us wait for 10 s a pod, or calls it an internal error; the next pod is tried instead."""
    for number, fields in enumerate(budgets):
        server.add(pdb(f"web-{number}", app="web", **fields))

    verdict = evict()

    assert isinstance(verdict, Refused)
    assert (verdict.by, time.waits, len(server.sent("POST", EVICTION))) == ("PDB", [], 1)
    assert said in text(verdict.cause)


def test_a_pdb_in_disorder_refuses(evict, server):
    """A 403 about a PDB is not a missing permission of ours."""
    body = {"kind": "Status", "message": "negative", "details": {"kind": "poddisruptionbudget"}}
    server.fail("POST", EVICTION, status=403, body=body)

    assert evict() == says_no("PDB", "negative")


@pytest.mark.parametrize("status", [400, 403, 409, 429, 500])
@pytest.mark.parametrize("message", [DENIED, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not now"])
def test_a_denial_refuses_whatever_its_code(evict, server, status, message):
    """A webhook may choose its code; it is heard once."""
    server.fail("POST", EVICTION, status=status, message=message)

    assert evict() == says_no("Webhook", message)
    assert len(server.requests) == 1


def test_a_pod_that_another_controller_moves_is_granted(evict, server):
    """It goes in that controller's own time, and is not asked for again."""
    server.fail("POST", EVICTION, status=429, message="Eviction triggered evacuation of a VM")

    assert evict() == Granted(background=True)
    assert len(server.requests) == 1


def test_a_missing_permission_fails(evict, server):
    """It will not pass, and the caller is told so, with the verb and the resource."""
    server.forbid("create", "pods/eviction")

    verdict = evict()

    assert isinstance(verdict, Failed)
    assert verdict.forbidden
    assert verdict.error.startswith("no permission to create pods/eviction: ")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("failure", "wait"),
    [
        ({"status": 429, "headers": {"Retry-After": "2"}}, 2.2),
        ({"status": 429}, 0.5),
        ({"status": 500}, 0.5),
        ({"status": 409}, 0.5),
    ],
)
def test_a_busy_server_is_asked_again(evict, server, time, failure, wait):
    """Throttling and errors pass, and the server says when; so does a race for the PDB that the server has lost."""
    server.fail("POST", EVICTION, body="slow down", times=1, **failure)

    assert evict() == GRANTED
    assert time.waits == [pytest.approx(wait)]


def test_a_failing_webhook_call_fails_after_30_seconds(evict, server, time):
    """A webhook that cannot be reached denies nothing, so it is tried again; not for ever."""
    message = 'Internal error occurred: failed calling webhook "guard.example.com": timeout'
    server.fail("POST", EVICTION, status=500, message=message)

    verdict = evict()

    assert isinstance(verdict, Failed)
    assert message in verdict.error
    assert not verdict.forbidden
    assert 20 < sum(time.waits) < 30


def test_no_second_request_after_the_deadline(client, server, pod, time):
    """The run's deadline ends the retries of a pod."""
    server.add(pod("a"))
    server.fail("POST", EVICTION, status=429)
    evictions = Evictions(client, retry_policy=time.retry_policy(), halt=Halt(1, time.clock))

    assert isinstance(evictions.evict("default", "a", "uid-of-a", **WHO), Failed)
    assert time.waits == [0.5]


def test_no_request_at_all_after_the_deadline(client, server, pod, time):
    """A pod that is asked for too late stays."""
    server.add(pod("a"))
    evictions = Evictions(client, retry_policy=time.retry_policy(), halt=Halt(0, time.clock))

    verdict = evictions.evict("default", "a", "uid-of-a", **WHO)

    assert isinstance(verdict, Failed)
    assert verdict.error.startswith("not asked for: the deadline")
    assert server.requests == []


def test_a_request_on_its_way_outlasts_the_deadline(connection, server, pod, time):
    """It was sent in time, and what became of the pod matters."""
    server.add(pod("a"))
    server.on("POST", EVICTION, lambda _: time.sleep(10))
    client = Client(connection, request_timeout=60.0, retry_policy=time.retry_policy())
    evictions = Evictions(client, retry_policy=time.retry_policy(), halt=Halt(5, time.clock))

    assert evictions.evict("default", "a", "uid-of-a", **WHO) == GRANTED


def test_a_pod_that_is_gone_after_an_ordinary_error_is_unknown(evict, server):
    """The 429 may be the answer to a repeated request."""
    server.on("POST", EVICTION, lambda _: server.remove_pod("default", "a"), times=1)
    server.fail("POST", EVICTION, status=429, times=1)

    assert isinstance(evict(), Unknown)


def test_a_silent_server_leaves_a_doubt(impatient, server, pod, time):
    """When no answer ever comes nobody can tell whether the pod has gone."""
    server.add(pod("a"))
    server.stall("POST", EVICTION, times=None)

    verdict = Evictions(impatient, retry_policy=time.retry_policy(seconds=1)).evict("default", "a", "uid-of-a", **WHO)

    assert isinstance(verdict, Unknown)
    assert verdict.error.endswith("timed out; the pod may have been evicted all the same")


def test_refused_credentials_fail(evict, server):
    """In the middle of a run even that is a failure of one eviction, not the end."""
    server.token = "another"

    verdict = evict()

    assert isinstance(verdict, Failed)
    assert "does not accept the credentials" in verdict.error


def test_odd_names_stay_names(connection, server, pod, time):
    """A name is encoded in the path, and the same in the body."""
    server.add(pod("a%2Fb"))
    evictions = Evictions(Client(connection), retry_policy=time.retry_policy())

    assert evictions.evict("default", "a%2Fb", "uid-of-a%2Fb", **WHO) == GRANTED


def test_a_pods_eviction_is_tried_again_for_thirty_seconds(client, server, pod, time):
    """With waits of one second that makes 30 tries: the limit of a live run, whatever the policy of reads is."""
    server.add(pod("a"))
    server.fail("POST", EVICTION, status=429)
    cluster = replace(client, retry_policy=time.retry_policy(seconds=7, first_wait=1, longest_wait=1))
    sink = LiveSink(cluster, None, Halt(clock=time.clock))

    verdict = sink.evict(
        made_pod("a", uid="uid-of-a"), "default", "PodLifeTime", cause(Code.CUSTOM, message="old"), lambda _: None
    )

    assert isinstance(verdict, Failed)
    assert len(server.requests) == 30


@pytest.mark.parametrize("status", [201, 500])
def test_an_answer_that_is_too_large_to_read_is_a_doubt(evict, server, status):
    """The pod may be gone: what the answer says is not known, but that the request came is."""
    server.on("POST", EVICTION, lambda _: Reply(status, "x" * (LARGEST_OBJECT + 1)), times=1)

    assert evict() == GRANTED
    assert [request.method for request in server.requests] == ["POST", "GET", "POST"]


@pytest.mark.parametrize(
    ("status", "message"),
    [(403, "exceeded quota: one"), (400, 'User "u" cannot create resource "pods/eviction"')],
)
def test_only_a_missing_permission_counts_as_one(evict, server, status, message):
    """Other refusals with its code, or with its words, say nothing about the next pod of the namespace."""
    server.fail("POST", EVICTION, status=status, message=message)

    verdict = evict()

    assert isinstance(verdict, Failed)
    assert not verdict.forbidden


def test_a_server_that_asks_one_thread_to_wait_is_not_asked_by_another_meanwhile(client, server, pod, time):
    """Of threads that share one `Evictions`; here they take turns, on a given clock."""
    shared = Evictions(client, retry_policy=time.retry_policy(seconds=2.0), is_shared=True)
    alone = Evictions(client, retry_policy=time.retry_policy(seconds=2.0))
    waited = {}
    for name, evictions in (("shared", shared), ("alone", alone)):
        server.add(pod(f"{name}-1"))
        server.add(pod(f"{name}-2"))
        server.fail("POST", EVICTION, status=429, headers={"Retry-After": "2"}, times=1)
        first = evictions.evict("default", f"{name}-1", f"uid-of-{name}-1", **WHO)
        assert isinstance(first, Failed)
        start = time.now
        assert evictions.evict("default", f"{name}-2", f"uid-of-{name}-2", **WHO).granted
        waited[name] = time.now - start

    assert waited == {"shared": 2.0, "alone": 0.0}


def because(reason):
    return {"kind": "Status", "message": "no", "details": {"causes": [{"reason": reason}]}}


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 409, "message": "no uid in the request"},
        {"status": 400, "message": "Precondition failed: UID in precondition: x, UID in object meta: y"},
        {"status": 400, "body": because("DisruptionBudget")},
        {"status": 400, "body": because("NamespaceTerminating")},
        {"status": 404, "body": "404 page not found"},
    ],
)
def test_only_the_api_servers_own_words_with_their_own_code_say_what_became_of_a_pod(evict, server, answer):
    """Any other answer with these words is a failure: the pod is still there."""
    server.fail("POST", EVICTION, **answer)

    assert isinstance(evict(), Failed)
