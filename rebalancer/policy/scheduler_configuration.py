"""The scheduler's own configuration: a KubeSchedulerConfiguration, checked at once and in full.

Sources: the Kubernetes documentation, kube-scheduler Configuration (v1); the chart as-a-second-scheduler of
kubernetes-sigs/scheduler-plugins, its values.yaml and the ConfigMap that it makes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import Field

from rebalancer.errors import Problem
from rebalancer.policy.arguments import Int, part
from rebalancer.policy.document import DocumentNode, WantedDocument, at, items, node_of, wanted_document
from rebalancer.policy.findings import Findings
from rebalancer.policy.validation import read
from rebalancer.scheduling.simulator import configuration as simulated
from rebalancer.scheduling.simulator.profile import ARGUMENTS

T = TypeVar("T")
_WANTED = WantedDocument(simulated.KIND, simulated.API_VERSION.split("/")[0] + "/", "scheduler configuration")
_MINIMAL = f"`apiVersion: {simulated.API_VERSION}` and `kind: {simulated.KIND}`"
_OLDER = tuple(f"{simulated.API_VERSION}beta{number}" for number in (1, 2, 3))
#: How the chart as-a-second-scheduler calls its scheduler where its values do not say.
_SECOND_SCHEDULER = "scheduler-plugins-scheduler"
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_PERCENTAGE: Any = (Annotated[Int, Field(ge=0, le=100)] | None, None)
_POINTS = part(
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit"),
    *("preBind", "bind", "postBind", "multiPoint"),
)
_PROFILE = part("schedulerName", "pluginConfig", plugins=(_POINTS | None, None), percentageOfNodesToScore=_PERCENTAGE)
_CONFIGURATION = part(
    *("apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "healthzBindAddress"),
    *("metricsBindAddress", "enableProfiling", "enableContentionProfiling", "podInitialBackoffSeconds"),
    *("podMaxBackoffSeconds", "delayCacheUntilActive"),
    percentageOfNodesToScore=_PERCENTAGE,
    extenders=(list[Any] | None, None),
    profiles=(GenericAlias(list, _PROFILE) | None, None),
)


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """A configuration that can be used, and warnings: about parts without effect, and unknown plugins and extenders."""

    document: Mapping[str, Any]
    warnings: tuple[Problem, ...]


def load_scheduler_configuration(text: str, *, source: str) -> SchedulerConfiguration:
    """Read a configuration, or the one inside a ConfigMap; an older version, and values of scheduler-plugins' chart."""
    findings = Findings()
    node = _as_configuration(wanted_document(text, findings, _WANTED), findings)
    if _is_configuration(node, findings):
        _check(node, findings)
    warnings = findings.settle(source, strict=False, what="scheduler configuration")
    return SchedulerConfiguration(node.plain(nulls=False), warnings)


def _as_configuration(node: DocumentNode, findings: Findings) -> DocumentNode:
    """Return the document in the one version that is read, with a notice where it is in another form."""
    version, plugins = node.at("apiVersion"), node.at("plugins")
    if version and version.value in _OLDER:
        findings.notice(
            version.place,
            f"{version.value} is read as {simulated.API_VERSION}, with the default plugins and weights of that;"
            " Kubernetes 1.29 and newer read nothing older",
        )
        return DocumentNode(
            {**node.entries(), "apiVersion": DocumentNode(simulated.API_VERSION, version.place)}, node.place
        )
    enabled = items(plugins, "enabled") if plugins and version is None and node.at("kind") is None else ()
    named = enabled and all(isinstance(each.value, str) for each in enabled)
    return _of_values(node, plugins, findings) if plugins and named else node


