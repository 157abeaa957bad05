"""Requests to stop or pause, and the signals that request them."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from dmdelta.engine.control.cancellation import StopRequest, ending_on_signals
from dmdelta.errors import StageFailed

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = """
import logging, signal, sys, time
from dmdelta.engine.control.cancellation import StopRequest, stopping_on_signals
from dmdelta.logging import configure
configure()
signal.signal(signal.SIGINT, signal.SIG_DFL)
stop = StopRequest()
with stopping_on_signals(stop):
    print("ready", flush=True)
    while not stop.wait(0.1):
        pass
    print("stopping", stop.signalled, flush=True)
    time.sleep(60)
"""


def started():
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (signal.SIGINT, signal.SIGINT),
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGINT, signal.SIGTERM),
        (signal.SIGTERM, signal.SIGINT),
    ],
)
def test_a_second_signal_ends_the_process(first, second):
    """Whichever the first was; the log announces it."""
    process = started()
    try:
        process.send_signal(first)
        assert process.stdout.readline() == "stopping True\n"
        assert "a second signal ends the process immediately" in process.stderr.readline()
        process.send_signal(second)
        assert process.wait(30) == -second
    finally:
        process.kill()
        process.communicate()


def test_a_drain_is_part_of_a_stop_without_a_failure():
    """It ends after its time, or once something has failed."""
    stop = StopRequest()
    assert not stop.drains
    stop.request(drain=1000.0)
    assert (stop.requested, stop.drains) == (True, True)
    stop.fail(StageFailed("landing failed", hint="retry"))
    assert (stop.requested, stop.drains) == (True, False)


def test_a_stop_without_time_does_not_drain():
    """It also cancels the drain of an earlier stop: the operator does not want to wait longer."""
    stop = StopRequest()
    stop.request(drain=1000.0)
    stop.request()
    assert (stop.requested, stop.drains) == (True, False)


def test_a_pause_ends_with_a_resume_and_a_stop_is_final():
    stop = StopRequest()
    stop.pause()
    assert (stop.requested, stop.is_pause) == (True, True)
    stop.resume()
    assert not stop.requested
    stop.pause()
    stop.request()
    stop.resume()
    assert (stop.requested, stop.is_pause, stop.wait_for_resume()) == (True, False, False)


@pytest.fixture
def default_actions():
    """SIGTERM and SIGHUP have their default actions during the test."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    yield
    for number, action in zip(numbers, before, strict=True):
        signal.signal(number, action)


@pytest.mark.usefixtures("default_actions")
def test_a_signal_ends_a_block_as_an_exception():
    """The block's `finally` clauses run, a second signal does not interrupt them, and the default actions return."""
    ended = []
    with pytest.raises(SystemExit) as raised, ending_on_signals():
        hang_up(ended)
    assert (raised.value.code, ended) == (129, [True])
    assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def hang_up(ended):
    """Ends by SIGHUP; SIGTERM arrives before it has ended."""
    try:
        signal.raise_signal(signal.SIGHUP)
    finally:
        signal.raise_signal(signal.SIGTERM)
        ended.append(True)


@pytest.mark.usefixtures("default_actions")
def test_a_signal_whose_exception_is_dropped_takes_effect_at_the_end_of_the_block():
    """Python drops what is raised in a finalizer."""
    with pytest.raises(SystemExit) as raised, ending_on_signals(), suppress(SystemExit):
        signal.raise_signal(signal.SIGTERM)
    assert raised.value.code == 143


@pytest.mark.usefixtures("default_actions")
def test_what_the_program_does_with_signals_remains():
    """Its handler is called, an ignored signal is ignored, and a block in another thread changes nothing."""
    received = []
    signal.signal(signal.SIGTERM, lambda number, _frame: received.append(number))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ending_on_signals():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
    assert received == [signal.SIGTERM]
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(hangup_in_a_block).result() is signal.SIG_DFL


def hangup_in_a_block():
    """The action of SIGHUP in a block of the calling thread."""
    with ending_on_signals():
        return signal.getsignal(signal.SIGHUP)
