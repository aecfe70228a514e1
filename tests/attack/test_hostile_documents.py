# ruff: noqa: RUF001  full-width digits are the point
"""Documents made to break the program: each is read, or refused in a line; none ends it in a traceback or a crash."""

import gzip
import json
import random
from pathlib import Path

import pytest
import yaml

from rebalancer.errors import NoCredentials, RebalancerError
from rebalancer.kube.answers import HttpAnswer
from rebalancer.kube.client import Client
from rebalancer.kube.config import connect, read
from rebalancer.kube.lists import read_list
from rebalancer.kube.wire.collect import Collection
from rebalancer.report.plan import read_plan
from rebalancer.run.snapshot_file import read_snapshot_file
from rebalancer.untrusted import documents
from rebalancer.untrusted.documents import Unreadable, read_bounded, unpacked
from tests.attack.protected_objects import paths, spoiled
from tests.attack.seeds import seeds
from tests.fake_api_server import FakeApiServer
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.program import finish

DEEP = 100_000
BOMB = "\n".join(
    ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    + [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
)
LONG = "x" * 10_000_000
DIGITS = "9" * 5_000

#: Documents that no reader takes, by what is wrong with them.
HOSTILE = {
    "flow sequences": "a: " + "[" * DEEP + "]" * DEEP,
    "flow maps": "{a: " * DEEP + "}" * DEEP,
    "block sequences": "- " * DEEP + "a",
    "block maps": "\n".join(" " * depth + "a:" for depth in range(1000)),
    "JSON arrays": "[" * DEEP + "]" * DEEP,
    "JSON objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "JSON objects in a field": '{"kind":"List","x":' + '{"a":' * DEEP + "1" + "}" * DEEP + "}",
    "JSON lists in lists": '{"kind":"List","items":[' * 3000 + "]}" * 3000,
    "multiplying aliases": BOMB,
    "a long text by aliases": f"a: &a {LONG}\nb: [*a, *a]",
    "an alias in itself": "a: &a [*a]",
    "merges in merges": BOMB.replace("[", "{<<: [", 1).replace("]", "]}", 1),
    "an integer of 5,000 digits": f"a: {DIGITS}",
    "an endless text": f'"{LONG}',
    "a tag without its value": "a: !!bool x",
    "a number without a digit": "a: !!int ''",
    "a word tagged as a time": "a: !!timestamp x",
}


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "hostile"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def in_a_line(error):
    return "\n" not in str(error) and len(str(error)) < 2_000


@pytest.mark.parametrize("kind", HOSTILE)
def test_as_a_snapshot_file_a_kubeconfig_a_plan_or_a_policy(file, rebalancer, kind):
    """Refused in a line that names the file, packed or not; of a policy every line of what is said is short."""
    plain = HOSTILE[kind].encode()
    for read_file, content in (
        (read_snapshot_file, plain),
        (read_snapshot_file, gzip.compress(plain, 1)),
        (lambda path: read([Path(path)]), plain),
        (lambda path: read_plan(Path(path).read_text(), path), plain),
    ):
        with pytest.raises(RebalancerError, match="hostile") as caught:
            read_file(file(content))
        assert in_a_line(caught.value)

    outcome = rebalancer("validate", "--policy", file(plain))
    assert outcome.exit_code == 2
    assert all(len(line) < 2_000 for line in outcome.stderr.splitlines())


def test_in_a_process_of_its_own(file, rebalancer):
    """The stack is what it is outside of tests: policy, snapshot and kubeconfig end with their own exit codes."""
    hostile = file(HOSTILE["flow sequences"])
    commands = [
        ("validate", "--policy", hostile),
        ("run", "--policy", "demo", "--snapshot", hostile),
        ("run", "--policy", "demo", "--dry-run", "--kubeconfig", hostile),
    ]
    outcomes = [finish(each) for each in [rebalancer.start(*command) for command in commands]]

    assert [outcome.exit_code for outcome in outcomes] == [2, 2, 3]
    assert not any("Traceback" in outcome.stderr for outcome in outcomes)


PAGES = {kind: HOSTILE[kind] for kind in ("JSON arrays", "JSON objects", "JSON objects in a field")} | {
    "an item nested too deep": '{"items":[{"metadata":{"labels":' + '{"a":' * DEEP + "1" + "}" * (DEEP + 3) + "]}",
    "no end": '{"items":[',
}


@pytest.mark.parametrize("kind", PAGES)
def test_as_a_page_of_a_list(tmp_path, rebalancer, kind):
    """From the server's mouth: exit code 3, in a line."""
    with FakeApiServer(two_nodes_with(*old_pods("a"))) as server:
        server.fail("GET", "/api/v1/pods", status=200, body=PAGES[kind])
        outcome = rebalancer.run(server, policy(OLD), "--dry-run")

        assert (outcome.exit_code, outcome.stdout) == (3, "")
        # The thread that renewed an earlier test's lease may still log a warning.
        assert len([line for line in outcome.stderr.splitlines() if "leadership" not in line]) == 1
        assert server.evicted == []


@pytest.mark.parametrize("body", [b"[" * DEEP, b'{"a":' * DEEP, b'{"message":"\xff"}', b'{"details":' + b"9" * 5000])
def test_as_the_explanation_of_a_refusal(body):
    """Then the name of the status code has to do."""
    assert HttpAnswer("GET", "/", 403, {}, body).text() == "Forbidden"


