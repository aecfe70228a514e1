import json
from dataclasses import replace
from unittest.mock import ANY

import pytest

from rebalancer.eviction.causes import Code, cause
from rebalancer.eviction.verdict import GRANTED, Failed, Granted, Refused, Unknown
from rebalancer.kube.client import LARGEST_OBJECT
from rebalancer.kube.evictions import Evictions
from rebalancer.kube.tries import Halt
from rebalancer.report.words import text
from rebalancer.run.live import LiveSink
from tests.fake_http import Reply
from tests.functional.objects import pdb
from tests.make import pod as made_pod
from tests.make import says_no

EVICTION = "*/eviction"
BY_WEBHOOK = 'admission webhook "guard.example.com" denied the request: not now'
BY_POLICY = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not now"
NOT_FOUND = "the server could not find the requested resource"
NEGATIVE = {"kind": "Status", "message": "negative", "details": {"kind": "poddisruptionbudget"}}
LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
NO_PERMISSION = 'User "me" cannot create resource "pods/eviction"'


def because(reason):
    return {"kind": "Status", "message": "no", "details": {"causes": [{"reason": reason}]}}


@pytest.mark.parametrize(
    ("status", "said", "meaning"),
    [
        (429, "Eviction triggered evacuation of a VM", Granted(background=True)),
        (403, because("NamespaceTerminating"), "Gone"),
        (400, because("NamespaceTerminating"), Failed(ANY)),
        (400, because("DisruptionBudget"), Failed(ANY)),
        (403, NEGATIVE, "PDB"),
        *(
            (400, said, Failed(ANY))
            for said in (NEGATIVE, "more than one PodDisruptionBudget", "Eviction triggered evacuation")
        ),
        *((status, said, "Webhook") for status in (400, 403, 409, 429, 500) for said in (BY_WEBHOOK, BY_POLICY)),
        *((500, said, Unknown(ANY)) for said in ('admission webhook "w" is slow', "denied the request")),
        (403, "quota denied request", Failed(ANY)),
        (403, "ValidatingAdmissionPolicy 'p' is slow", Failed(ANY)),
        (403, NO_PERMISSION, Failed(ANY, forbidden=True)),
        (403, "exceeded quota: one", Failed(ANY)),
        (400, NO_PERMISSION, Failed(ANY)),
        (404, NOT_FOUND, Failed(ANY, hopeless=True)),
        (404, "404 page not found", Failed(ANY, hopeless=True)),
        (404, {"message": "404 page not found"}, Failed(ANY)),
        (400, "Precondition failed: UID in precondition: x, UID in object meta: y", Failed(ANY)),
    ],
)
def test_only_the_api_servers_own_words_with_their_own_code_say_what_became_of_a_pod(
    evict, server, status, said, meaning
):
    """Any other answer with these words is a failure.  A definite one is heard once."""
    answer = {"message": said} if isinstance(said, str) else {"body": said}
    server.fail("POST", EVICTION, status=status, **answer)

    verdict = evict()
    assert (verdict.by if isinstance(verdict, Refused) else verdict) == meaning
    if not isinstance(verdict, Unknown):
        assert [each.method for each in server.requests] == (["POST", "GET"] if meaning == "PDB" else ["POST"])


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (404, NOT_FOUND, "the API server does not offer evictions: "),
        (403, NO_PERMISSION, "no permission to create pods/eviction: "),
        (401, "", "does not accept the credentials"),
    ],
)
def test_a_failure_says_what_is_the_matter(evict, server, status, message, words):
    """With the verb and the resource; also where even the credentials end in the middle of a run."""
    server.fail("POST", EVICTION, status=status, message=message)

    assert words in evict().error


@pytest.mark.parametrize(("seconds", "more"), [(None, {}), (0, {"gracePeriodSeconds": 0})])
def test_the_request_is_the_documented_one(evict, client, server, time, seconds, more):
    """policy/v1, the pod's UID as a precondition, the annotations that others match on, and never a dry run."""
    assert evict(by=Evictions(client, time.retry_policy(), Halt(), seconds)) == GRANTED

    (request,) = server.requests
    assert request.path == "/api/v1/namespaces/default/pods/a/eviction"
    assert request.query == {}
    assert request.headers["content-type"] == "application/json"
    why = "triggered by default/PodLifeTime: older than 1 day"
    annotations = {"requested-by": "sigs.k8s.io/descheduler", "reason": why}
    assert request.body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": "default", "annotations": annotations},
        "deleteOptions": {"preconditions": {"uid": "uid-of-a"}, **more},
    }
    assert server.evicted == ["default/a"]


