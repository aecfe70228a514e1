"""The policy inside a ConfigMap, as `kubectl get configmap NAME -o yaml` prints it."""

from rebalancer.policy.document import Node, read_document
from rebalancer.policy.findings import Findings

KIND = "ConfigMap"
_POLICY_KIND = "DeschedulerPolicy"
_GROUP = "descheduler/"


def is_config_map(document: Node) -> bool:
    """Return whether a document is a ConfigMap."""
    kind = document.at("kind")
    return kind is not None and kind.value == KIND


def policy_inside(document: Node, text: str, findings: Findings) -> str | None:
    """Return the one policy that a ConfigMap holds; None, with an error among the findings, where there is not one.

    Lines of the text that is returned have the numbers of the author's own file wherever it is written as a block,
    as kubectl writes it.

    Args:
        document: the ConfigMap.
        text: what it was read from.
        findings: take the error.
    """
    data = document.at("data")
    entries = {key: each for key, each in data.entries().items() if isinstance(each.value, str)} if data else {}
    policies = entries if len(entries) == 1 else {key: each for key, each in entries.items() if _is_policy(each)}
    if len(policies) == 1:
        return _as_numbered_outside(next(iter(policies.values())), text)
    place = (data or document).place
    if policies:
        findings.error(
            place, f"this ConfigMap holds {len(policies)} policies ({', '.join(policies)}); give one of them"
        )
    else:
        keys = f"its keys are {', '.join(entries)}" if entries else "it has no text"
        findings.error(place, f"no text in the `data` of this ConfigMap is a policy; {keys}")
    return None


def _is_policy(entry: Node) -> bool:
    inside = read_document(str(entry.value), Findings())
    kind, version = inside.at("kind"), inside.at("apiVersion")
    named = kind is not None and kind.value == _POLICY_KIND
    return named or (version is not None and str(version.value).startswith(_GROUP))


def _as_numbered_outside(entry: Node, text: str) -> str:
    inside = str(entry.value)
    lines, start = text.splitlines(), entry.place.line
    shown = [line.strip() for line in inside.splitlines()]
    is_block = [line.strip() for line in lines[start : start + len(shown)]] == shown
    return "\n" * start + inside if is_block else inside
