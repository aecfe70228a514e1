"""Finds the node of a document that a path leads to."""

from rebalancer.policy.document import Node


def at(node: Node, *steps: str | int) -> Node:
    """Return the node at these steps, or the nearest one above it."""
    for step in steps:
        children = node.items()
        if isinstance(step, str):
            node = node.entries().get(step, node)
        elif step < len(children):
            node = children[step]
    return node


def items(node: Node, key: str) -> tuple[Node, ...]:
    """Return the items of the list under this key; empty if the key is absent or not a list."""
    found = node.at(key)
    return found.items() if found else ()