def test_a_pod_that_is_not_there_may_have_gone_by_this_request(evict):
    """A proxy may have sent the request before, and lost the answer."""
    verdict = evict("b")

    assert isinstance(verdict, Unknown)
    assert 'by itself or by this request (pods "b" not found)' in verdict.error


def test_a_new_pod_of_the_same_name_is_left_alone(evict, server):
    """The UID protects the successor of the pod that was meant; what became of that one is not known."""
    verdict = evict(uid="uid-of-the-old-one")

    assert isinstance(verdict, Unknown)
    assert (len(server.requests), server.evicted) == (1, [])
    assert "UID in the precondition" in verdict.error


@pytest.mark.parametrize(
    ("allowed", "observed", "said"),
    [
        pytest.param(0, [1], "The disruption budget web-0 needs 3 healthy pods and has 3 currently", id="exhausted"),
        pytest.param(1, [0], "still being processed", id="not up to date"),
        pytest.param(1, [1, 1], "more than one PodDisruptionBudget", id="two of them"),
    ],
)
def test_a_pdb_whose_answer_would_not_pass_refuses_at_once(evict, server, time, allowed, observed, said):
    """The server would have us wait for 10 s a pod, or calls it an internal error; the next pod is tried instead."""
    for number, generation in enumerate(observed):
        budget = pdb(f"web-{number}", allowed=allowed, app="web")
        server.add({**budget, "status": {**budget["status"], "observedGeneration": generation}})

    verdict = evict()

    assert isinstance(verdict, Refused)
    assert (verdict.by, time.waits, len(server.sent("POST", EVICTION))) == ("PDB", [], 1)
    assert said in text(verdict.cause)


@pytest.mark.parametrize(
    ("failure", "wait"),
    [
        ({"status": 429, "headers": {"Retry-After": "2"}}, 2.2),
        ({"status": 429}, 0.5),
        ({"status": 500}, 0.5),
        ({"status": 409}, 0.5),
        ({"status": 409, "body": None, "message": "no uid in the request"}, 0.5),
    ],
)
def test_a_busy_server_is_asked_again(evict, server, time, failure, wait):
    """Throttling and errors pass, and the server says when; so does a race for the PDB that the server has lost."""
    server.fail("POST", EVICTION, times=1, **{"body": "slow down"} | failure)

    assert evict() == GRANTED
    assert time.waits == [pytest.approx(wait)]
    assert bool(server.sent("GET", "*")) == (failure["status"] == 500)  # the others leave no doubt


def test_a_failing_webhook_call_fails_after_30_seconds(evict, server, time):
    """A webhook that cannot be reached denies nothing, so it is tried again; not for ever."""
    message = 'Internal error occurred: failed calling webhook "guard.example.com": timeout'
    server.fail("POST", EVICTION, status=500, message=message)

    verdict = evict()

    assert isinstance(verdict, Failed)
    assert message in verdict.error
    assert not verdict.forbidden
    assert 20 < sum(time.waits) < 30


def test_a_request_on_its_way_outlasts_the_deadline(evict, client, server, time):
    """It was sent in time, and what became of the pod matters."""
    server.on("POST", EVICTION, lambda _: time.sleep(10))

    assert evict(by=Evictions(client, time.retry_policy(), Halt(5, time.clock))) == GRANTED


def test_a_pods_eviction_is_tried_again_for_thirty_seconds(client, server, time):
    """With waits of one second that makes 30 tries: the limit of a live run, whatever the policy of reads is."""
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


