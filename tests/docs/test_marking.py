"""docs/marking.md: its examples run, and its tables are complete."""

import re

import pytest
import yaml

from rebalancer.cli.standing import mark as command
from rebalancer.marking.rules import MarkingRules, PressureRule, Signs
from tests.commands import ROOT
from tests.docs.test_documents import blocks
from tests.fake_http import Reply
from tests.fake_servers import FakePrometheus, sample
from tests.functional.conftest import rebalancer, server  # noqa: F401  fixtures
from tests.functional.marking import NODES
from tests.functional.objects import node, node_usage

PAGE = ROOT / "docs/marking.md"
DOCUMENT = PAGE.read_text()


def block(name):
    """The block whose first line is a comment with this name."""
    return next(body for body in blocks(PAGE, "yaml") if body.startswith(f"# {name}"))


@pytest.fixture
def document(rebalancer, server):  # noqa: F811
    """Runs the command of the page, on six nodes whose load it shows."""
    for number, name in enumerate(NODES):
        found = node(name)
        addresses = [{"type": "InternalIP", "address": f"10.0.0.{number}"}]
        server.add({**found, "status": {**found["status"], "addresses": addresses}})
        server.add(node_usage(name, "1"))
    with FakePrometheus() as prometheus:
        values = [95, 85, 10, 10, 10, 10]

        def answer(request):
            counts = request.query["query"].startswith("count_over_time")
            found = [sample(f"10.0.0.{number}:9100", 20 if counts else each) for number, each in enumerate(values)]
            return Reply(200, {"status": "success", "data": {"resultType": "vector", "result": found}})

        prometheus.answers = answer
        policy = block("policies/sources.yaml").replace("http://prometheus.monitoring:9090", prometheus.url)
        (rebalancer.folder / "sources.yaml").write_text(policy)
        (rebalancer.folder / "rules.yaml").write_text(block("rules.yaml"))
        files = ("--policy", rebalancer.folder / "sources.yaml", "--rules", rebalancer.folder / "rules.yaml")
        kubeconfig = server.kubeconfig(rebalancer.folder)
        yield lambda *options: rebalancer("mark", *files, "--kubeconfig", kubeconfig, "--no-lease", *options)


def test_the_example_prints_what_is_shown_and_every_key_of_its_report_is_explained(document):
    shown = re.search(r"^\$ rebalancer mark [^\n]*\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)[1]
    explained = set(re.findall(r"`([A-Za-z.]+)`", DOCUMENT.partition("## Keys of the report")[2]))

    outcome, report = document("--dry-run"), document("--dry-run", "-o", "json").report

    assert outcome.exit_code == 0, outcome.stderr
    told, promised = (re.sub(r"\d{4}-\d\d-\d\dT\S+Z", "TIME", text) for text in (outcome.stdout, shown))
    assert told == promised
    assert {*report, *report["rules"][0], *report["nodes"][0], *report["nodes"][0]["rules"][0]} <= explained


def test_every_key_of_the_rules_is_explained():
    keys = {field.alias for model in (PressureRule, MarkingRules) for field in model.model_fields.values()}
    signs = {f"mark.{name}" for name in Signs.model_fields}
    rows = re.findall(r"^\| `([a-zA-Z.]+)` \|", DOCUMENT.partition("## Without")[0], re.MULTILINE)

    assert set(rows) == (keys | signs) - {"mark", "apiVersion", "kind", "rules"}


def test_the_flags_of_the_table_are_there():
    table = DOCUMENT.partition("| of dynamicScheduler | here |")[2].partition("\n\n")[0]
    ours = set(re.findall(r"`(--?[a-z-]+)", "".join(line.split("|")[2] for line in table.splitlines() if line)))

    assert ours <= {flag for option in command.params for flag in option.opts}
    assert {"--rules", "-r", "--interval", "--bind-address", "--secure-port", "--kubeconfig"} == ours


def test_the_pod_is_one():
    """Its affinity is a preference, of the label in the text."""
    pod = yaml.safe_load(block("pod.yaml"))

    (term,) = pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["preference"]["matchExpressions"] == [{"key": "status", "operator": "NotIn", "values": ["presure"]}]
