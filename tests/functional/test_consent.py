"""Before it acts: a live run reads, plans, shows and asks; only `--yes` skips the question."""

import signal
from dataclasses import replace

import pytest

from rebalancer.errors import UsageError
from rebalancer.run.options import ExportOptions
from tests.attack.whims import Time
from tests.functional.objects import OLD, ONE, policy
from tests.functional.terminal import Terminal
from tests.functional.test_turns import OFTEN, hold_for_a_moment

PROMPT = "[y/N/show]: "


@pytest.fixture
def at_home(server, rebalancer):
    """The program where KUBECONFIG says which cluster is meant."""
    return replace(rebalancer, environment={"KUBECONFIG": str(server.kubeconfig(rebalancer.folder))})


def live(program, rules=ONE, *options):
    return ("run", "--policy", program.policy(rules), "--output", "json", *options)


@pytest.mark.parametrize("naming", ["KUBECONFIG", "--kubeconfig", "--context"])
@pytest.mark.parametrize("more", [(), ("--descheduling-interval", "5m")], ids=["once", "loop"])
def test_without_a_terminal_only_yes_evicts(two, at_home, naming, more):
    """Exit code 2 and the cure, whatever names the cluster; nothing is even read."""
    value = {"--kubeconfig": at_home.environment["KUBECONFIG"], "--context": "fake"}
    options = (naming, value[naming]) if naming in value else ()

    outcome = at_home(*live(at_home, ONE, *options, *more))

    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        f"Error: this run would evict pods from context fake ({two.url}), and there is no terminal to ask on: "
        "say so with --yes, or look first with --dry-run\n"
    )
    assert two.requests == []


def test_a_question_that_nobody_sees_is_not_asked(two, at_home):
    """Standard error in a file: the run would only seem to hang."""
    with (at_home.folder / "log").open("w+") as log, Terminal(at_home, *live(at_home), stderr=log) as terminal:
        outcome = terminal.finish()
        log.seek(0)
        assert "no terminal to ask on" in log.read()

    assert outcome.exit_code == 2
    assert two.requests == []


def test_who_is_not_asked(two, at_home):
    """A dry run changes nothing, in a pod nobody is there, with a mounted kubeconfig too, and --yes has agreed."""
    in_pod = replace(at_home, environment={**at_home.environment, "KUBERNETES_SERVICE_HOST": "10.0.0.1"})

    assert at_home(*live(at_home), "--dry-run").evicted() == ["default/a"]
    assert two.evicted == []
    assert at_home(*live(at_home), "--yes").evicted() == ["default/a"]
    assert in_pod(*live(in_pod), "--secure-port", "0").evicted() == ["default/b"]
    assert two.evicted == ["default/a", "default/b"]


def test_the_plan_is_shown_before_the_question(two, at_home):
    """How much of what, within which limits, on standard error; nothing has happened yet, and no Lease is held."""
    with Terminal(at_home, *live(at_home)) as terminal:
        shown = terminal.read_until(PROMPT)
        written = two.sent("POST", "*") + two.sent("PUT", "*")
        holder = two.leases.holder()
        terminal.type("y\n")
        outcome = terminal.finish()

    assert shown == (
        "!            1 of 2 pods of the cluster: more than a fifth\n"
        "pods:        1 of 2 would be evicted\n"
        "namespaces:  default 1 of 2 (50 %)\n"
        "owners:      default/ReplicaSet/web (no PDB) 1 of 2 (50 %)\n"
        "limits:      1 in all\n"
        "default/a  on n1, by PodLifeTime: age 2d > 1m\n"
        f"Evict pods from context fake ({two.url})? [y/N/show]: "
    )
    assert (written, holder) == ([], "")
    assert len(two.sent("GET", "/api/v1/pods")) == 1  # a quick answer runs on what was shown
    assert outcome.exit_code == 0
    assert two.evicted == outcome.evicted() == ["default/a"]


def test_show_pages_through_all_that_a_dry_run_says(many, at_home):
    """The first screen has as many moves as fit; `show` has them all, a screen at a time, and asks again."""
    with Terminal(at_home, *live(at_home, policy(OLD, maxNoOfPodsToEvictTotal=39))) as terminal:
        first = terminal.read_until(PROMPT)
        terminal.type("show\n")
        pages = [terminal.read_until("back to the question -- ")]
        terminal.type("\n")
        pages.append(terminal.read_until("back to the question -- "))
        terminal.type("q\n")
        terminal.read_until(PROMPT)
        terminal.type("n\n")
        outcome = terminal.finish()

    assert (first.count("by PodLifeTime"), first.count("more: `show` lists them")) == (first.count("default/p"), 1)
    assert first.count("\n") < 24
    assert "39 pods would be evicted" in pages[0]
    assert all(page.count("\n") <= 24 for page in pages)
    assert " p33 " in pages[1]
    assert (outcome.exit_code, many.evicted) == (0, [])


