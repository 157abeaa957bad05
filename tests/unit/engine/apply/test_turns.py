"""Which turns of a range run late."""

from concurrent.futures import Future
from threading import Timer

from dmdelta.engine.apply import turns


def done():
    turn = Future()
    turn.set_result(None)
    return turn


def test_turns_are_awaited(monkeypatch):
    """For any duration, if no more of the log is available, or if too many turns would run late."""
    monkeypatch.setattr(turns, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(turns, "_POLL_SECONDS", 0.01)
    first, second = Future(), Future()
    Timer(0.1, first.set_result, (None,)).start()
    assert turns.await_turns([first, done()], 1, lambda: False) == set()
    first = Future()
    for number, turn in enumerate((first, second)):
        Timer(0.1 * (number + 1), turn.set_result, (None,)).start()
    assert turns.await_turns([first, second], 0, lambda: True) == set()


def test_the_last_turns_run_late_if_others_wait(monkeypatch):
    """After a while, and only up to the maximum number."""
    monkeypatch.setattr(turns, "SLOW_SECONDS", 0.05)
    monkeypatch.setattr(turns, "_POLL_SECONDS", 0.01)
    slow, slower = Future(), Future()
    assert turns.await_turns([done(), slow, slower], 2, lambda: True) == {slow, slower}
    Timer(0.05, slow.set_result, (None,)).start()
    assert turns.await_turns([slow, slower], 1, lambda: True) == {slower}
