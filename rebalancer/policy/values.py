"""A policy as values, ready for a cycle: all names known, all arguments typed, and what its `appetite` fills in."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from rebalancer.errors import Problem
from rebalancer.policy.arguments import Args, duration_text
from rebalancer.policy.moving import BackOff, Lasting, Trust
from rebalancer.policy.usage import KUBERNETES_METRICS
from rebalancer.policy.v1alpha2 import WirePolicy, WireProfile


class PolicyProfile(WireProfile):
    """A named set of strategies, and the arguments of all plugins that it configures, DefaultEvictor among them."""

    args: Mapping[str, Args]


class Policy(WirePolicy):
    """What to do in a cycle, and its limits: None stands for no limit, 0 for none at all."""

    profiles: tuple[PolicyProfile, ...] = ()

    @property
    def sources(self) -> frozenset[str]:
        """The sources of usage that are set up, by the deprecated switch too."""
        switched = (KUBERNETES_METRICS,) if self.metrics_collector.enabled else ()
        return frozenset((*(each.source for each in self.metrics_providers), *switched))


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A policy that can be used, and warnings for its author."""

    policy: Policy
    warnings: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Appetite:
    """What one level of the key `appetite` means: how much a policy wants to move, in one number, 1 to 5.

    It fills in what the policy leaves open, and nothing that it says.  The habit is that of VMware DRS and its
    migration threshold: 1 moves only what breaks rules, 3 is as without the key, 5 makes every move that gains.
    """

    about: str  # the level in words
    min_gain: float  # points that a steered move brings at least
    price: float  # points over the target x hours that an ordinary move has to bring
    rest: timedelta  # how long an owner is left alone after a cycle that moved it
    lasting: Lasting | None = None
    most: int | None = None  # evictions of a cycle; None for any number
    balances: bool = True  # whether nodes are evened out at all


LEVELS = {
    1: Appetite("only pods that break rules", 100.0, 100.0, timedelta(hours=6), Lasting(), 5, balances=False),
    2: Appetite("only load that lasts, few pods at a time", 4.0, 12.0, timedelta(hours=1), Lasting(), 10),
    3: Appetite("as without it", 1.5, 6.0, timedelta(minutes=30)),
    4: Appetite("smaller gains too", 1.0, 2.0, timedelta(minutes=15)),
    5: Appetite("every move that gains", 0.1, 0.0, timedelta(minutes=5)),
}


def filled(policy: Policy) -> Policy:
    """Return the policy with what its appetite means, where it does not say otherwise itself."""
    if policy.appetite is None:
        return policy
    level, trust, steering = LEVELS[policy.appetite], policy.trust or Trust(), policy.steering
    changes = {"back_off": BackOff(first=level.rest), "lasting": level.lasting, "move_price": level.price}
    open_ = {name: each for name, each in changes.items() if name not in trust.model_fields_set}
    if steering and "min_gain" not in steering.model_fields_set:
        steering = steering.model_copy(update={"min_gain": level.min_gain})
    most = policy.max_total if policy.max_total is not None else level.most
    update = {"trust": trust.model_copy(update=open_), "steering": steering, "max_total": most}
    return policy.model_copy(update=update)


def appetite_lines() -> list[str]:
    """Return the levels for people, and what they come to."""
    rows = [("appetite", "moves", "minGain", "movePrice", "backOff.first", "lasting", "evictions a cycle")]
    for number, each in LEVELS.items():
        lasting = f"{each.lasting.cycles} of {each.lasting.of} cycles" if each.lasting else "no"
        gain, price = (f"{each.min_gain:g}", f"{each.price:g}") if each.balances else ("-", "-")
        most = "as the policy says" if each.most is None else f"{each.most}, unless the policy says"
        rows.append((str(number), each.about, gain, price, duration_text(each.rest), lasting, most))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
