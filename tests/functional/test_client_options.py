"""The way to the API server, with kubectl's flags: which one, whom to act as, how long to wait, what may be read."""

import json

import pytest

from tests.fake_api_server import FakeApiServer
from tests.functional.objects import OLD, ONE, old_pods, policy, two_nodes_with


@pytest.fixture
def secure():
    """The same behind TLS, with a certificate that nobody trusts."""
    with FakeApiServer(two_nodes_with(*old_pods("a", "b")), tls=True) as running:
        yield running


def test_a_kubeconfigs_own_words_hold_until_the_flags_say_otherwise(two, rebalancer):
    """`as`, `as-groups` and `as-user-extra`; without them the run would act with more rights than were meant.

    Lists, evictions and Events say it, each group in a header of its own, as the API server takes them.
    """
    me = {"token": "the-token", "as": "deputy", "as-groups": ["few"], "as-user-extra": {"Scopes": ["view", "list"]}}
    kubeconfig = two.kubeconfig(rebalancer.folder, user=me)
    run = ("run", "--no-lease", "--policy", rebalancer.policy(ONE), "--kubeconfig", kubeconfig)
    names = ("impersonate-user", "impersonate-group", "impersonate-extra-scopes")

    def told():
        found = {tuple(each.headers[name] for name in names) for each in two.requests}
        two.requests.clear()
        return found

    assert rebalancer(*run, "--dry-run", "--request-timeout", "0").exit_code == 0
    assert told() == {("deputy", "few", "view\nlist")}

    groups = ("--as-group", "ops", "--as-group=night shift", "--request-timeout", "10")
    assert rebalancer(*run, "--yes", "--as", "boss", *groups).exit_code == 0
    assert {each.method for each in two.requests} == {"GET", "POST"}
    assert told() == {("boss", "ops\nnight shift", "view\nlist")}


@pytest.mark.parametrize(("seconds", "exit_code"), [("9223372036", 0), ("99999999999", 2)])
def test_a_number_of_seconds_has_the_bounds_of_a_duration(two, rebalancer, seconds, exit_code):
    """No socket can wait for longer."""
    outcome = rebalancer.run(two, ONE, "--request-timeout", seconds)

    assert (outcome.exit_code, "is too long a duration" in outcome.stderr) == (exit_code, exit_code != 0)


@pytest.mark.parametrize("authority", [None, "/nowhere/ca.crt"])
def test_a_certificate_is_not_looked_at_if_the_command_line_says_so(secure, rebalancer, authority):
    """With a warning that says what that means; an authority in the kubeconfig is left aside, as in kubectl."""
    kubeconfig = secure.kubeconfig(rebalancer.folder)
    document = json.loads(kubeconfig.read_text())
    document["clusters"][0]["cluster"] |= {"certificate-authority": authority} if authority else {}
    kubeconfig.write_text(json.dumps(document))
    run = ("run", "--dry-run", "--policy", rebalancer.policy(ONE), "--kubeconfig", kubeconfig, "-o", "json")

    looked, skipped = rebalancer(*run), rebalancer(*run, "--insecure-skip-tls-verify")

    assert looked.exit_code == 3
    assert skipped.evicted() == ["default/a"]
    (line,) = skipped.stderr.splitlines()
    assert line.endswith(
        "--insecure-skip-tls-verify: the API server's certificate is not looked at; whoever stands in between can "
        "take the credentials and make up the answers"
    )


def test_no_cluster_at_all(rebalancer):
    for command in (("run", "--policy", rebalancer.policy(ONE)), ("snapshot", "--output", "file.json")):
        outcome = rebalancer(*command)

        assert (outcome.exit_code, outcome.stdout) == (3, "")
        assert all(word in outcome.stderr for word in ("no cluster", "--kubeconfig", "KUBECONFIG"))


def test_all_missing_permissions_are_named_at_once_with_their_rules(two, rebalancer):
    """So that a role is mended in one go; PDBs must be listed whatever the policy."""
    for resource in ("nodes", "pods", "poddisruptionbudgets.policy"):
        two.forbid("list", resource)

    outcome = rebalancer.run(two, policy(OLD))

    assert (outcome.exit_code, outcome.stdout, two.evicted) == (3, "", [])
    assert (
        "no permission to list nodes, pods, poddisruptionbudgets.policy: add to the ClusterRole "
        '{apiGroups: [""], resources: [nodes, pods], verbs: [list]}, '
        "{apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [list]}"
    ) in outcome.stderr
