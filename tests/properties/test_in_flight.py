"""Several evictions at a time give the ledger of one after the other, whatever the API server answers."""

from random import Random
from threading import Condition

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.pod import Pod
from rebalancer.engine.ledger import Ledger
from rebalancer.engine.limits import Limits
from rebalancer.eviction.verdict import GRANTED, Failed, Unknown, Verdict
from tests import make
from tests.make import says_no
from tests.unit.engine.stand_ins import AnsweringSink, Listed, Polite

ANSWERS = (GRANTED, GRANTED, GRANTED, says_no("PDB", "no"), says_no("Gone", "no"), Failed("500"), Unknown("?"))
NODES = [make.node(name, pods=14) for name in ("n1", "n2", "n3")]
#: Of these apps each has a PDB.
COVERED = ("a", "b")


class Conflicts(AnsweringSink):
    """Notes pods of one owner or PDB that are asked for at once, and more at once than are allowed."""

    def __init__(self, answers: dict[str, Verdict], most: int) -> None:
        super().__init__(answers)
        self.most = most
        self.wrong: list[str] = []
        self._present: dict[str, frozenset[str]] = {}
        self._lock = Condition()

    def __call__(self, pod, *_):
        mine = frozenset((*(owner.uid for owner in pod.owners), *({pod.labels["app"]} & {*COVERED})))
        with self._lock:
            shared = any(mine & each for each in self._present.values())
            self._present[pod.name] = mine
            self.wrong += [pod.name] if shared or len(self._present) > self.most else []
            self._lock.wait(0.001)  # else each is gone before the next one comes
        try:
            return super().__call__(pod)
        finally:
            with self._lock:
                del self._present[pod.name]


def crowd(dice: Random) -> list[Pod]:
    return [
        make.pod(
            f"p{number}",
            node=dice.choice(NODES).name,
            labels={"app": dice.choice("abcdefgh")},
            owners=f"owner-{dice.randrange(12)}",
            mirror=not dice.randrange(9),
            ready=bool(dice.randrange(5)),
            cpu=dice.choice(("100m", "1")),
        )
        for number in range(dice.randint(5, 40))
    ]


def limits(dice: Random) -> Limits:
    return Limits(*(dice.choice((None, dice.randrange(9))) for _ in range(3)))


def told(ledger: Ledger) -> list[list[tuple[object, ...]]]:
    lists = (ledger.evictions, ledger.unknown, ledger.refusals, ledger.failures)
    return [[(each.strategy, each.pod.name, each.because, each.verdict) for each in entries] for entries in lists]


@given(st.integers(0, 2**32).map(Random), st.integers(2, 8))
def test_the_ledger_is_that_of_one_after_the_other(dice, most):
    """With limits, PDBs, too few replicas and too little room, doubts and refusals by the server; order included."""
    pods, bound = crowd(dice), limits(dice)
    answers = {pod.name: dice.choice(ANSWERS) for pod in pods}
    budgets = tuple(make.pdb(app, dice.randrange(4)) for app in COVERED)
    evictor = {"minReplicas": dice.choice((1, 2)), "nodeFit": dice.choice((True, False))}

    def ledger(**options) -> Ledger:
        on = make.cluster(NODES, pods, budgets=budgets)
        return make.decide(on, Listed(), Polite(), Listed(), evictor=evictor, limits=bound, **options)

    sink = Conflicts(answers, most)
    at_once = ledger(sink=sink, most_in_flight=most)

    assert told(at_once) == told(ledger(sink=AnsweringSink(answers)))
    assert not sink.wrong
