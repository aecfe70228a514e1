"""Restarts of rollouts: what is written, only over what was read, and what becomes of answers."""

from datetime import UTC, datetime

import pytest

from rebalancer.errors import CycleStopped
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Failed, Granted, Refused, Unknown, refused
from rebalancer.kube.rollouts import RESTARTED_AT, Rollouts
from rebalancer.kube.tries import Halt
from tests import make
from tests.fake_http import Reply
from tests.fake_rules import patched

POD = make.pod("web-1", owners="web-5d9")
PATH, POD_PATH = "/apis/apps/v1/namespaces/default/deployments/web", "/api/v1/namespaces/default/pods/web-1"
NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)


def live(uid, **metadata):
    return {"kind": "Pod", "metadata": {"name": "web-1", "namespace": "default", "uid": uid, **metadata}, "spec": {}}


def deployment(template=None, **spec):
    return {
        "kind": "Deployment",
        "metadata": {"name": "web", "resourceVersion": "7", "generation": 2},
        "spec": {"replicas": 1, "template": template or {"metadata": {}}, **spec},
        "status": {"replicas": 1, "updatedReplicas": 1, "observedGeneration": 2},
    }


def kept(_pod):
    return None


def restarted(client, server, item=None, answer=None, pod=None, recheck=kept):
    server.on("GET", POD_PATH, lambda _: pod or Reply(200, live(POD.uid)))
    server.on("GET", PATH, lambda _: Reply(200, item or deployment()))
    server.on("PATCH", PATH, lambda _: answer or Reply(200, deployment()))
    return Rollouts(client, Halt(), lambda: NOW).restart(POD, "web", recheck)


def sent(server):
    return [each.body for each in server.requests if each.method == "PATCH"]


@pytest.mark.parametrize(
    "template", [{"metadata": {}}, {"metadata": {"annotations": {"a": "b"}}}, {"metadata": {"labels": {"app": "w"}}}]
)
def test_only_the_annotation_of_the_template_changes(client, server, template):
    """And only of the version that was read; all else in the template stays."""
    before = deployment(template)
    assert restarted(client, server, before) == Granted(restarted="web")

    after = patched(before, sent(server)[0])
    metadata = template["metadata"]
    annotations = {**metadata.get("annotations", {}), RESTARTED_AT: "2026-01-15T12:00:00Z"}
    there = {"template": {"metadata": {**metadata, "annotations": annotations}}}
    assert after == {**before, "spec": {**before["spec"], **there}}
    assert sent(server)[0][0] == {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}


@pytest.mark.parametrize(
    ("pod", "item", "by"),
    [
        (Reply(404, {}), None, "Gone"),
        (Reply(200, live("another")), None, "Gone"),
        (Reply(200, live(POD.uid, deletionTimestamp="2026-01-15T12:00:00Z")), None, "Gone"),
        (None, deployment(replicas=2), "Rollout"),
        (None, deployment(paused=True), "Rollout"),
    ],
)
def test_nothing_is_written_where_things_have_changed(client, server, pod, item, by):
    """The pod has gone, or the Deployment is not as it was."""
    verdict = restarted(client, server, item, pod=pod)

    assert isinstance(verdict, Refused)
    assert (verdict.by, sent(server)) == (by, [])


@pytest.mark.parametrize("refusal", [None, refused(Code.MIN_POD_AGE)])
def test_of_a_pod_that_has_changed_every_protection_is_asked_again(client, server, refusal):
    """As before an eviction: an annotation may protect it by now."""
    asked = []

    def recheck(pod):
        asked.append(pod.evict_annotation)
        return refusal

    changed = live(POD.uid, resourceVersion="8", annotations={"descheduler.alpha.kubernetes.io/evict": "true"})
    verdict = restarted(client, server, pod=Reply(200, changed), recheck=recheck)

    assert asked == [True]
    assert verdict == (refusal or Granted(restarted="web"))
    assert len(sent(server)) == (0 if refusal else 1)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Reply(403, {}), Failed),
        (Reply(409, {}), Failed),
        (Reply(422, {}), Failed),
        (Reply(500, {}), Unknown),
        (Reply(200, "<html>Please log in</html>"), Unknown),
        (Reply(0, {}, lost=True), Unknown),
    ],
)
def test_an_answer_that_is_lost_leaves_a_doubt(client, server, answer, expected):
    """A refusal does not; in both cases nothing is sent twice."""
    verdict = restarted(client, server, answer=answer)

    assert isinstance(verdict, expected)
    assert "web" in verdict.error
    assert len(sent(server)) == 1


def test_an_end_that_comes_while_it_looks_stops_the_patch(client, server):
    """A signal, or a Lease that is lost meanwhile; after it nothing is asked."""
    halt = Halt()
    server.on("GET", PATH, lambda _: halt.signal("SIGTERM"), times=1)
    server.on("GET", PATH, lambda _: Reply(200, deployment()))
    server.on("GET", POD_PATH, lambda _: Reply(200, live(POD.uid)))

    verdict = Rollouts(client, halt).restart(POD, "web", kept)

    assert verdict == Failed("the Deployment web was not restarted: not asked for: stopped by SIGTERM")
    assert sent(server) == []
    asked = len(server.requests)
    with pytest.raises(CycleStopped):
        Rollouts(client, halt).restart(POD, "web", kept)
    assert len(server.requests) == asked
