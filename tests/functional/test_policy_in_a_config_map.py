"""A policy as it stands in the cluster: `kubectl get cm NAME -o yaml | rebalancer run --policy - --dry-run`."""

import json

import yaml

from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.program import finish


def test_what_kubectl_prints_is_a_policy(server, rebalancer):
    """The ConfigMap's one policy is taken, and a dry run on the cluster says what it would do."""
    for each in two_nodes_with(*old_pods("a", "b")):
        server.add(each)
    text = yaml.safe_dump(policy(OLD, maxNoOfPodsToEvictTotal=1))
    metadata = {"name": "rebalancer", "namespace": "kube-system", "resourceVersion": "7"}
    printed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.yaml": text}}
    file = rebalancer.folder / "printed.yaml"
    file.write_text(yaml.safe_dump(printed))
    kubeconfig = server.kubeconfig(rebalancer.folder)

    with file.open() as stream:
        options = ("--dry-run", "--kubeconfig", kubeconfig, "--output", "json")
        outcome = finish(rebalancer.start("run", "--policy", "-", *options, stdin=stream))

    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.evicted() == ["default/a"]
    assert server.evicted == []
    assert json.loads(outcome.stdout)["dryRun"] is True
