"""Short ways to read a policy, and policies to read."""

from textwrap import dedent

from rebalancer.errors import PolicyError, Problem
from rebalancer.policy.load import load_policy
from rebalancer.policy.values import LoadedPolicy
from rebalancer.run.policies import known_plugins

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
OLD_HEAD = "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\n"
PLUGINS = known_plugins()


def load(text: str, *, strict: bool = False, live: bool = False) -> LoadedPolicy:
    return load_policy(dedent(text), PLUGINS, source="policy.yaml", strict=strict, live=live)


def decode(text: str, *, strict: bool = False) -> LoadedPolicy:
    return load_policy(dedent(text), PLUGINS, source="policy.yaml", strict=strict, runs=False)


def problems(text: str, *, strict: bool = False, live: bool = False) -> list[str]:
    """What makes a policy unusable, as it is shown; empty where it is usable."""
    try:
        load(text, strict=strict, live=live)
    except PolicyError as error:
        return [str(each) for each in error.problems]
    return []


def profile(config: str = "", plugins: str = "") -> str:
    """A policy of one profile; both arguments are in flow style, without the outer brackets."""
    return f"{HEAD}profiles:\n- name: p\n  pluginConfig: [{config}]\n  plugins: {{{plugins}}}\n"


def rows(table: str, **stands_for: str) -> list[list[str]]:
    """The lines of a table, each a list of its columns; a word after a `$` stands for a text."""
    for word, text in stands_for.items():
        table = table.replace(f"${word}", text)
    return [[cell.strip() for cell in line.split(" | ")] for line in table.strip().splitlines()]


LIFE_TIME = "{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 5}}"
RUN_LIFE_TIME = "deschedule: {enabled: [PodLifeTime]}"
NO_STRATEGY = Problem("", "the policy enables no strategy: it will evict nothing", 1)
