import os
import signal

import pytest

from opentinker.lifecycle import Lifecycle


class Thing:
    def __init__(self, name: str, closed: list[str], *, fails: bool = False) -> None:
        self.name, self.closed, self.fails = name, closed, fails

    def close(self) -> None:
        self.closed.append(self.name)
        if self.fails:
            raise OSError('stuck')


def test_things_are_closed_newest_first_after_an_exception():
    closed: list[str] = []

    def fail() -> None:
        with Lifecycle() as life:
            for name in 'abc':
                life.keep(Thing(name, closed))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert closed == ['c', 'b', 'a']


def test_a_close_that_fails_does_not_keep_the_others_open(caplog):
    closed: list[str] = []
    with Lifecycle() as life:
        life.keep(Thing('a', closed))
        life.keep(Thing('b', closed, fails=True))
    assert closed == ['b', 'a']
    assert 'closing Thing failed' in caplog.text


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_loops_to_end(number):
    before = signal.getsignal(number)
    with Lifecycle() as life:
        assert not life.stopping
        os.kill(os.getpid(), number)
        assert life.stopping == number.name
    assert signal.getsignal(number) is before


def test_a_second_interrupt_is_not_put_off():
    with Lifecycle():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
