"""Policies, found by file or preset name, and their profiles made ready to run."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import rebalancer
from rebalancer.engine.cycle import ProfilePlan
from rebalancer.engine.limits import Limits
from rebalancer.engine.plugins import plugin, strategies
from rebalancer.errors import UsageError
from rebalancer.policy.arguments import Plugin
from rebalancer.policy.evictor import DEFAULT_EVICTOR, PVC, DefaultEvictorArgs
from rebalancer.policy.load import converted_policy, decode_policy, load_policy
from rebalancer.policy.utilization import UtilizationArgs
from rebalancer.policy.v1alpha2 import policy_schema
from rebalancer.policy.values import LoadedPolicy, Policy, PolicyProfile
from rebalancer.untrusted.documents import LARGEST_SETTINGS, Unreadable, read_input


def settings_text(name: str, what: str) -> str:
    """Return the text of a file, `-` for standard input.

    Args:
        name: the file.
        what: what messages call it, like `policy`.

    Raises:
        FileNotFoundError: there is no such file.
        UsageError: it cannot be read.
    """
    try:
        return read_input(name, LARGEST_SETTINGS).decode()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"{what} {name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {name} cannot be read: it is not text in UTF-8 ({error.reason})") from error
    except Unreadable as error:
        raise UsageError(f"{what} {name} cannot be read: {error}") from error


_PACKAGE = Path(rebalancer.__file__).parent


def known_plugins() -> Mapping[str, Plugin]:
    """Return the plugins that a policy may name, by name."""
    return {DEFAULT_EVICTOR.name: DEFAULT_EVICTOR} | {name: plugin(strategy) for name, strategy in strategies().items()}


def preset_directory() -> Path:
    """Return the folder of the presets: inside the package in a wheel, beside it in a checkout."""
    inside = _PACKAGE / "policies"
    return (inside if inside.is_dir() else _PACKAGE.parent / "policies") / "presets"


def presets() -> tuple[str, ...]:
    """Return the names of the presets."""
    return tuple(sorted(path.stem for path in preset_directory().glob("*.yaml")))


def read_policy(name: str, text: str | None = None, *, strict: bool, live: bool = False) -> LoadedPolicy:
    """Load a policy by its file's path, `-` for standard input, or a preset's name.

    Args:
        name: of the policy.
        text: what it says, where it was read already.
        strict: whether warnings count as errors.
        live: whether unknown keys do.

    Raises:
        PolicyError: it has problems.
        UsageError: there is no such file and no such preset.
    """
    return parse_policy(policy_text(name) if text is None else text, name, strict=strict, live=live)


def parse_policy(text: str, name: str, *, strict: bool, live: bool = False) -> LoadedPolicy:
    """Load a policy from its text; `name` is what messages call it; see `load_policy` for the other arguments.

    Raises:
        PolicyError: it has problems.
    """
    return load_policy(text, known_plugins(), source=name, strict=strict, live=live)


def parse_sources(text: str, name: str, *, strict: bool) -> LoadedPolicy:
    """Load a policy of which only the sources of usage are needed: it need not enable any strategy.

    Raises:
        PolicyError: it has problems.
    """
    return decode_policy(text, known_plugins(), source=name, strict=strict)


def convert(name: str) -> str:
    """Return a policy of either form as YAML of the present one.

    Raises:
        PolicyError: it cannot be used.
        UsageError: there is no such file.
    """
    return converted_policy(policy_text(name), known_plugins(), source=name)


def schema() -> dict[str, Any]:
    """Return the JSON schema of a policy with all strategies that are installed."""
    return policy_schema(known_plugins())


def policy_text(name: str) -> str:
    """Return the text of a policy by its file's path, `-` for standard input, or a preset's name.

    Raises:
        UsageError: there is no such file and no such preset.
    """
    if name in presets() and not Path(name).exists():
        return (preset_directory() / f"{name}.yaml").read_text()
    try:
        return settings_text(name, "policy")
    except FileNotFoundError:
        meant = get_close_matches(name, presets(), n=1)
        hint = f"; did you mean the preset {meant[0]!r}?" if meant else ""
        raise UsageError(f"there is no policy file {name}, and the presets are {', '.join(presets())}{hint}") from None


def limits(policy: Policy) -> Limits:
    """Return the policy's limits on evictions."""
    return Limits(policy.max_per_node, policy.max_per_namespace, policy.max_total)


def plans(policy: Policy, *, balances: bool = True) -> tuple[ProfilePlan, ...]:
    """Return the profiles made ready to run; without those strategies that even nodes out unless it `balances`."""
    return tuple(_plan(profile, balances=balances) for profile in policy.profiles)


def _plan(profile: PolicyProfile, *, balances: bool) -> ProfilePlan:
    known, args = strategies(), profile.args
    evictor = args[DEFAULT_EVICTOR.name]
    assert isinstance(evictor, DefaultEvictorArgs)
    balance = [name for name in profile.balance if balances or not isinstance(args[name], UtilizationArgs)]
    return ProfilePlan(
        profile.name,
        evictor,
        tuple(known[name](args[name]) for name in profile.deschedule),
        tuple(known[name](args[name]) for name in balance),
        profile.schedule,
    )


def kinds_needed(profiles: Iterable[ProfilePlan]) -> frozenset[str]:
    """Return the kinds that these plans need besides nodes and pods; PDBs are always needed."""
    needed = {"PodDisruptionBudget"}
    for profile in profiles:
        evictor = profile.evictor
        if evictor.namespace_label_selector:
            needed.add("Namespace")
        if evictor.priority_threshold.name:
            needed.add("PriorityClass")
        if PVC in evictor.protections() and evictor.protected_storage_classes():
            needed.add("PersistentVolumeClaim")
        for strategy in (*profile.deschedule, *profile.balance):
            needed |= strategy.needs
    return frozenset(needed)


def asks_scheduler(policy: Policy, profiles: Iterable[ProfilePlan]) -> bool:
    """Return whether decisions depend on where the scheduler would put pods."""
    by_evictor = policy.steering is not None or any(each.evictor.asks_scheduler for each in profiles)
    return by_evictor or any(args.asks_scheduler for args in _utilization(profiles))


def compacts(profiles: Iterable[ProfilePlan]) -> bool:
    """Return whether a strategy empties whole nodes, which may be held then."""
    return any(args.compacts for args in _utilization(profiles))


def relieves(profiles: Iterable[ProfilePlan]) -> bool:
    """Return whether a strategy selects pods by relief or compaction."""
    return any(args.relief or args.compacts for args in _utilization(profiles))


def _utilization(profiles: Iterable[ProfilePlan]) -> Iterator[UtilizationArgs]:
    """Yield the arguments of the strategies that even nodes out or empty them."""
    for profile in profiles:
        yield from (each.args for each in profile.balance if isinstance(each.args, UtilizationArgs))
