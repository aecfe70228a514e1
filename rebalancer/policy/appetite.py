"""How much a policy wants to move, in one number: the key `appetite`, 1 to 5.

It fills in what the policy leaves open, and nothing that it says.  The habit is that of VMware DRS and its migration
threshold: 1 moves only what breaks rules, 3 is as without the key, 5 makes every move that gains.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from rebalancer.policy.arguments import duration_text
from rebalancer.policy.trust import BackOff, Lasting, Trust
from rebalancer.policy.values import Policy


@dataclass(frozen=True, slots=True)
class Appetite:
    """What one level means.

    Attributes:
        about: the level in words.
        min_gain: points that a steered move brings at least.
        price: points over the target x hours that an ordinary move has to bring.
        rest: how long an owner is left alone after a cycle that moved it.
        lasting: for how many of the last cycles a node must be over its target; None for this one alone.
        most: evictions of a cycle; None for any number.
        balances: whether nodes are evened out at all.
    """

    about: str
    min_gain: float
    price: float
    rest: timedelta
    lasting: Lasting | None = None
    most: int | None = None
    balances: bool = True


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
    return replace(policy, trust=trust.model_copy(update=open_), steering=steering, max_total=most)


def lines() -> list[str]:
    """Return the levels for people, and what they come to."""
    rows = [("appetite", "moves", "minGain", "movePrice", "backOff.first", "lasting", "evictions a cycle")]
    for number, each in LEVELS.items():
        lasting = f"{each.lasting.cycles} of {each.lasting.of} cycles" if each.lasting else "no"
        gain, price = (f"{each.min_gain:g}", f"{each.price:g}") if each.balances else ("-", "-")
        most = "as the policy says" if each.most is None else f"{each.most}, unless the policy says"
        rows.append((str(number), each.about, gain, price, duration_text(each.rest), lasting, most))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
