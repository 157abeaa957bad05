"""The Spark Connect servers of a lane: each process of pytest-xdist has its own, and a signal reaches pytest."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.connect_server import REMOTES_VARIABLE, SERVERS, choose_remote
from tests.unit.lanes.small_night import ROOT

CALL = """
import itertools, signal, sys
from contextlib import contextmanager
from tests.support import connect_server
numbers = itertools.count()
@contextmanager
def server(settings, python):
    number = next(numbers)
    yield f"sc://{number}"
    print(f"stopped {number}", flush=True)
connect_server.running_connect_server = server
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(connect_server.run_beside(None, [sys.executable, "-c", sys.argv[1]]))
"""
TESTS = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
print(os.environ["SPARK_REMOTE"], os.environ["DMDELTA_TEST_REMOTES"], flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("the failures", flush=True)
    raise SystemExit(2)
"""


@pytest.mark.parametrize(
    ("worker", "remotes", "chosen"),
    [
        ("", "sc://a sc://b", "sc://a"),
        ("gw0", "sc://a sc://b", "sc://a"),
        ("gw1", "sc://a sc://b", "sc://b"),
        ("gw2", "sc://a sc://b", "sc://a"),
        ("gw1", "", "sc://mine"),
    ],
)
def test_each_process_has_a_server(monkeypatch, worker, remotes, chosen):
    """Without servers of a lane, SPARK_REMOTE is the user's."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://mine")
    monkeypatch.setenv(REMOTES_VARIABLE, remotes)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    if worker:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    choose_remote()
    assert os.environ["SPARK_REMOTE"] == chosen


def test_a_signal_lets_the_tests_report_their_failures():
    """The servers stop afterwards."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        [sys.executable, "-c", CALL, TESTS], env=environment, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert child.stdout is not None
    first = child.stdout.readline()
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate(timeout=60)
    remotes = [f"sc://{number}" for number in range(SERVERS)]
    assert first.split() == [remotes[0], *remotes]
    assert output.splitlines() == ["the failures", *(f"stopped {number}" for number in reversed(range(SERVERS)))]
    assert child.returncode == 2
