"""`rebalancer recommend` on samples of some days, beside objects of a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tests.functional import objects
from tests.functional.program import Outcome, Program

Object = Mapping[str, Any]
PEAK = ("--peak", "10:00-11:00")
JSON = ("-o", "json")
RESOURCES = {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m", "memory": "512Mi"}}


def pod(name, on="n1", resources=None):
    """The pod of a StatefulSet of this name."""
    made = objects.pod(f"{name}-0", on, namespace="shop", owner=name)
    made["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    made["spec"]["containers"][0] |= {"name": "app", "resources": resources or {}}
    return made


@dataclass(frozen=True)
class Recommender:
    """Samples are written into a folder, as people collect them with `kubectl top`; three of them are enough."""

    program: Program

    def write(self, file: str, *lines: str) -> None:
        folder = self.program.folder / "samples"
        folder.mkdir(exist_ok=True)
        (folder / file).write_text("\n".join(lines))

    def __call__(self, *arguments: object, beside: Sequence[Object] | None = None) -> Outcome:
        """Recommend by the samples, beside these objects where they are given."""
        cluster = ("--snapshot", self.program.cluster(*beside)) if beside is not None else ()
        few = ("--min-days", 3, "--min-samples", 3)
        return self.program("recommend", "--samples", self.program.folder / "samples", *few, *arguments, *cluster)

    def container(self, *arguments: object, **beside: Any) -> Any:
        """What is recommended for the only container."""
        (found,) = self(*JSON, *arguments, **beside).report["containers"]
        return found

    def written(self, *arguments: object, **beside: Any) -> Mapping[str, Any]:
        """What stands in the folder of the last of these options, by the name of the file."""
        out = self.program.folder / "out"
        self(*arguments, out, **beside)
        return {each.name: yaml.safe_load(each.read_text()) for each in out.iterdir()}


def resources_of(patches: Mapping[str, Any]) -> Any:
    """What the only patch has for the only container."""
    (patch,) = patches.values()
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    return container["resources"]
