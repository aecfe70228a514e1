"""Evictions of pods that have changed since they were decided upon."""

import json

import pytest

from rebalancer.eviction.verdict import GRANTED, Failed, Unknown
from tests.fake_http import Reply
from tests.functional.objects import pdb
from tests.make import says_no
from tests.unit.kube.conftest import WHO

EVICTION = "*/eviction"
REFUSED_BY_PDB = {"kind": "Status", "message": "no", "details": {"causes": [{"reason": "DisruptionBudget"}]}}


def again(answer):
    """Recheck a pod that has changed; what it was asked about is kept."""
    asked = []

    def recheck(body):
        asked.append(json.loads(body)["metadata"])
        return answer or asked[-1]["resourceVersion"]

    return recheck, asked


def versioned(evictions, server, recheck):
    server.add(server.pod("a") | {})
    return evictions.evict("default", "a", "uid-of-a", **WHO | {"resource_version": "1001", "recheck": recheck})


def test_a_pod_that_has_changed_is_read_and_goes_if_it_still_may(evictions, evict, server):
    """A kubelet's status changes it too."""
    recheck, asked = again(None)

    assert versioned(evictions, server, recheck) == GRANTED

    sent = [each.body["deleteOptions"]["preconditions"] for each in server.sent("POST", EVICTION)]
    assert sent == [{"uid": "uid-of-a", "resourceVersion": version} for version in ("1001", "1002")]
    assert [each["uid"] for each in asked] == ["uid-of-a"]


def test_a_pod_that_has_become_protected_stays(evictions, evict, server):
    """The first request changed nothing, and there is no second."""
    stays = says_no("PreferNoEviction", "now annotated")
    recheck, _ = again(stays)

    assert versioned(evictions, server, recheck) == stays
    assert (len(server.sent("POST", EVICTION)), server.evicted) == (1, [])


def test_a_pod_that_changes_all_the_time_fails_after_three_requests(evictions, evict, server):
    """It is read before each further one."""
    recheck, asked = again(None)
    server.on("POST", EVICTION, lambda _: server.add(server.pod("a")))

    verdict = versioned(evictions, server, recheck)

    assert isinstance(verdict, Failed)
    assert (len(asked), len(server.sent("POST", EVICTION)), server.evicted) == (3, 3, [])


@pytest.mark.parametrize("change", ["gone", "terminating", "replaced"])
def test_a_pod_that_has_changed_because_it_leaves_is_unknown(evictions, evict, server, change):
    """It may leave by the same request, which a proxy has sent twice; no protection is asked."""
    recheck, asked = again(None)

    def leave(_):
        pod = server.pod("a")
        more = {"terminating": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "replaced": {"uid": "another"}}
        server.add({**pod, "metadata": {**pod["metadata"], **more.get(change, {})}})

    server.on("POST", EVICTION, leave, times=1)
    if change == "gone":
        server.on("GET", "*/pods/a", lambda _: server.remove_pod("default", "a"), times=1)

    assert isinstance(
        evictions.evict("default", "a", "uid-of-a", **WHO | {"resource_version": "1001", "recheck": recheck}), Unknown
    )
    assert (asked, server.evicted) == ([], [])


def test_a_pod_that_has_changed_after_a_lost_answer_is_in_doubt(evictions, evict, server):
    """What changed it may be the deletion; nothing more is sent."""
    server.reset("POST", EVICTION)
    server.on("POST", EVICTION, lambda _: server.add(server.pod("a")), times=1)

    verdict = evictions.evict("default", "a", "uid-of-a", **WHO | {"resource_version": "1001"})

    assert isinstance(verdict, Unknown)
    assert len(server.sent("POST", EVICTION)) == 2


def test_a_pdb_that_refuses_a_pod_which_leaves_says_nothing_of_this_request(evict, server):
    """The PDB may be used up by the same request, which a proxy has sent twice."""
    server.add(pdb("web", allowed=0, app="web"))
    server.on("POST", EVICTION, lambda _: Reply(429, REFUSED_BY_PDB), times=1)
    pod = server.pod("a")
    server.add({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})

    assert isinstance(evict(), Unknown)
