"""`plan`, `apply` and `diff` on a real HTTP server and on files."""

import json
import math
import re

import pytest
import yaml

from rebalancer.report.plan import policy_hash
from tests.commands import ROOT
from tests.functional.objects import OLD, old_pods, pdb, pod, policy, two_nodes_with
from tests.functional.program import finish
from tests.functional.test_usage import by_usage, low

CLUSTER = ROOT / "examples" / "cluster.json"
WHO = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "this-cluster"}}


@pytest.fixture
def three(three):
    """A cluster with three old pods, which tells who it is."""
    three.add(WHO)
    return three


@pytest.fixture
def planned(three, rebalancer):
    path = rebalancer.folder / "plan.json"
    done = command(rebalancer, three, "plan", "--out", path)
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (0, f"{path}: 3 moves")
    return path


def of_pods(rebalancer, *names, **more):
    """A file with a cluster of old pods, without what they use."""
    return rebalancer.cluster(*two_nodes_with(*old_pods(*names)), **more)


def command(rebalancer, server, *arguments, of=None):
    lease = ("--no-lease",) if arguments[0] == "apply" else ()
    return rebalancer.at(server, *arguments, "--policy", rebalancer.policy(of or policy(OLD)), *lease)


def test_a_plan_holds_the_moves_and_their_premises_and_no_credentials(three, rebalancer, planned):
    """In order; the policy is there without what its URL has before the @."""
    document = json.loads(planned.read_text())

    assert [each["name"] for each in document["moves"]] == ["a", "b", "c"]
    assert all(each["uid"] and each["reason"] and each["node"] for each in document["moves"])
    assert document["cluster"]["uid"] == "this-cluster"
    assert "SystemCriticalPods" in next(iter(document["protections"].values()))
    secret = {"source": "Prometheus", "prometheus": {"url": "https://me:hush@prometheus.example"}}
    told = command(rebalancer, three, "plan", of=policy(OLD, metricsProviders=[secret]))
    assert "prometheus.example" in told.stdout
    assert "hush" not in told.stdout


def test_the_same_cluster_gives_the_same_plan(rebalancer):
    file, path = of_pods(rebalancer, "a", "b", "young"), rebalancer.folder / "plan.yaml"
    asked = ("plan", "--policy", rebalancer.policy(policy(OLD)), "--snapshot", file)

    first, second = (rebalancer(*asked).stdout for _ in range(2))
    rebalancer(*asked, "--out", path)

    assert first == second
    assert yaml.safe_load(path.read_text()) == json.loads(first)


@pytest.mark.parametrize(
    "text",
    [
        "{policy} # said in JSON, and a comment after it",
        "{policy}\n---\n{{}}",
        "{{nodeSelector: '', {fields}}}",
        "x: {{on: 1, 1: x, 2026-01-31: y}}\nz: 2026-02-30\n<<: {policy}",
    ],
    ids=["json", "two documents", "flow", "keys and dates"],
)
def test_a_policy_in_any_spelling_is_planned_and_applied(rebalancer, text):
    """Whatever the reader of policies takes has a hash and a copy."""
    spelled, path = json.dumps(policy(OLD)), rebalancer.folder / "plan.json"
    given = rebalancer.folder / "policy.yaml"
    given.write_text(text.format(policy=spelled, fields=spelled[1:-1]))
    asked = ("--policy", given, "--snapshot", rebalancer.cluster(*two_nodes_with(*old_pods("a")), WHO))

    assert rebalancer("plan", *asked, "--out", path).exit_code == 0
    assert json.loads(path.read_text())["policy"]["document"]["kind"] == "DeschedulerPolicy"
    assert rebalancer("apply", path, *asked, "--dry-run").exit_code == 0
    assert rebalancer("run", *asked, "--output", "html").exit_code == 0


