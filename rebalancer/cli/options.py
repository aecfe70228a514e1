"""Options that several commands take."""

from typing import Any

import click


class _Verbosity(click.IntRange):
    """A number that may also be written as in `-v=2`, as the descheduler's command line takes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number: Any = value.removeprefix("=") if isinstance(value, str) else value
        return super().convert(number, param, ctx)


class _Policy(click.ParamType[str]):
    """A policy: the name of a file or of a preset."""

    name = "policy"

    def get_missing_message(
        self,
        param: click.Parameter,  # noqa: ARG002  click gives both by name
        ctx: click.Context | None,  # noqa: ARG002
    ) -> str:
        return "Give a file, or the name of a preset: `rebalancer presets` lists them."


policy_option = click.option(
    "--policy-config-file",
    "--policy",
    "policy",
    required=True,
    type=_Policy(),
    metavar="FILE|PRESET",
    help="The DeschedulerPolicy: a file, - for standard input, or the name of a preset.",
)
scheduler_config_option = click.option(
    "--scheduler-config",
    metavar="FILE|-",
    help="The scheduler's KubeSchedulerConfiguration; without it, its defaults count.",
)
kubeconfig_option = click.option(
    "--kubeconfig",
    "--client-connection-kubeconfig",
    metavar="FILE",
    help="The kubeconfig; else KUBECONFIG, ~/.kube/config, and in a pod its service account.",
)
context_option = click.option("--context", metavar="NAME", help="The context of the kubeconfig; else its current one.")
verbosity_option = click.option(
    "-v", "--v", "verbosity", type=_Verbosity(min=0), default=0, metavar="N", help="Say more: 1 or 2."
)
