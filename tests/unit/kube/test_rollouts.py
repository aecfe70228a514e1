"""Restarts of rollouts: what is written, only over what was read, and what becomes of answers."""

from datetime import UTC, datetime

import pytest

from rebalancer.errors import CycleStopped
from rebalancer.eviction.verdict import Failed, Granted, Refused, Unknown
from rebalancer.kube.halt import Halt
from rebalancer.kube.rollouts import RESTARTED_AT, Rollouts
from tests import make
from tests.fake_http import Reply
from tests.fake_patches import patched

POD = make.pod("web-1", owners="web-5d9")
PATH, POD_PATH = "/apis/apps/v1/namespaces/default/deployments/web", "/api/v1/namespaces/default/pods/web-1"
NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)


def deployment(template=None, **spec):
    return {
        "kind": "Deployment",
        "metadata": {"name": "web", "resourceVersion": "7", "generation": 2},
        "spec": {"replicas": 1, "template": template or {}, **spec},
        "status": {"replicas": 1, "updatedReplicas": 1, "observedGeneration": 2},
    }


def restarted(client, server, item=None, answer=None, pod=None):
    """The verdict of a restart."""
    server.on("GET", POD_PATH, lambda _: pod or Reply(200, {"kind": "Pod", "metadata": {"uid": POD.uid}}))
    server.on("GET", PATH, lambda _: Reply(200, item or deployment()))
    server.on("PATCH", PATH, lambda _: answer or Reply(200, {}))
    return Rollouts(client, Halt(), lambda: NOW).restart(POD, "web")


def sent(server):
    return [each.body for each in server.requests if each.method == "PATCH"]


@pytest.mark.parametrize(
    "template",
    [{}, {"metadata": {}}, {"metadata": {"annotations": {"a": "b"}}}, {"metadata": {"labels": {"app": "w"}}}],
)
def test_only_the_annotation_of_the_template_changes(client, server, template):
    """And only of the version that was read; all else in the template stays."""
    before = deployment(template)
    assert restarted(client, server, before) == Granted(restarted="web")

    after = patched(before, sent(server)[0])
    metadata = template.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), RESTARTED_AT: "2026-01-15T12:00:00Z"}
    assert after == {
        **before,
        "spec": {**before["spec"], "template": {"metadata": {**metadata, "annotations": annotations}}},
    }
    assert sent(server)[0][0] == {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}


@pytest.mark.parametrize(
    ("pod", "item", "by"),
    [
        (Reply(404, {}), None, "Gone"),
        (Reply(200, {"kind": "Pod", "metadata": {"uid": "another"}}), None, "Gone"),
        (Reply(200, {"metadata": {"uid": POD.uid, "deletionTimestamp": "2026-01-15T12:00:00Z"}}), None, "Gone"),
        (None, deployment(replicas=2), "Rollout"),
        (None, deployment(paused=True), "Rollout"),
    ],
)
def test_nothing_is_written_where_things_have_changed(client, server, pod, item, by):
    """The pod has gone, or the Deployment is not as it was."""
    verdict = restarted(client, server, item, pod=pod)

    assert isinstance(verdict, Refused)
    assert (verdict.by, sent(server)) == (by, [])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Reply(403, {}), Failed),
        (Reply(409, {}), Failed),
        (Reply(422, {}), Failed),
        (Reply(500, {}), Unknown),
        (Reply(0, {}, lost=True), Unknown),
    ],
)
def test_an_answer_that_is_lost_leaves_a_doubt(client, server, answer, expected):
    """A refusal does not; in both cases nothing is sent twice."""
    verdict = restarted(client, server, answer=answer)

    assert isinstance(verdict, expected)
    assert "web" in verdict.error
    assert len(sent(server)) == 1


def test_nothing_is_asked_once_the_run_is_told_to_end(client, server):
    halt = Halt()
    halt.signal("SIGTERM")

    with pytest.raises(CycleStopped):
        Rollouts(client, halt).restart(POD, "web")
    assert server.requests == []