@pytest.mark.parametrize(("is_shared", "seconds"), [(True, 2.0), (False, 0.0)])
def test_a_server_that_asks_one_thread_to_wait_is_not_asked_by_another_meanwhile(
    evict, client, server, pod, time, is_shared, seconds
):
    """Of threads that share one `Evictions`; here they take turns, on a given clock."""
    evictions = Evictions(client, time.retry_policy(seconds=2.0), Halt(), is_shared=is_shared)
    server.add(pod("b"))
    server.fail("POST", EVICTION, status=429, headers={"Retry-After": "2"}, times=1)

    assert isinstance(evict(by=evictions), Failed)
    assert evict("b", by=evictions) == GRANTED
    assert time.now == 1000.0 + seconds


def test_that_wait_ends_with_the_run(evict, client, server, time):
    """At its deadline, and nothing is sent then."""
    shared = Evictions(client, time.retry_policy(), Halt(5.0, time.clock), is_shared=True)
    server.fail("POST", EVICTION, status=429, headers={"Retry-After": "60"})

    assert [type(evict(name, by=shared)) for name in ("a", "b")] == [Failed, Failed]
    assert time.now == 1005.0
    assert len(server.sent("POST", EVICTION)) == 1


# Pods that have changed since they were decided upon


def change(server, **metadata):
    """Write pod a anew."""
    pod = server.pod("a")
    server.add({**pod, "metadata": {**pod["metadata"], **metadata}})


@pytest.fixture
def asked():
    """The pods of which protections were asked again."""
    return []


@pytest.fixture
def evict_changed(evict, server, asked):
    """Evict pod a, which is not the version any more that was decided upon; all protections give this answer."""
    change(server)

    def act(answer=None):
        def recheck(body):
            asked.append(json.loads(body)["metadata"])
            return answer or asked[-1]["resourceVersion"]

        return evict(resource_version="1001", recheck=recheck)

    return act


def test_a_pod_that_has_changed_is_read_and_goes_if_it_still_may(evict_changed, server, asked):
    """A kubelet's status changes it too."""
    assert evict_changed() == GRANTED

    sent = [each.body["deleteOptions"]["preconditions"] for each in server.sent("POST", EVICTION)]
    assert sent == [{"uid": "uid-of-a", "resourceVersion": version} for version in ("1001", "1002")]
    assert [each["uid"] for each in asked] == ["uid-of-a"]


def test_a_pod_that_has_become_protected_stays(evict_changed, server):
    """The first request changed nothing, and there is no second."""
    stays = says_no("PreferNoEviction", "now annotated")

    assert evict_changed(stays) == stays
    assert (len(server.sent("POST", EVICTION)), server.evicted) == (1, [])


def test_a_pod_that_changes_all_the_time_fails_after_three_requests(evict_changed, server, asked):
    """It is read before each further one."""
    server.on("POST", EVICTION, lambda _: change(server))

    assert isinstance(evict_changed(), Failed)
    assert (len(asked), len(server.sent("POST", EVICTION)), server.evicted) == (3, 3, [])


@pytest.mark.parametrize("there", [None, LEAVING, {"uid": "another"}], ids=["gone", "terminating", "replaced"])
def test_a_pod_that_has_changed_because_it_leaves_is_unknown(evict_changed, server, asked, there):
    """It may leave by the same request, which a proxy has sent twice; no protection is asked."""
    leave = (lambda: change(server, **there)) if there else lambda: server.remove_pod("default", "a")
    server.on("GET", "*/pods/a", lambda _: leave(), times=1)

    assert isinstance(evict_changed(), Unknown)
    assert (asked, server.evicted) == ([], [])


def test_a_pod_that_has_changed_after_a_lost_answer_is_in_doubt(evict_changed, server, asked):
    """What changed it may be the deletion; nothing more is sent."""
    server.reset("POST", EVICTION)

    assert isinstance(evict_changed(), Unknown)
    assert (asked, len(server.sent("POST", EVICTION))) == ([], 2)


def test_a_pdb_that_refuses_a_pod_which_leaves_says_nothing_of_this_request(evict, server):
    """The PDB may be used up by the same request, which a proxy has sent twice."""
    server.add(pdb("web", allowed=0, app="web"))
    server.on("POST", EVICTION, lambda _: Reply(429, because("DisruptionBudget")), times=1)
    change(server, **LEAVING)

    assert isinstance(evict(), Unknown)
