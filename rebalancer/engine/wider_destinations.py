"""What the ledger says of replacements, once it is known which pods go: they may come in other orders."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from rebalancer.cluster.pod import Pod
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.eviction.destination import Destination
from rebalancer.scheduling.other_orders import OtherOrders


def widen_destinations(ledger: Ledger, other_orders: OtherOrders) -> None:
    """Name in each destination all nodes where the replacement may land, in turn or in another order.

    The first node stays the one that the plan counts on.  To be called when the cycle's evictions are all decided.
    """
    gone = [*ledger.evictions, *ledger.unknown]
    found = other_orders.landings({each.pod: each.destination.nodes[0] for each in gone if each.destination})
    ledger.evictions[:] = [_wider(each, found) for each in ledger.evictions]
    ledger.unknown[:] = [_wider(each, found) for each in ledger.unknown]


def _wider(entry: Entry, found: Mapping[Pod, Collection[str]]) -> Entry:
    if entry.destination is None or entry.pod not in found:
        return entry
    expected, *others = entry.destination.nodes
    return replace(entry, destination=Destination.among(expected, (*others, *sorted(found[entry.pod]))))
