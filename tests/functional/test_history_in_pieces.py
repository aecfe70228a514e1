"""A Prometheus that does not bear large questions is asked smaller ones, and what it does not give is said."""

import json
from threading import Barrier, Event

import pytest

from rebalancer.errors import SourceError
from rebalancer.usage.history import HistoryQueries, RangeAnswer, Span, read_history
from tests.fake_http import Reply
from tests.fake_servers import FakeServer
from tests.functional.objects import policy
from tests.make import NOW

STEP, STEPS = 300, 577
BEARABLE = 20
END = int(NOW.timestamp()) // STEP * STEP
FIRST = END - (STEPS - 1) * STEP


class RangeServer(FakeServer):
    """Three containers that use 200m and 100Mi all the time; `strain` may answer instead, by first and last time."""

    def __init__(self, strain):
        super().__init__()
        self.strain = strain
        self.asked = []
        self.over = Event()

    def __exit__(self, *given):
        self.over.set()
        super().__exit__(*given)

    def answer(self, request):
        first, last = (int(request.query[name]) for name in ("start", "end"))
        self.asked.append((request.query["query"], first, last))
        answer = self.strain(self, first, last)
        return answer if isinstance(answer, Reply) else self.series(request, first, last, **answer)

    def series(self, request, first, last, pods=("web-0", "web-1", "db-0"), **more):
        value = "0.2" if "cpu" in request.query["query"] else str(100 << 20)
        values = [[time, value] for time in range(first, last + 1, STEP)]
        labels = [{"namespace": "shop", "pod": pod, "container": "app"} for pod in pods]
        result = [{"metric": each, "values": values} for each in labels]
        return Reply(200, {"status": "success", "data": {"resultType": "matrix", "result": result}, **more})


def is_long(first, last):
    return (last - first) / STEP + 1 > BEARABLE


def refusing(_server, first, last):
    """As a Prometheus with --query.max-samples."""
    text = {"status": "error", "errorType": "execution", "error": "query would load too many samples"}
    return Reply(422, text) if is_long(first, last) else {}


def never_ending(server, first, last):
    """A byte now and then, until the client gives up."""
    return Reply(200, {}, dripping="body", over=server.over) if is_long(first, last) else {}


def partial(_server, first, last):
    """As Thanos, one of whose stores times out."""
    return {"warnings": ["a store is missing"], "pods": ("web-0",)} if is_long(first, last) else {}


def recommend(rebalancer, strain, *more, timeout="400ms", kind=RangeServer):
    """Return what is recommended on the history of such a server, and what that was asked."""
    span = ("--history", f"{(STEPS - 1) * STEP}s", "--step", f"{STEP}s", "--now", NOW.isoformat())
    few = ("--min-days", "1", "--min-samples", "20", "-o", "json")
    with kind(strain) as server:
        source = {"source": "Prometheus", "prometheus": {"url": server.url, "timeout": timeout}}
        asked = rebalancer.policy(policy(metricsProviders=[source]))
        outcome = rebalancer("recommend", "--policy", asked, *span, *few, *more)
    return outcome, server.asked


def samples(outcome):
    assert outcome.exit_code == 0, outcome.stderr
    return {each["name"]: each["samples"] for each in outcome.report["containers"]}


@pytest.mark.parametrize("strain", [refusing, never_ending, partial])
def test_smaller_pieces_give_everything(rebalancer, strain):
    """Once it is known what the server bears, the pieces after that are no longer: few questions are for nothing."""
    outcome, asked = recommend(rebalancer, strain)

    assert samples(outcome) == {"web": 2 * STEPS, "db": STEPS}
    assert "missing" not in outcome.stderr
    assert "partial" not in outcome.stderr
    history = [each for each in asked if "usage" in each[0] or "working_set" in each[0]]
    assert sum(is_long(first, last) for _, first, last in history) <= 20
    assert len(history) < 20 + 2 * 2 * STEPS / BEARABLE * 2


