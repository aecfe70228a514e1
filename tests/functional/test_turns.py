"""One-shot runs take turns: with each other, with loops, with a laptop."""

import pytest

from tests.functional.objects import OLD, ONE, policy
from tests.functional.program import arrival, finish, wait_for
from tests.functional.test_interruption import EVICTIONS
from tests.functional.test_loop import SUCCEEDED, Loop

MEMORY = "kube-rebalancer-memory"
#: A Lease is looked at often.
OFTEN = ("--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s", "--leader-elect-retry-period=100ms")


def in_turn(rebalancer, server, *options):
    return [each for each in rebalancer.arguments(server, ONE) if each != "--no-lease"] + list(options)


OTHER = ("--leader-elect-resource-name", "mine", "--leader-elect-resource-namespace", "tools")


@pytest.mark.parametrize(("flags", "lease"), [((), ("rebalancer", "kube-system")), (OTHER, ("mine", "tools"))])
def test_a_run_holds_the_lease_while_it_evicts_and_gives_it_back(three, rebalancer, flags, lease):
    """From before it reads the cluster until its report; who names another one waits for nobody else."""
    if flags:
        three.leases.hold()
    three.leases.give_back(*lease)
    holders = []
    for method, pattern in (("GET", "/api/v1/nodes"), ("POST", "*/events")):
        three.on(method, pattern, lambda _: holders.append(three.leases.holder(*lease)))

    outcome = rebalancer(*in_turn(rebalancer, three, *flags))

    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.evicted() == ["default/a"]
    assert [bool(each) for each in holders] == [True, True]
    assert three.leases.holder(*lease) == ""
    assert three.leases.holder() == ("cronjob-1" if flags else "")


def test_what_others_have_put_into_the_metadata_stays(three, rebalancer):
    """A write replaces the whole object: taken, looked at, noted in, and given back."""
    others = {
        "labels": {"app.kubernetes.io/part-of": "tools"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "1"}],
        "finalizers": ["example.com/wait"],
    }
    for held in (three.leases.held["kube-system", "rebalancer"], three.leases.maps["kube-system", MEMORY]):
        held["metadata"] |= others

    arguments = in_turn(rebalancer, three)
    rebalancer.policy({**ONE, "trust": {}})
    outcome = rebalancer(*arguments)

    assert outcome.evicted() == ["default/a"]
    for held in (three.leases.held["kube-system", "rebalancer"], three.leases.maps["kube-system", MEMORY]):
        assert {key: held["metadata"].get(key) for key in others} == others


def test_a_run_that_does_not_get_its_turn_is_skipped_and_names_the_holder(three, rebalancer, tmp_path):
    """Exit code 0, since the next CronJob run comes anyway, and a metric for who wants to know."""
    three.leases.hold()
    metrics = tmp_path / "rebalancer.prom"

    outcome = rebalancer(*in_turn(rebalancer, three, "--lease-wait", "0", "--metrics-textfile", metrics))

    assert outcome.exit_code == 0
    assert outcome.report["skipped"] == "cronjob-1 is at work: it holds the lease kube-system/rebalancer"
    assert 'rebalancer_cycles_total{dry_run="false",result="skipped"} 1.0' in metrics.read_text().splitlines()
    assert three.evicted == []
    assert three.leases.holder() == "cronjob-1"


def hold_for_a_moment(server, then=lambda: None):
    """Let another run hold the Lease until this one has seen that twice; return what was evicted by each look."""
    server.leases.hold()
    looks = []

    def look(_):
        looks.append(list(server.evicted))
        if len(looks) > 1:
            server.leases.give_back()
            then()

    server.on("GET", "*/leases/rebalancer", look, times=2)
    return looks


def test_a_run_waits_for_the_one_before_it(three, rebalancer):
    looks = hold_for_a_moment(three)

    outcome = rebalancer(*in_turn(rebalancer, three, *OFTEN))

    assert looks == [[], []]
    assert (outcome.exit_code, three.evicted) == (0, ["default/a"])


@pytest.mark.parametrize("verb", ["get", "create"])
def test_without_the_permission_a_run_goes_on_with_an_alarm(three, rebalancer, verb):
    """The descheduler's own manifests grant no leases, and start this program; nobody may overlook it."""
    three.leases.held.clear()
    three.forbid(verb, "leases.coordination.k8s.io")

    outcome = rebalancer(*in_turn(rebalancer, three))

    assert outcome.exit_code == 0
    assert outcome.evicted() == ["default/a"]
    (warning,) = outcome.report["warnings"]
    assert f"no permission to {verb} leases.coordination.k8s.io" in warning
    assert warning in outcome.stderr
    assert warning in outcome.report["overview"]["alarms"]


def test_a_namespace_that_is_not_there_ends_a_live_run(three, rebalancer):
    """Exit 3, with the cures: nothing would keep two runs from evicting at once."""
    three.leases.held.clear()
    three.fail("POST", "*/leases", status=404, message='namespaces "kube-sytem" not found')

    outcome = rebalancer(*in_turn(rebalancer, three, "--leader-elect-resource-namespace", "kube-sytem"))

    assert outcome.exit_code == 3
    assert "create the namespace kube-sytem" in outcome.stderr
    assert "--leader-elect-resource-namespace" in outcome.stderr
    assert "--no-lease" in outcome.stderr
    assert three.evicted == []


@pytest.mark.parametrize("option", ["--dry-run", "--no-lease"])
def test_dry_runs_and_those_told_so_never_take_it(three, rebalancer, option):
    """They wait for nobody and keep nobody waiting."""
    three.leases.hold()

    outcome = rebalancer(*in_turn(rebalancer, three, option))

    assert outcome.evicted() == ["default/a"]
    assert [each.path for each in three.requests if "leases" in each.path] == []


def test_when_the_lease_is_lost_nothing_more_is_evicted(three, rebalancer):
    """The request in flight is finished; the report says why the rest stayed."""
    evicting = arrival(three, "POST", EVICTIONS)
    answer = three.stall("POST", EVICTIONS)
    arguments = in_turn(rebalancer, three)
    rebalancer.policy(policy(OLD, maxNoOfPodsToEvictTotal=3))

    process = rebalancer.start(*arguments, *OFTEN)
    wait_for(evicting, process)
    three.leases.hold("thief")
    wait_for(arrival(three, "GET", "*/leases/rebalancer"), process)
    line = process.stderr.readline()
    answer.set()
    outcome = finish(process)

    assert "the lease kube-system/rebalancer is lost: thief holds it" in line
    assert three.evicted == outcome.evicted() == ["default/a"]
    assert "the lease kube-system/rebalancer is not held any more: thief holds it" in outcome.report["warnings"]
    assert three.leases.holder() == "thief"


def test_loops_and_single_runs_share_one_lease(three, rebalancer):
    """A loop without a leader skips its cycles while a CronJob is at work, and has its turn afterwards."""
    three.leases.hold()
    loop = Loop(rebalancer, three, ONE, "--lease-wait", "0", in_turn=True)

    loop.wait_metric('rebalancer_cycles_total{dry_run="false",result="skipped"}', 2)
    assert three.evicted == []
    three.leases.give_back()
    loop.wait_metric(SUCCEEDED, 1)

    assert loop.end().exit_code == 0
    assert three.evicted[:1] == ["default/a"]
    assert three.leases.holder() == ""
