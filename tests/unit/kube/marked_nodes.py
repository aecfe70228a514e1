"""Nodes as tests of marks draw them, as the API server has them, and as a patch leaves them."""

from rebalancer.kube.marks import MarkedNode
from rebalancer.kube.node_marks import patch
from tests.fake_patches import patched


def as_object(node):
    """The node as the API server has it."""
    metadata = {"name": node.name, "uid": node.uid}
    metadata |= {"annotations": dict(node.annotations)} if node.annotations else {}
    metadata |= {"labels": dict(node.labels)} if node.labels else {}
    taints = {"taints": [*node.taints]} if node.taints else {}
    return {"kind": "Node", "metadata": metadata, "spec": {"podCIDR": "x", **taints}}


def as_read(found):
    """The node as it is read from the API server."""
    metadata = found["metadata"]
    taints = found["spec"].get("taints")
    return MarkedNode(metadata["name"], metadata["uid"], taints, metadata.get("annotations"), metadata.get("labels"))


def after(node, wanted):
    """The node once the patch was applied."""
    return as_read(patched(as_object(node), patch(node, wanted)))


def on_server(name, *taints, uid="", **metadata):
    """A node as a server has it: no list where there is nothing in it."""
    metadata = {"name": name, "uid": uid or f"uid-of-{name}", **{key: each for key, each in metadata.items() if each}}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": [*taints]} if taints else {}}


def keys_on(server, *names):
    """Our keys on each of these nodes."""
    found = [server.node(name)["spec"].get("taints", []) for name in names]
    return [[each["key"].removeprefix("kube-rebalancer/") for each in taints] for taints in found]
