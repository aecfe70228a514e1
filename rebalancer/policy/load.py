"""From text to a policy: all problems are reported together."""

import re
from collections.abc import Mapping
from types import MappingProxyType

import yaml

from rebalancer.policy import checks, v1alpha1
from rebalancer.policy.arguments import Args, Plugin
from rebalancer.policy.document import TOP, DocumentNode, WantedDocument, items, wanted_document
from rebalancer.policy.findings import Findings, Place, did_you_mean
from rebalancer.policy.v1alpha2 import API_VERSION, EVICTOR, KIND, WirePolicy, WireProfile
from rebalancer.policy.validation import read
from rebalancer.policy.values import LoadedPolicy, Policy, PolicyProfile
from rebalancer.untrusted.printable import printable

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
_BRACES = re.compile(r"\{\{-?\s*(?:\.|\$|include\b|toYaml\b|tpl\b|template\b|if\b|end\b|with\b|range\b|define\b|/\*)")
_VALUES_KEYS = ("deschedulerPolicy", "policy")
_OLD_API_VERSION = "descheduler/v1alpha1"
#: The key that only policies of the other version have at the top.
_FOREIGN_KEYS = {API_VERSION: ("strategies", _OLD_API_VERSION), _OLD_API_VERSION: ("profiles", API_VERSION)}


def _is_helm_template(text: str, findings: Findings) -> bool:
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


def _is_values_file(document: DocumentNode, findings: Findings) -> bool:
    """Return whether the document is a values file of a chart; if so, note an error at the policy inside it."""
    kind = document.at("kind")  # values of the descheduler's chart have a `kind` too: CronJob or Deployment
    if any(map(document.at, ("apiVersion", "profiles", "strategies"))) or (kind and kind.value == KIND):
        return False
    for key in _VALUES_KEYS:
        inside = document.at(key)
        if inside and inside.entries():
            findings.error(
                inside.place,
                f"this looks like a values file of a Helm chart: the policy is what stands under {key};"
                f" put that into a file of its own, with `apiVersion: {API_VERSION}` and `kind: {KIND}`",
            )
            return True
    return False


def _without_foreign_key(document: DocumentNode, findings: Findings) -> DocumentNode:
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
        return DocumentNode({name: node for name, node in document.entries().items() if name != key}, document.place)
    return document


_VERSIONS = (API_VERSION, v1alpha1.API_VERSION)
_WANTED = WantedDocument(KIND, "descheduler/", "policy", "policies")
_MINIMAL = f"`apiVersion: {API_VERSION}`, `kind: {KIND}` and `profiles: []`"


def load_policy(
    text: str,
    plugins: Mapping[str, Plugin],
    *,
    source: str,
    strict: bool = False,
    live: bool = False,
    runs: bool = True,
) -> LoadedPolicy:
    """Read a policy.

    Args:
        text: YAML or JSON, `descheduler/v1alpha2` or `descheduler/v1alpha1`.
        plugins: what the policy may name, by name; DefaultEvictor among them.
        source: where the text is from, for messages.
        strict: whether a part that has no effect is an error; else it is a warning.
        live: whether evictions follow; then an unknown key is an error, and so is usage that cannot be measured.
        runs: whether its enabled plugins have to be such that they can run.  If not, names under `enabled` may be
            unknown, at the wrong extension point, or without an entry in `pluginConfig`.  The descheduler has these two
            steps too (framework.md 2.6).

    Raises:
        PolicyError: the policy cannot be used; all its problems are in it.
    """
    findings = Findings()
    node = _versioned(_document(text, findings), plugins, findings)
    policy = _policy(node, plugins, findings)
    if runs:
        checks.check_enabled(node, plugins, findings)
        checks.check_sources(policy, node, findings)
        if not any(profile.deschedule or profile.balance for profile in policy.profiles):
            findings.notice(node.place, "the policy enables no strategy: it will evict nothing")
    return LoadedPolicy(policy, findings.settle(source, strict=strict, live=live))


