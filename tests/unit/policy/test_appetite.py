"""One number fills in what a policy leaves open."""

import pytest
from click.testing import CliRunner

from rebalancer.cli.main import main
from rebalancer.policy.values import LEVELS, filled
from rebalancer.run.options import Options
from rebalancer.run.work import Work, work_maker
from tests.unit.policy.reading import LIFE_TIME, RUN_LIFE_TIME, load, profile

LOW = "{name: LowNodeUtilization, args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}}"


def work(top: str) -> Work:
    text = profile(f"{LIFE_TIME}, {LOW}", f"{RUN_LIFE_TIME}, balance: {{enabled: [LowNodeUtilization]}}")
    return work_maker(Options(policy="given"))(load(text + top, strict=True))


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_fills_in_what_is_open(level: int) -> None:
    """Rest, lasting load, gain and limit; on level 1 nothing is evened out."""
    found = work(f"appetite: {level}\nsteering: {{}}")
    wanted = LEVELS[level]

    assert found.trust is not None
    assert found.trust.back_off.first == wanted.rest
    assert found.trust.lasting == wanted.lasting
    assert found.trust.move_price == wanted.price
    assert found.policy.steering is not None
    assert found.policy.steering.min_gain == wanted.min_gain
    assert found.policy.max_total == wanted.most
    assert [len(each.balance) for each in found.plans] == [int(wanted.balances)]


def test_what_the_policy_says_counts() -> None:
    trust = "trust: { lasting: { cycles: 1, of: 2 }, backOff: { first: 7m } }"
    found = work(f"appetite: 2\nmaxNoOfPodsToEvictTotal: 50\nsteering: {{ minGain: 3 }}\n{trust}")

    assert found.trust is not None
    assert found.trust.lasting is not None
    assert (found.trust.lasting.cycles, found.trust.back_off.first.total_seconds()) == (1, 420)
    assert found.policy.steering is not None
    assert (found.policy.steering.min_gain, found.policy.max_total) == (3, 50)


def test_without_it_nothing_is_filled_in() -> None:
    policy = work("trust: {}").policy

    assert filled(policy) is policy
    assert policy.trust is not None
    assert (LEVELS[3].rest, LEVELS[3].price) == (policy.trust.back_off.first, policy.trust.move_price)


def test_the_levels_are_shown() -> None:
    heading, *levels = CliRunner().invoke(main, ["appetite"]).stdout.splitlines()

    assert [each.split()[0] for each in levels] == list("12345")
    assert "minGain" in heading