def test_three_pieces_are_asked_for_at_once(rebalancer):
    """Each of the first three after the short one is answered only when all three have come."""
    together, met = Barrier(3), []

    def strain(_server, first, last):
        if last - first > 12 * STEP and len(met) < 3:
            met.append(first)
            together.wait(timeout=20)
        return {}

    outcome, _ = recommend(rebalancer, strain, timeout="30s")

    assert samples(outcome) == {"web": 2 * STEPS, "db": STEPS}
    assert len(set(met)) == 3


def test_progress_goes_on_to_the_whole_time():
    """Seconds that are done, of all of them; what is missing is done as well."""
    told = []

    def ask(query, first, last, step):
        if first <= FIRST + 100 * STEP <= last:
            raise SourceError("no")
        return RangeAnswer([])

    read_history([ask, ask], HistoryQueries(), Span(FIRST, END, STEP), lambda *standing: told.append(standing))

    assert told == sorted(told)
    assert told[-1] == (STEPS * STEP, STEPS * STEP)


def test_an_hour_that_cannot_be_had_is_said_and_the_rest_counts(rebalancer):
    """With the hours, and the reason that the server gave."""
    broken = FIRST + 30 * STEP

    def strain(_server, first, last):
        return Reply(422, {"status": "error", "error": "block is damaged"}) if first <= broken <= last else {}

    outcome, _ = recommend(rebalancer, strain)

    lost = STEPS - samples(outcome)["db"]
    assert 6 <= lost <= 12
    assert f"Note: {lost * STEP / 3600:.1f} of 48.1 hours" in outcome.stderr
    assert "are missing: Prometheus at" in outcome.stderr
    assert "block is damaged" in outcome.stderr


def test_answers_that_are_always_partial_are_taken_and_told(rebalancer):
    """Shorter pieces do not help, so they do not stay short."""
    outcome, asked = recommend(rebalancer, lambda *_: {"warnings": ["a store is gone"]})

    assert samples(outcome) == {"web": 2 * STEPS, "db": STEPS}
    assert "may be partial: a store is gone" in outcome.stderr
    assert any((last - first) / STEP > 100 for _, first, last in asked)


@pytest.mark.parametrize("value", ["1e308", "1e30"])
def test_a_value_beyond_all_bounds_is_left_out_alone(rebalancer, value):
    """Whoever exports metrics may export that; the second one fits into the four bytes of a sample."""

    class Strange(RangeServer):
        def series(self, request, first, last, **more):
            reply = super().series(request, first, last, **more)
            series = reply.body["data"]["result"][0]
            if first == FIRST:
                series["values"] = [[first, value], *series["values"][1:]]
            return reply

    outcome, _ = recommend(rebalancer, lambda *_: {}, kind=Strange)

    assert samples(outcome) == {"web": 2 * STEPS - 1, "db": STEPS}


def test_a_server_that_refuses_everything_is_not_asked_on_and_on(rebalancer):
    """After a few pieces in a row the reason is the error."""
    outcome, asked = recommend(rebalancer, lambda *_: Reply(422, {"status": "error", "error": "no more today"}))

    assert outcome.exit_code == 1
    assert "no more today" in outcome.stderr
    assert len(asked) < 30


def test_queries_and_labels_may_be_others(rebalancer):
    """In the form of a policy's queries of pods."""
    labels = "labels: {namespace: ns, pod: pod_name, container: container_name}"
    queries = rebalancer.folder / "queries.yaml"
    queries.write_text(
        f"cpu: {{query: my_cpu, unit: cores, {labels}}}\nmemory: {{query: my_bytes, unit: bytes, {labels}}}"
    )

    class Renamed(RangeServer):
        def series(self, request, first, last, **more):
            text = json.dumps(super().series(request, first, last, **more).body)
            for ours, theirs in (("namespace", "ns"), ("pod", "pod_name"), ("container", "container_name")):
                text = text.replace(f'"{ours}"', f'"{theirs}"')
            return Reply(200, json.loads(text))

    outcome, asked = recommend(rebalancer, lambda *_: {}, "--queries", queries, kind=Renamed)

    assert samples(outcome) == {"web": 2 * STEPS, "db": STEPS}
    assert {"my_cpu", "my_bytes"} <= {each[0] for each in asked}
