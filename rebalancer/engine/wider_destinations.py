"""What the ledger says of replacements, once it is known which pods go: they may come in other orders."""

from dataclasses import replace

from rebalancer.cluster.cluster import Cluster
from rebalancer.engine.ledger import Entry, Ledger, Notice
from rebalancer.eviction.causes import Code, cause
from rebalancer.eviction.destination import Destination
from rebalancer.eviction.verdict import Refused
from rebalancer.scheduling.worlds import Worlds

#: More than this share of the candidates is said first, with so many of the reasons.
_MUCH = 0.1
_NAMED = 3


def widen_destinations(ledger: Ledger, cluster: Cluster) -> None:
    """Name in each destination all nodes where the replacement lands in some possible history, with their shares.

    The first node stays the one that the plan counts on.  To be called when the cycle's evictions are all decided.
    """
    gone = [each for each in (*ledger.evictions, *ledger.unknown) if each.destination]
    if not any(each.destination.shares for each in gone if each.destination):
        return
    worlds = cluster.index(Worlds)
    worlds.played({each.pod: each.destination.nodes[0] for each in gone if each.destination})
    ledger.evictions[:] = [_wider(each, worlds) for each in ledger.evictions]
    ledger.unknown[:] = [_wider(each, worlds) for each in ledger.unknown]


def tell_unknown(ledger: Ledger) -> None:
    """Say first if more than a tenth of the candidates stay since it is not known where they would land."""
    entries = (*ledger.evictions, *ledger.unknown, *ledger.refusals)
    found = {each.pod.key: why for each in ledger.refusals if (why := _unknown(each))}
    candidates = {each.pod.key for each in entries}
    if len(found) > _MUCH * len(candidates):
        reasons = "; ".join(sorted(set(found.values()))[:_NAMED])
        told = cause(Code.LANDINGS_UNKNOWN, pods=len(found), candidates=len(candidates), reasons=reasons)
        ledger.warnings.insert(0, Notice(told, ""))


def _unknown(entry: Entry) -> str:
    """Return why it is not known where a pod would land; empty if it stays for another reason."""
    verdict = entry.verdict
    if not isinstance(verdict, Refused) or verdict.cause.code is not Code.NO_DESTINATION:
        return ""
    return str(verdict.cause.figures.get("unknown", ""))


def _wider(entry: Entry, worlds: Worlds) -> Entry:
    if entry.destination is None or not entry.destination.shares:
        return entry
    return replace(entry, destination=Destination.seen(entry.destination.nodes[0], worlds.shares(entry.pod)))
