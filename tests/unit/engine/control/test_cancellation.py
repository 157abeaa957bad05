"""Signals: the first one requests a stop, the second one ends the process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
