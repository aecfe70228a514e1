"""`snapshot --output -`: the cluster into a pipe."""

import io
import json

from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.program import finish


def test_a_snapshot_in_a_pipe_is_one_that_run_reads(server, rebalancer):
    """Standard output holds the document and nothing else; what was counted goes to standard error."""
    for each in two_nodes_with(*old_pods("a")):
        server.add(each)
    kubeconfig = server.kubeconfig(rebalancer.folder)

    written = finish(rebalancer.start("snapshot", "--kubeconfig", kubeconfig, "--output", "-"))

    assert written.exit_code == 0
    assert written.stderr.startswith("-: 2 Node, 1 Pod, ")
    assert json.load(io.StringIO(written.stdout))["kind"] == "List"
    file = rebalancer.folder / "cluster.json"
    file.write_text(written.stdout)
    rules = rebalancer.policy(policy(OLD))
    assert rebalancer("run", "--policy", rules, "--snapshot", file, "-o", "json").evicted() == ["default/a"]