def _of_values(node: DocumentNode, plugins: DocumentNode, findings: Findings) -> DocumentNode:
    """Return what values of the chart as-a-second-scheduler come to: the default scheduler, and one with plugins."""
    name = node.at("scheduler", "name") or node_of(_SECOND_SCHEDULER, node.place)
    findings.notice(
        node.place,
        f"read as values of the chart as-a-second-scheduler: pods that ask for {name.value} go by these plugins,"
        f" all others by the {simulated.DEFAULT_SCHEDULER} of Kubernetes",
    )
    sides = {side: [{"name": each} for each in items(plugins, side)] for side in ("enabled", "disabled")}
    second: dict[str, Any] = {"schedulerName": name, "plugins": {"multiPoint": sides}}
    if config := node.at("pluginConfig"):
        second["pluginConfig"] = config
    profiles = [{"schedulerName": simulated.DEFAULT_SCHEDULER}, second]
    return node_of({"apiVersion": simulated.API_VERSION, "kind": simulated.KIND, "profiles": profiles}, node.place)


def _is_configuration(node: DocumentNode, findings: Findings) -> bool:
    if findings.failed:
        return False
    if not isinstance(node.value, Mapping):
        findings.error(node.place, f"this is not a {simulated.KIND}, which begins with {_MINIMAL}")
        return False
    for key, expected in (("kind", simulated.KIND), ("apiVersion", simulated.API_VERSION)):
        found = node.at(key)
        if found is None:
            findings.error(node.place, f"{key} is missing: write `{key}: {expected}`")
        elif found.value != expected:
            findings.error(found.place, f"{found.plain()!r} is not understood here: write {expected}")
    return not findings.failed


def _check(node: DocumentNode, findings: Findings) -> None:
    read(_CONFIGURATION, node, findings, lenient=True)
    for each in items(node, "extenders"):
        extender = _read(each, simulated.Extender, findings)
        if extender and (extender.filter_verb or extender.prioritize_verb):
            findings.notice(each.place, "nothing is known of what an extender says: where pods go is unknown")
    names: dict[str, DocumentNode] = {}
    for profile in items(node, "profiles"):
        if not isinstance(profile.value, Mapping):
            continue  # an error already
        name = profile.at("schedulerName")
        called = str(name.value) if name else simulated.DEFAULT_SCHEDULER
        if names.setdefault(called, profile) is not profile:
            line = names[called].place.line
            findings.error((name or profile).place, f"{called!r} names the profile of line {line}: give each its own")
        _check_profile(profile, called, findings)


def _check_profile(profile: DocumentNode, name: str, findings: Findings) -> None:
    config, plugins = _read(profile, simulated.ProfileConfig, findings), profile.at("plugins")
    if config is None:
        return
    _check_arguments(profile, findings)
    for plugin in simulated.unknown_plugins(config):
        points = plugins.entries().values() if plugins else ()
        listed = (each for point in points for each in items(point, "enabled") if at(each, "name").value == plugin)
        place = next(listed, profile).place
        findings.notice(place, f"nothing is known of the plugin {plugin}: where pods of {name} go is unknown")


def _check_arguments(profile: DocumentNode, findings: Findings) -> None:
    seen: set[str] = set()
    for entry in items(profile, "pluginConfig"):
        name = str(entry.entries()["name"].value) if "name" in entry.entries() else ""
        if not name or name in seen:
            findings.error(entry.place, f"{name} is configured twice" if name else "the name of the plugin is missing")
        seen.add(name)
        args = entry.at("args")
        if args and name in ARGUMENTS:
            try:
                simulated.converted(name, args.plain(nulls=False), ARGUMENTS[name])
            except simulated.ConfigurationError as error:
                _misread(args, str(error).removeprefix(f"{name}: "), findings)


def _read(node: DocumentNode, kind: type[T], findings: Findings) -> T | None:
    try:
        return msgspec.convert(node.plain(nulls=False), kind)
    except msgspec.ValidationError as error:
        _misread(node, str(error), findings)
        return None


def _misread(node: DocumentNode, message: str, findings: Findings) -> None:
    """Note an error at the place below this node where it is; msgspec ends its messages with the path."""
    told, _, path = message.partition(" - at `$")
    steps = [name or int(index) for name, index in _STEP.findall(path.rstrip("`"))]
    findings.error(at(node, *steps).place, told[:1].lower() + told[1:] if path else told)
