"""Files that are often mistaken for a policy: Helm templates, values files, and policies of the other version."""

import re

from rebalancer.policy.document import Node
from rebalancer.policy.findings import Findings, Place
from rebalancer.policy.v1alpha2 import API_VERSION

_BRACES = re.compile(r"\{\{-?\s*(?:\.|\$|include\b|toYaml\b|tpl\b|template\b|if\b|end\b|with\b|range\b|define\b|/\*)")
_VALUES_KEYS = ("deschedulerPolicy", "policy")
_OLD_API_VERSION = "descheduler/v1alpha1"
#: The key that only policies of the other version have at the top.
_FOREIGN_KEYS = {API_VERSION: ("strategies", _OLD_API_VERSION), _OLD_API_VERSION: ("profiles", API_VERSION)}


def is_helm_template(text: str, findings: Findings) -> bool:
    """Return whether the text is a Helm template that was not rendered; if so, note an error at its first braces."""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _BRACES.search(line.partition("#")[0]):
            findings.error(
                Place("", number),
                f"{found[0].rstrip('.')}... is a Helm template: render it first (helm template ... --show-only FILE)"
                " and give the policy that comes out",
            )
            return True
    return False


def is_values_file(document: Node, findings: Findings) -> bool:
    """Return whether the document is a values file of a chart; if so, note an error at the policy inside it."""
    kind = document.at("kind")  # values of the descheduler's chart have a `kind` too: CronJob or Deployment
    if document.at("apiVersion") or document.at("profiles") or document.at("strategies"):
        return False
    if kind and kind.value == "DeschedulerPolicy":
        return False
    for key in _VALUES_KEYS:
        inside = document.at(key)
        if inside and inside.entries():
            findings.error(
                inside.place,
                f"this looks like a values file of a Helm chart: the policy is what stands under {key};"
                f" put that into a file of its own, with `apiVersion: {API_VERSION}` and `kind: DeschedulerPolicy`",
            )
            return True
    return False


def without_foreign_key(document: Node, findings: Findings) -> Node:
    """Return the document without the key that only the other version knows; note that key if it is there."""
    version = document.at("apiVersion")
    key, other = _FOREIGN_KEYS.get(str(version.value) if version else "", ("", ""))
    found = document.at(key) if key else None
    if version and found:
        findings.ignored(
            found.place,
            f"{key} has no effect under {version.value}: the file looks like {other};"
            f" write `apiVersion: {other}` if it is",
        )
        return Node({name: node for name, node in document.entries().items() if name != key}, document.place)
    return document