def test_what_pods_say_at_length_is_cut(rebalancer):
    """Or whoever may create pods and PDBs would keep others from planning; PDBs may come in any order."""
    failed, path = pod("a", phase="Failed"), rebalancer.folder / "plan.json"
    failed["metadata"]["ownerReferences"][0]["name"] = "o" * 5_000
    failed["status"]["reason"] = "R" * 5_000
    budgets = [pdb(f"pdb-{number:02}", allowed=1) for number in range(70, 0, -1)]
    file = rebalancer.cluster(*two_nodes_with(failed), *budgets, WHO)
    asked = (
        "--policy",
        rebalancer.policy(policy(("RemoveFailedPods", {"minPodLifetimeSeconds": 0}))),
        "--snapshot",
        file,
    )

    assert rebalancer("plan", *asked, "--out", path).exit_code == 0
    (move,) = json.loads(path.read_text())["moves"]
    assert (len(move["reason"]), len(move["owner"]["name"])) == (4096, 4096)
    assert [each["name"] for each in move["budgets"]] == [f"pdb-{number:02}" for number in range(1, 65)]
    assert json.loads(rebalancer("apply", path, *asked, "--dry-run", "-o", "json").stdout)["evictions"]


def test_apply_evicts_what_is_planned_and_still_there(three, rebalancer, planned):
    """One pod has gone and come again under its name, and a new one is old enough too: neither goes."""
    for name in ("a", "z"):
        three.add(pod(name, age=7 * 86_400, uid=f"{name}-later"))

    done = command(rebalancer, three, "apply", planned, "--yes", "--output", "json")

    assert (done.exit_code, list(three.evicted)) == (0, ["default/b", "default/c"])
    applied = json.loads(done.stdout)["plan"]
    assert (applied["moves"], applied["evicted"]) == (3, 2)
    assert [(each["name"], each["reason"]) for each in applied["skipped"]] == [
        ("a", "it is gone: evicted already, or deleted")
    ]


FREEZE = policy(OLD, freeze=[{"from": "2000-01-01", "to": "9998-12-30"}])


@pytest.mark.parametrize(
    ("wanted", "most", "happens", "why"),
    [
        (FREEZE, None, lambda _: None, "a freeze lasts until 9998-12-31"),
        (policy(OLD, trust={}), None, lambda server: server.leases.remember({"pause": "{}"}), "all is paused"),
        (policy(OLD), 1, lambda _: None, "1 of 1 evictions of this cycle are used"),
        (policy(OLD), None, lambda server: server.forbid("create", "pods/eviction"), "no permission to create"),
        (by_usage(low({"source": "KubernetesMetrics"})), None, lambda _: None, "there is no metrics-server"),
    ],
    ids=["frozen", "paused", "limit", "stopped", "failed"],
)
def test_what_was_not_reached_is_not_said_to_be_gone_or_cool(three, rebalancer, planned, wanted, most, happens, why):
    """Nor that --force-premises would help."""
    document = json.loads(planned.read_text())
    document["policy"]["hash"] = policy_hash(json.dumps(wanted))
    document["options"]["maxEvictions"] = most
    for move in document["moves"]:
        move["strategy"] = next(iter(wanted["profiles"][0]["plugins"].values()))["enabled"][0]
    planned.write_text(json.dumps(document))
    happens(three)

    done = command(rebalancer, three, "apply", planned, "--yes", "--output", "json", of=wanted)

    skipped = [each["reason"] for each in json.loads(done.stdout)["plan"]["skipped"]]
    assert len(skipped) == 3 - len(three.evicted)
    assert [why in each for each in skipped] == [True] * len(skipped)


