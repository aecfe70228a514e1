"""A signal ends the program before or after a moment that must not be cut in two."""

import signal

import pytest

from rebalancer.kube.exec_plugin import held_signals


class EndedError(Exception):
    """A signal came."""


def end(*_):
    raise EndedError


@pytest.fixture(autouse=True)
def handlers():
    """SIGTERM and SIGINT end the program, SIGHUP is ignored."""
    wanted = {signal.SIGTERM: end, signal.SIGINT: end, signal.SIGHUP: signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    yield wanted
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_takes_effect_afterwards(number, handlers):
    """All that had to be done is done by then."""
    done = []

    def act():
        with held_signals():
            signal.raise_signal(number)
            done.append("all")

    with pytest.raises(EndedError):
        act()

    assert done == ["all"]
    assert {each: signal.getsignal(each) for each in handlers} == handlers


def test_it_can_take_effect_earlier(handlers):
    """Where it would be a nuisance no more; from then on signals act at once."""
    with held_signals() as release:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(EndedError):
            release()
        with pytest.raises(EndedError):
            signal.raise_signal(signal.SIGINT)

    assert {each: signal.getsignal(each) for each in handlers} == handlers


def test_what_is_ignored_stays_ignored():
    """As SIGHUP under `nohup`."""
    with held_signals() as release:
        signal.raise_signal(signal.SIGHUP)
        assert release() is None


def test_an_error_meanwhile_is_kept(handlers):
    """And signals act again."""
    with pytest.raises(FileNotFoundError), held_signals():
        raise FileNotFoundError

    assert {each: signal.getsignal(each) for each in handlers} == handlers
