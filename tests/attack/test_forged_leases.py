"""Five runs take turns, again and again, while somebody deletes, edits and forges their Lease at random times.

Time is played: it passes where a run waits, or where the API server takes its time, and meanwhile others act.
"""

import heapq
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from rebalancer.errors import ClusterError, Unreachable
from rebalancer.kube.leases import Lease
from rebalancer.run.leadership import LEADER, ONE_CYCLE, REQUEST_SECONDS, Leadership
from tests.attack.seeds import seeds

TURNS = 20
RUNS = 5


@dataclass
class Play:
    """What happens when; the clock goes on to the next of it whenever somebody waits."""

    now: float = 1000.0
    due: list = field(default_factory=list)
    order: count = field(default_factory=count)

    def at(self, seconds, step):
        heapq.heappush(self.due, (self.now + seconds, next(self.order), step))

    def sleep(self, seconds):
        until = self.now + seconds
        while self.due and self.due[0][0] <= until:
            at, _, step = heapq.heappop(self.due)
            self.now = max(self.now, at)
            step()
        self.now = max(self.now, until)

    def wall(self):
        return datetime(2026, 1, 15, 12, tzinfo=UTC) + timedelta(seconds=self.now)


class SlowLeases:
    """A Lease on an API server that answers late, or never, whether it has carried a request out or not."""

    namespace, name = "kube-system", "rebalancer"

    def __init__(self, play, chance):
        self.play, self.chance = play, chance
        self.lease = None
        self.versions = count(1)
        self.copies = []

    def put(self, lease):
        self.lease = lease and replace(lease, version=str(next(self.versions)))
        self.copies += [lease] if lease else []
        return self.lease

    def read(self, seconds=None):
        return self._answered(lambda: self.lease)

    def write(self, lease, seconds=None):
        return self._answered(lambda: self._written(lease))

    def _written(self, lease):
        return self.put(lease) if lease.version == (self.lease.version if self.lease else "") else None

    def _answered(self, act):
        began, slow = self.play.now, self.chance.random() < 0.1
        self.play.sleep(self.chance.uniform(0, 6 if slow else 0.1))
        done = act()
        self.play.sleep(self.chance.uniform(0, 6 if slow else 0.1))
        if self.play.now - began > REQUEST_SECONDS:
            raise Unreachable("no answer in time")
        return done


class Played(Leadership):
    """Renews in played time, where a process has a thread."""

    def _renew_on(self, over):
        pass


class Run:
    """Takes its turn, evicts for a while, gives the Lease back or is killed, and begins anew."""

    def __init__(self, number, play, leases, chance, written):
        self.number, self.play, self.leases, self.chance, self.written = number, play, leases, chance, written
        self.timing = LEADER if number == 0 else ONE_CYCLE
        self.turns = count()
        self.begin()

    def begin(self):
        self.name = f"run-{self.number}-{next(self.turns)}"
        self.part = Played(self.leases, self.timing, self.name, lambda: self.play.now, self.play.wall)
        self.play.at(self.chance.uniform(0, 20), self.take)

    def take(self):
        try:
            taken = self.part.take()
        except ClusterError:
            taken = False
        if not taken:
            self.play.at(self.timing.retry, self.take)
            return
        self.play.at(self.part.pause(), lambda: self.write(self.chance.randint(1, 40)))
        self.play.at(self.timing.retry, lambda: self.renew(self.part))

    def renew(self, part):
        if part is self.part and part._renew() and part is self.part:
            self.play.at(self.timing.retry, lambda: self.renew(part))

    def write(self, left):
        if not left or self.part.permit():
            if self.chance.random() < 0.8:  # else it is killed
                self.part.release()
            self.begin()
            return
        self.written.append(self.name)
        stopped = 30 if self.chance.random() < 0.02 else 0
        self.play.at(self.chance.uniform(0.01, 1.5) + stopped, lambda: self.write(left - 1))


def attack(play, leases, runs, chance):
    """Do to the Lease what a person or a program could, and come back."""
    found, wall = leases.lease, play.wall()
    forged = [
        None,
        Lease("", chance.choice([0.0, 1.0, 15.0]), wall, wall, 0, ""),
        Lease("thief", chance.choice([0.0, 1.0, 15.0, 2.0**31 - 1]), wall, None, 2**31 - 1, ""),
        Lease(chance.choice(runs).name, 15.0, wall + timedelta(days=chance.choice([-1, 0, 1])), wall, 3, ""),
        replace(found, holder="") if found else None,
        replace(found, duration=0.0, renewed=None) if found else None,
        *chance.sample(leases.copies[-5:-1], k=min(1, len(leases.copies[-5:-1]))),
    ]
    forged = [each for each in forged if not (each and each.annotations)]  # nobody forges that it was given back
    leases.put(chance.choice(forged))
    play.at(chance.expovariate(1 / 25), lambda: attack(play, leases, runs, chance))


@pytest.mark.parametrize("seed", seeds(5))
def test_no_two_runs_write_at_once(seed):
    """Once another one has written, a run writes nothing more in its turn; and all of them have turns."""
    chance, play, written = random.Random(seed), Play(), []
    leases = SlowLeases(play, chance)
    runs = [Run(number, play, leases, chance, written) for number in range(RUNS)]
    play.at(30, lambda: attack(play, leases, runs, chance))

    while len(set(written)) < TURNS:
        assert play.now < 100_000, "nobody has a turn any more"
        play.sleep(10)

    turns = [name for before, name in zip([None, *written], written, strict=False) if name != before]
    assert len(turns) == len(set(turns))