def test_a_part_of_it(three, rebalancer, planned):
    """Patterns pick by namespace and name; a dry run says what would go."""
    asked = ("apply", planned, "--only", "default/[ab]", "--exclude", "*/a", "--output", "json")

    dry = command(rebalancer, three, *asked, "--dry-run")
    assert ([each["name"] for each in json.loads(dry.stdout)["evictions"]], list(three.evicted)) == (["b"], [])

    assert command(rebalancer, three, *asked, "--yes").exit_code == 0
    assert list(three.evicted) == ["default/b"]

    again = command(rebalancer, three, "apply", planned, "--yes")  # what is done is skipped
    assert (again.exit_code, len(three.evicted)) == (0, 3)
    assert "of the plan, default/b is skipped: it is gone" in again.stdout


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"cluster": {"uid": "another"}}, "the plan is for another cluster", id="cluster"),
        pytest.param({"cluster": {}}, "the plan does not tell which cluster it is", id="no-cluster"),
        pytest.param({"created": "2020-01-01T00:00:00Z"}, "and --max-age is 30 min: make a new one", id="old"),
        pytest.param({"created": "2100-01-01T00:00:00Z"}, "in the future: look at the clocks", id="future"),
        pytest.param({"moves": [{"name": 1}]}, "moves.0.namespace: field required", id="types"),
        pytest.param({"options": {"hold": "soon"}}, "options.hold: 'soon' is not a duration", id="hold"),
        pytest.param({"more": 1}, "more: extra inputs are not permitted", id="unknown"),
        pytest.param({"kind": "Report"}, "is not a plan but of the kind 'Report'", id="kind"),
        pytest.param({"targets": {"Low": {"cpu": math.nan}}}, "targets.Low.cpu: input should be a finite", id="number"),
        pytest.param({}, "was made with another policy", id="policy"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(three, rebalancer, planned, fields, message):
    """Before anything is evicted, with the cure."""
    planned.write_text(json.dumps(json.loads(planned.read_text()) | fields))

    other = None if fields else policy(OLD, maxNoOfPodsToEvictTotal=1)
    done = command(rebalancer, three, "apply", planned, "--yes", of=other)

    assert (done.exit_code, list(three.evicted)) == (2, [])
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pod_under_the_name_of_another_is_refused(three, rebalancer, planned):
    """Whoever reads a plan, or picks by `--only`, goes by names."""
    plan = json.loads(planned.read_text())
    plan["moves"][0]["uid"] = "uid-default-c"
    planned.write_text(json.dumps({**plan, "moves": plan["moves"][:1]}))

    done = command(rebalancer, three, "apply", planned, "--yes", "--only", "default/a")

    assert (done.exit_code, list(three.evicted)) == (2, [])
    assert "the pod that it calls default/a is default/c by its UID" in done.stderr


def test_a_summary_escapes_what_others_wrote(three, rebalancer):
    """Markdown that a reason or a name holds does nothing."""
    done = command(rebalancer, three, "plan", "--summary", "markdown")

    assert done.stdout.startswith("### Plan: 3 pods to evict\n")
    assert "| default/a | n1 |" in done.stdout
    assert "\\>" in done.stdout


@pytest.mark.parametrize(("most", "code"), [(5, 10), (0, 0)])
def test_the_exit_code_tells_whether_there_is_something_to_do(three, rebalancer, most, code):
    done = command(rebalancer, three, "plan", "--max-evictions", most, "--detailed-exitcode")

    assert done.exit_code == code


def test_two_policies_on_one_file_are_compared(rebalancer):
    """One takes two pods and the other one; both name them.

    Moves of a strategy that failed are missing from the plans, so these must not pass for the same.
    """
    file = of_pods(rebalancer, "a", "b", "young")
    paths = [rebalancer.folder / f"most-{total}.json" for total in (1, 2)]
    for total, path in enumerate(paths, 1):
        path.write_text(json.dumps(policy(OLD, maxNoOfPodsToEvictTotal=total)))

    differ = rebalancer("diff", *paths, "--snapshot", file, "--detailed-exitcode")
    same = rebalancer("diff", paths[0], paths[0], "--snapshot", file, "--detailed-exitcode")
    document = json.loads(rebalancer("diff", *paths, "--snapshot", file, "--output", "json").stdout)

    assert (differ.exit_code, differ.stdout.split("  ")[0]) == (10, "+ default/b")
    assert (same.exit_code, same.stdout) == (0, "The two plans make the same moves.\n")
    assert [each["name"] for each in document["onlySecond"]] == ["b"]
    failing = rebalancer.policy(by_usage(low({"source": "KubernetesMetrics"})))
    assert rebalancer("diff", failing, failing, "--snapshot", file, "--detailed-exitcode").exit_code == 1


def test_two_snapshots_and_two_plans_are_compared(rebalancer):
    """A day later one pod is gone and another one has grown old; from files of plans it is the same comparison."""
    asked = rebalancer.policy(policy(OLD))
    files = [of_pods(rebalancer, *pair, "young", name=f"day-{pair[0]}.json") for pair in ("ab", "bc")]
    plans = [each.with_suffix(".plan.json") for each in files]
    for file, plan in zip(files, plans, strict=True):
        rebalancer("plan", "--policy", asked, "--snapshot", file, "--out", plan)

    snapshots = rebalancer("diff", *files, "--policy", asked, "--output", "json")
    of_plans = rebalancer("diff", *plans, "--output", "json")

    document = json.loads(snapshots.stdout)
    assert [[each["name"] for each in document[side]] for side in ("onlyFirst", "onlySecond")] == [["a"], ["c"]]
    assert json.loads(of_plans.stdout) == document
    assert rebalancer("diff", *files, "--policy", asked, "--snapshot", files[0]).exit_code == 2
    assert "there is no plan nothing" in rebalancer("diff", plans[0], "nothing").stderr


SCHEDULER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.mark.parametrize(
    ("arguments", "given", "says"),
    [
        (("diff", "F", "F", "--policy", "-"), policy(OLD), "make the same moves"),
        (("diff", "F", "F", "--policy", "P", "--scheduler-config", "-"), SCHEDULER, "make the same moves"),
        (("doctor", "--snapshot", "F", "--policy", "P", "--scheduler-config", "-"), SCHEDULER, "scheduler: configured"),
        (("diff", "-", "-"), policy(OLD), "only one of A, B"),
        (("diff", "P", "P", "--snapshot", "-"), {}, "--snapshot never"),
    ],
)
def test_what_comes_by_standard_input_counts_for_both_dry_runs(rebalancer, arguments, given, says):
    """And stands for one thing alone."""
    steered, source = policy(low(None), steering={}), rebalancer.folder / "given.json"
    names = {"F": of_pods(rebalancer, "a"), "P": rebalancer.policy(steered)}
    source.write_text(json.dumps(given))

    with source.open() as stdin:
        done = finish(rebalancer.start(*(names.get(each, each) for each in arguments), stdin=stdin))

    assert says in done.stdout + done.stderr, done


def test_nodes_are_shown_as_each_policy_counts_them(rebalancer):
    """A policy by requests and one by usage do not begin with the same figures."""
    requests = rebalancer.policy(policy(low(None)))
    told = rebalancer("diff", requests, "demo", "--snapshot", CLUSTER).stdout

    (line,) = (each for each in told.splitlines() if each.startswith("  node-12: "))
    assert line.startswith("  node-12: cpu 1 -> 1 %, memory 0 -> 0 %")
    assert line.endswith(" by the first, cpu 4 -> 34 %, memory 7 -> 14 % by the second")


def test_two_profiles_with_one_strategy_are_told_apart(rebalancer):
    """In the plan, and so on its page, and where plans are compared."""
    document = policy(low(None, "cpu"))
    document["profiles"] += policy(low(None, "memory"), name="second")["profiles"]
    both = rebalancer.policy(document)

    plan = rebalancer("plan", "--policy", both, "--snapshot", CLUSTER).report
    told = rebalancer("diff", both, "demo", "--snapshot", CLUSTER).stdout

    names = ["tidy/LowNodeUtilization", "second/LowNodeUtilization"]
    assert plan["targets"] == dict(zip(names, ({"cpu": 50}, {"memory": 50}), strict=True))
    assert list(dict.fromkeys(each["strategy"] for each in plan["nodes"])) == names
    (line,) = (each for each in told.splitlines() if each.startswith("  node-01: "))
    assert re.findall(r"cpu \d+ -> \d+", line) == ["cpu 52 -> 50", "cpu 50 -> 50", "cpu 80 -> 80"]


def test_a_file_without_pods_is_warned_of(rebalancer):
    """An empty list of pods is something else."""
    asked, nodes = rebalancer.policy(policy(OLD)), two_nodes_with()
    empty = {"apiVersion": "v1", "kind": "PodList", "items": []}
    files = (rebalancer.cluster(*nodes, name="nodes.json"), rebalancer.cluster(*nodes, empty, name="both.json"))

    told = [rebalancer("plan", "--policy", asked, "--snapshot", file).stderr for file in files]

    assert ["the snapshot holds no pods" in each for each in told] == [True, False]