PODS = {
    "a name of 10 MB": {"metadata": {"name": LONG}},
    "a label of 10 MB": {"metadata": {"labels": {"a": LONG}}},
    "a quantity of 5,000 digits": {"spec": {"containers": [{"resources": {"requests": {"cpu": DIGITS}}}]}},
    "a quantity of 10 MB": {"spec": {"containers": [{"resources": {"requests": {"cpu": "1" * 10_000_000}}}]}},
    "full-width digits": {"spec": {"containers": [{"resources": {"requests": {"cpu": "１００m"}}}]}},
    "a priority of 5,000 digits": {"spec": {"priority": int("9" * 4_000)}},
    "a priority beyond 64 bits": {"spec": {"priority": 2**70}},
    "a grace period beyond 64 bits": {"spec": {"terminationGracePeriodSeconds": 2**70}},
    "a time at the end of times": {"metadata": {"creationTimestamp": "9999-12-31T23:59:59-23:59"}},
    "a time before time": {"metadata": {"creationTimestamp": "0001-01-01T00:00:00+23:59"}},
}


@pytest.mark.parametrize("kind", PODS)
def test_as_a_pod(file, rebalancer, kind):
    """The run goes on, in all forms of the report, and no cell of a table is endless."""
    hostile, harmless = old_pods("a", "b")
    for part, fields in PODS[kind].items():
        hostile[part] |= fields
    path = file(json.dumps({"kind": "List", "items": [*two_nodes_with(), hostile, harmless]}))

    for output in ("json", "table"):
        outcome = rebalancer("run", "--policy", rebalancer.policy(policy(OLD)), "--snapshot", path, "--output", output)
        assert outcome.exit_code == 0, outcome.stderr[:1000]
        assert "b" in outcome.stdout
    assert all(len(line) < 100_000 for line in outcome.stdout.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        f"gracePeriodSeconds: {2**63}",
        f"gracePeriodSeconds: {DIGITS}",
        "gracePeriodSeconds: 1e300",
        "gracePeriodSeconds: ３０",
        "gracePeriodSeconds: !!int ３０",
        f"maxNoOfPodsToEvictTotal: {2**64}",
        "maxNoOfPodsToEvictTotal: !!float １.５",
        "metricsProviders: [{source: Prometheus, prometheus: {url: 'http://p', timeout: ３０s}}]",
        f"metricsProviders: [{{source: Prometheus, prometheus: {{url: 'http://p', timeout: {DIGITS}s}}}}]",
        f"nodeSelector: {LONG}",
    ],
    ids=lambda text: text[:60],
)
def test_as_a_value_of_a_policy(file, rebalancer, text):
    """An error at its place; a number is one only in ASCII digits and within 64 bits."""
    whole = json.dumps(policy(OLD))[:-1]
    outcome = rebalancer("validate", "--policy", file(f"{text}\n" + yaml.safe_dump(json.loads(whole + "}"))))

    assert outcome.exit_code == 2
    assert "line 1" in outcome.stderr
    assert all(len(line) < 2_000 for line in outcome.stderr.splitlines())


def test_what_is_larger_than_it_may_be_is_neither_unpacked_nor_read_to_its_end():
    """64 MiB of blanks in 64 KiB, or /dev/zero, where 1 MiB is allowed; what is just as large as allowed is read."""
    with pytest.raises(Unreadable, match="larger than 1 MiB"):
        unpacked(gzip.compress(b" " * (64 << 20)), 1 << 20)
    with Path("/dev/zero").open("rb") as endless, pytest.raises(Unreadable, match="larger than 1 MiB"):
        read_bounded(endless, 1 << 20)
    assert unpacked(gzip.compress(b" " * 1024), 1024) == b" " * 1024
    assert (documents.LARGEST_FILE, documents.LARGEST_PAGE) == (4 << 30, 256 << 20)


def test_a_page_that_unpacks_without_end_is_given_up(tmp_path):
    """The client stops at the bound; it is asked for once, and the error names the request."""
    body = {"kind": "PodList", "apiVersion": "v1", "items": [], "x": " " * (8 << 20)}
    with FakeApiServer() as server:
        server.fail("GET", "/api/v1/pods", status=200, body=body)
        client = Client(connect(str(server.kubeconfig(tmp_path)), None, environ={}))
        with pytest.raises(RebalancerError, match=r"GET /api/v1/pods is not read: it is larger than 1 MiB"):
            client.get("/api/v1/pods", largest=1 << 20)
        assert len(server.requests) == 1
        assert read_list(client, "/api/v1/pods", lambda: Collection().collector("Pod")).items == []


#: What is put somewhere into a document.
WEIRD = (
    *(None, [], {}, "", "\x00\u2028\u202e", -1, 2**63, 2**64, 1e300, int("9" * 400), True, "９"),
    *([[[{}]]], {"": {}}),
)


def mutated(chance, value):
    return spoiled(value, chance.choice(list(paths(value))), chance.choice(WEIRD))


@pytest.mark.parametrize("seed", seeds(4))
def test_whatever_is_somewhere_in_a_cluster(file, rebalancer, seed):
    """A run on it ends with a report, or is refused in a line."""
    chance = random.Random(seed)
    for _ in range(25):
        items = [mutated(chance, each) for each in two_nodes_with(*old_pods("a", "b"))]
        path = file(json.dumps({"kind": "List", "items": items}))
        outcome = rebalancer("run", "--policy", rebalancer.policy(policy(OLD)), "--snapshot", path)
        assert outcome.exit_code in (0, 1, 2), items
        assert outcome.stdout or len(outcome.stderr.splitlines()) == 1, items


@pytest.mark.parametrize("seed", seeds(4))
def test_whatever_is_somewhere_in_a_kubeconfig(file, seed, tmp_path):
    """It can be used, or is refused in a line."""
    chance = random.Random(seed)
    with FakeApiServer() as server:
        good = json.loads(server.kubeconfig(tmp_path).read_text())
    said = []
    for _ in range(25):
        try:
            connect(file(json.dumps(mutated(chance, good))), None, environ={})
        except NoCredentials as error:
            said.append(error)
    assert all(map(in_a_line, said))
