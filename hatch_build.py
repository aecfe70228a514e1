"""Puts the built-in strategies and presets inside the wheel's one package."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class IncludeStrategies(BuildHookInterface[Any]):
    """An editable install finds both beside `rebalancer/`; only a real wheel needs copies."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"].update(
                {"strategies": "rebalancer/strategies", "policies": "rebalancer/policies"}
            )
