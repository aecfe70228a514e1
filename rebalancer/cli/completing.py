"""What a shell may complete: files, policies, contexts, namespaces, strategies and presets.

A completion never fails, and waits for a cluster or a credentials plugin for two seconds at most.
"""

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from rebalancer.errors import RebalancerError

_SECONDS = 2.0


class Completed(click.ParamType[str]):
    """A text that a shell completes.

    Args:
        name: what it is, for messages.
        known: returns the words that it may be, given the other parameters.
        or_file: whether it may be a file, too.
        missing: what to say where it is required and not given.
    """

    def __init__(
        self, name: str, known: Callable[[dict[str, Any]], Iterable[str]], *, or_file: bool = False, missing: str = ""
    ) -> None:
        self.name = name
        self._known = known
        self._or_file = or_file
        self._missing = missing

    def get_missing_message(
        self,
        param: click.Parameter,  # noqa: ARG002  click gives both by name
        ctx: click.Context | None,  # noqa: ARG002
    ) -> str | None:
        """Return what to say where it is required and not given."""
        return self._missing or None

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return the words that begin so, and files if it may be one."""
        try:
            words = [each for each in sorted(self._known(ctx.params)) if each.startswith(incomplete)]
        except (RebalancerError, OSError, ValueError):
            words = []
        return [CompletionItem(each) for each in words] or (
            [CompletionItem(incomplete, type="file")] if self._or_file else []
        )


def _nothing(_: dict[str, Any]) -> Iterable[str]:
    return ()


def _presets(_: dict[str, Any]) -> Iterable[str]:
    from rebalancer.run.policies import presets  # noqa: PLC0415  `--help` answers at once

    return presets()


def _strategies(_: dict[str, Any]) -> Iterable[str]:
    from rebalancer.run.policies import known_plugins  # noqa: PLC0415  as above

    return known_plugins()


def _contexts(given: dict[str, Any]) -> Iterable[str]:
    from rebalancer.run.live import contexts  # noqa: PLC0415  as above

    return contexts(given.get("kubeconfig"))


def _namespaces(given: dict[str, Any]) -> Iterable[str]:
    from rebalancer.run.live import namespaces  # noqa: PLC0415  as above

    return namespaces(given.get("kubeconfig"), given.get("context"), _SECONDS)


FILE = Completed("file", _nothing, or_file=True)
POLICY = Completed(
    "policy", _presets, or_file=True, missing="Give a file, or the name of a preset: `rebalancer presets` lists them."
)
PRESET = Completed("preset", _presets)
STRATEGY = Completed("strategy", _strategies)
CONTEXT = Completed("context", _contexts)
NAMESPACE = Completed("namespace", _namespaces)
