"""Evictions of pods that have changed since they were decided upon."""

import json

import pytest

from rebalancer.eviction.verdict import GRANTED, Failed, Unknown
from tests.fake_http import Reply
from tests.functional.objects import pdb
from tests.make import says_no

EVICTION = "*/eviction"
REFUSED_BY_PDB = {"kind": "Status", "message": "no", "details": {"causes": [{"reason": "DisruptionBudget"}]}}
LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


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
    server.on("POST", EVICTION, lambda _: Reply(429, REFUSED_BY_PDB), times=1)
    change(server, **LEAVING)

    assert isinstance(evict(), Unknown)
