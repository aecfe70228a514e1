"""Nodes as tests of marks draw them, as the API server has them, and as a patch leaves them."""

import msgspec

from rebalancer.kube.node_marks import NodeObject, patch
from tests.fake_rules import patched


def on_server(name, *taints, uid="", **metadata):
    """A node as a server has it: no list where there is nothing in it."""
    metadata = {"name": name, "uid": uid or f"uid-of-{name}", **{key: each for key, each in metadata.items() if each}}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": [*taints]} if taints else {}}


def as_object(node):
    return on_server(node.name, *(node.taints or ()), uid=node.uid, annotations=node.annotations, labels=node.labels)


def after(node, wanted):
    """The node once the patch was applied."""
    return msgspec.convert(patched(as_object(node), patch(node, wanted)), NodeObject).marked()


def keys_on(server, *names):
    """Our keys on each of these nodes."""
    found = [server.node(name)["spec"].get("taints", []) for name in names]
    return [[each["key"].removeprefix("kube-rebalancer/") for each in taints] for taints in found]
