"""A document inside a ConfigMap, as `kubectl get configmap NAME -o yaml` prints it."""

from dataclasses import dataclass

from rebalancer.policy.document import DocumentNode, read_document
from rebalancer.policy.findings import Findings

KIND = "ConfigMap"


@dataclass(frozen=True, slots=True)
class WantedDocument:
    """What is looked for in a ConfigMap.

    Attributes:
        kind: the document's `kind`.
        group: the group of its apiVersion, with the slash.
        noun: what messages call it.
        plural: the plural of that noun.
    """

    kind: str
    group: str
    noun: str
    plural: str


POLICY = WantedDocument("DeschedulerPolicy", "descheduler/", "policy", "policies")


def is_config_map(document: DocumentNode) -> bool:
    """Return whether a document is a ConfigMap."""
    kind = document.at("kind")
    return kind is not None and kind.value == KIND


def wanted_document(text: str, findings: Findings, wanted: WantedDocument) -> DocumentNode:
    """Return a YAML document, or the wanted one in a ConfigMap; an empty node, with an error in the findings, for none.

    Args:
        text: of the file.
        findings: get the errors.
        wanted: what a text in a ConfigMap should be.
    """
    document = read_document(text, findings)
    if not is_config_map(document):
        return document
    inside = text_inside(document, text, findings, wanted)
    return DocumentNode(None, document.place) if inside is None else read_document(inside, findings)


def text_inside(document: DocumentNode, text: str, findings: Findings, wanted: WantedDocument) -> str | None:
    """Return the one text of a ConfigMap that is wanted; None, with an error in the findings, if there is none or more.

    If the text is written as a block, as kubectl writes it, its lines keep the numbers of the author's own file.

    Args:
        document: the ConfigMap.
        text: the text that the ConfigMap was read from.
        findings: get the error.
        wanted: what the text should be; the only text of a ConfigMap is always taken.
    """
    data = document.at("data")
    entries = {key: each for key, each in data.entries().items() if isinstance(each.value, str)} if data else {}
    several = len(entries) != 1
    found = {key: each for key, each in entries.items() if _is(wanted, each)} if several else entries
    if len(found) == 1:
        return _as_numbered_outside(next(iter(found.values())), text)
    place = (data or document).place
    if found:
        findings.error(
            place, f"this ConfigMap holds {len(found)} {wanted.plural} ({', '.join(found)}); give one of them"
        )
    else:
        keys = f"its keys are {', '.join(entries)}" if entries else "it has no text"
        findings.error(place, f"no text in the `data` of this ConfigMap is a {wanted.noun}; {keys}")
    return None


def _is(wanted: WantedDocument, entry: DocumentNode) -> bool:
    inside = read_document(str(entry.value), Findings())
    kind, version = inside.at("kind"), inside.at("apiVersion")
    named = kind is not None and kind.value == wanted.kind
    return named or (version is not None and str(version.value).startswith(wanted.group))


def _as_numbered_outside(entry: DocumentNode, text: str) -> str:
    inside = str(entry.value)
    lines, start = text.splitlines(), entry.place.line
    shown = [line.strip() for line in inside.splitlines()]
    is_block = [line.strip() for line in lines[start : start + len(shown)]] == shown
    return "\n" * start + inside if is_block else inside