def converted_policy(text: str, plugins: Mapping[str, Plugin], *, source: str) -> str:
    """Return a policy of the older form as YAML of the present one; comments say what was left out or reads otherwise.

    Raises:
        PolicyError: the policy cannot be used, or not for a live run.
    """
    findings = Findings()
    document = _document(text, findings)
    node = _versioned(document, plugins, findings)
    _policy(node, plugins, findings)
    warnings = findings.settle(source, strict=False, live=True)  # a misspelt limit is not left out
    notes = [str(each) for each in warnings if each.path != "apiVersion"]
    strategies = document.at("strategies")
    for name, each in strategies.entries().items() if strategies else ():
        enabled = each.at("enabled")
        if not (enabled and enabled.value):
            notes.append(f"line {each.place.line}, {each.place.path}: {name} is not enabled and left out")
    comments = [f"# {printable(each)}\n" for each in notes]
    return "".join(comments) + yaml.dump(node.plain(nulls=False), Dumper=_Quoting, sort_keys=False)


class _Quoting(yaml.SafeDumper):
    """Quotes each text that a reader might take for something else: of these YAML 1.1 has more than PyYAML knows."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return a text as a node."""
        plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Quoting.add_representer(str, _Quoting.represent_text)


def _document(text: str, findings: Findings) -> DocumentNode:
    if _is_helm_template(text, findings):
        return DocumentNode(None, TOP)
    return wanted_document(text, findings, _WANTED)


def _versioned(document: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> DocumentNode:
    """Return the document as v1alpha2, converted if needed; a null if it is not a policy."""
    nothing = DocumentNode(None, document.place)
    if not isinstance(document.value, Mapping):
        wrong = "the policy is empty" if document.value is None else "a policy is a map of keys"
        if document.value is not None or not findings.failed:
            findings.error(document.place, f"{wrong}; a minimal one is {_MINIMAL}")
        return nothing
    if _is_values_file(document, findings) or not _names_a_policy(document, findings):
        return nothing
    document = _without_foreign_key(document, findings)
    version = document.at("apiVersion")
    if version.value == v1alpha1.API_VERSION if version else document.at("strategies"):
        return v1alpha1.converted(document, plugins, findings)
    return document


def _names_a_policy(document: DocumentNode, findings: Findings) -> bool:
    """Return whether to read on; a wrong kind or a missing apiVersion is an error, but the rest is checked too."""
    version, kind = document.at("apiVersion"), document.at("kind")
    if kind and kind.value != KIND:
        findings.error(kind.place, f"this is not a policy: its kind should be {KIND}")
    if version is None:
        # The descheduler silently takes such a file as an empty policy.
        first = v1alpha1.API_VERSION if document.at("strategies") else API_VERSION
        findings.error(document.place, f"apiVersion is missing; begin with `apiVersion: {first}`")
    elif version.value not in _VERSIONS:
        shown = repr(version.value) if isinstance(version.value, str) else "of this kind"
        hint = did_you_mean(str(version.value), _VERSIONS)
        findings.error(version.place, f"apiVersion {shown} is not known{hint}")
        return False
    return True


def _policy(node: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> Policy:
    wire = read(WirePolicy, node, findings, lenient=True) or WirePolicy()
    args = [_arguments(each, plugins, findings) for each in items(node, "profiles")]
    checks.check_effect(node, findings)
    checks.check_providers(wire, node, findings)
    profiles = tuple(_profile(each, found, plugins) for each, found in zip(wire.profiles, args, strict=False))
    return Policy.model_construct(**{**dict(wire), "profiles": profiles})


def _arguments(profile: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> dict[str, Args]:
    """Read every `pluginConfig` entry, enabled or not; if a plugin has two, the first counts."""
    found: dict[str, Args] = {}
    for entry in items(profile, "pluginConfig"):
        name, args = entry.at("name"), entry.at("args") or DocumentNode({}, entry.place.key("args"))
        if name is None:
            findings.error(entry.place, "the name of the plugin is missing")
        elif not isinstance(name.value, str):
            continue  # an error already
        elif name.value not in plugins:
            findings.error(name.place, f"no plugin is called {name.value!r}{did_you_mean(name.value, plugins)}")
        elif isinstance(args.value, Mapping):  # else an error already
            given = read(plugins[name.value].args, args, findings)
            if given is not None:
                found.setdefault(name.value, given)
    return found


def _profile(wire: WireProfile, args: Mapping[str, Args], plugins: Mapping[str, Plugin]) -> PolicyProfile:
    evictor = {} if EVICTOR in args else {EVICTOR: plugins[EVICTOR].args()}
    return PolicyProfile.model_construct(**dict(wire), args=MappingProxyType({**evictor, **args}))
