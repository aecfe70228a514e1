"""Memories for tests: a test says only what it is about."""

from datetime import timedelta
from typing import Any

from rebalancer.engine.patience import Recollection
from rebalancer.memory.document import Memory, PastMove
from rebalancer.policy.moving import Trust
from tests import make

LONG = timedelta(days=30)


def ago(**units: float):
    """The time that was so long before the cycle, as in `ago(minutes=20)`."""
    return make.NOW - timedelta(**units)


def move(owner: str = "web", *, at: Any, cycle: Any = None, **fields: Any) -> PastMove:
    return PastMove(at=at, cycle=cycle or at, namespace="default", owner=f"ReplicaSet/{owner}", **fields)


def memory(*moves: PastMove, since: Any = None, **fields: Any) -> Memory:
    """A memory that has been kept for long."""
    return Memory(since=since or make.NOW - LONG, moves=moves, **fields)


def recollection(*moves: PastMove, trust: Any = None, **fields: Any) -> Recollection:
    """What a cycle knows; `trust` as a policy spells it."""
    known = fields.pop("memory", memory(*moves))
    return Recollection(Trust.model_validate(trust or {}), known, **fields)