@pytest.mark.parametrize("answer", ["sure\n", "\x04", signal.SIGINT], ids=["else", "the end of input", "Ctrl-C"])
def test_anything_but_yes_evicts_nothing(two, at_home, answer):
    """That is no failure, but for Ctrl-C, and there is no report of a run that did not happen."""
    with Terminal(at_home, *live(at_home)) as terminal:
        terminal.read_until(PROMPT)
        if isinstance(answer, str):
            terminal.type(answer)
        else:
            terminal.process.send_signal(answer)
        outcome = terminal.finish()

    assert (outcome.exit_code, outcome.stdout) == (130 if answer is signal.SIGINT else 0, "")
    assert outcome.stderr.endswith("Nothing was evicted: the answer was not yes.\n") or answer is signal.SIGINT
    assert two.sent("POST", "*") == []


@pytest.mark.parametrize("forbids", [False, True], ids=["until the Lease is given back", "until it may not be read"])
def test_after_another_runs_turn_the_cluster_is_read_again(two, at_home, forbids):
    """It evicted what was shown: the plan holds a pod that nobody saw, and the question is asked again."""

    def end_turn():
        two.remove_pod("default", "a")
        if forbids:
            two.forbid("get", "leases.coordination.k8s.io")

    with Terminal(at_home, *live(at_home), *OFTEN) as terminal:
        terminal.read_until(PROMPT)
        hold_for_a_moment(two, end_turn)
        terminal.type("y\n")
        again = terminal.read_until(PROMPT)
        before = list(two.evicted)
        terminal.type("y\n")
        outcome = terminal.finish()

    assert "new:         default/b was not shown before\n" in again
    assert "\nThe plan has changed. Evict pods from context fake" in again
    assert before == []
    assert outcome.exit_code == 0
    assert two.evicted == outcome.evicted() == ["default/b"]


class SlowPerson(Time):
    """Agrees so often, each time after so many seconds; meanwhile something may happen."""

    def __init__(self, seconds, *, agrees=9, meanwhile=lambda: None):
        super().__init__()
        self.unseen = []
        self._seconds = seconds
        self._agrees = agrees
        self._meanwhile = meanwhile

    def __call__(self, _):
        return self.agree

    def agree(self, _, unseen):
        self.unseen.append(unseen)
        self.now += self._seconds
        self._meanwhile()
        if len(self.unseen) > self._agrees:
            raise UsageError("no")


def test_an_answer_after_a_minute_runs_on_a_fresh_look(two, rebalancer):
    """The cluster is read again; with no new pod in the plan there is no second question."""
    report = rebalancer.play(two, ONE, person := SlowPerson(61), person=person).report

    assert [each["name"] for each in report["evictions"]] == ["a"]
    assert person.unseen == [[]]
    assert len(two.sent("GET", "/api/v1/pods")) == 2


def test_what_was_not_shown_is_asked_about(two, rebalancer):
    """The pod that was shown goes by itself meanwhile; a no to the second question evicts nothing."""
    person = SlowPerson(
        61, agrees=1, meanwhile=lambda: "default/a" in two.pod_names() and two.remove_pod("default", "a")
    )

    with pytest.raises(UsageError):
        rebalancer.play(two, ONE, person, person=person)

    assert person.unseen == [[], ["default/b"]]
    assert two.sent("POST", "*") == []


def test_a_turn_after_which_the_question_is_asked_again_has_not_failed(two, rebalancer):
    """Metrics, and alerts by these, count it as one that was skipped."""
    person = SlowPerson(61, meanwhile=lambda: "default/a" in two.pod_names() and two.remove_pod("default", "a"))
    metrics = rebalancer.folder / "metrics.prom"

    rebalancer.play(two, ONE, person, person=person, export=ExportOptions(metrics_textfile=str(metrics)))

    cycles = [line for line in metrics.read_text().splitlines() if line.startswith("rebalancer_cycles_total")]
    assert cycles == [
        f'rebalancer_cycles_total{{dry_run="false",result="{result}"}} 1.0' for result in ("skipped", "succeeded")
    ]
