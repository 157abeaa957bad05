"""The relay as a run sees it, with the real process, which follows a folder of binlog files."""

import os
import signal
from dataclasses import replace
from datetime import timedelta

import pytest

from dmdelta.engine.relay import supervisor
from dmdelta.engine.relay.supervisor import Relaying, stopped_on_failure
from dmdelta.errors import StageFailed
from dmdelta.rules import SourceRules
from dmdelta.source.relay.purge import PurgePolicy
from dmdelta.source.relay.relay_dir import locked
from dmdelta.source.relay.relay_task import RelayTask
from tests.support.golden import GOLDEN
from tests.support.relaying import wait_until


@pytest.fixture
def relaying(tmp_path):
    """A relay that follows its source without end, once it streams."""
    task = RelayTask("src", str(tmp_path), binlog_dir=str(GOLDEN / "mysql80"))
    purging = PurgePolicy(timedelta(days=1), 0)
    relaying = Relaying(task, "mysql", SourceRules(), until_caught_up=False, loads=False, purging=purging)
    relaying.start()
    wait_until(lambda: relaying._process.status() is not None and relaying._process.status().state == "streaming")
    yield relaying
    relaying.stop()


def end_from_outside(relaying):
    process = relaying._process
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(20)
    assert process.status().state == "stopped"


def test_a_relay_that_is_stopped_from_outside_is_restarted(relaying):
    """It ends normally, but it has not relayed everything, whether the run ends or not."""
    first = relaying._process
    end_from_outside(relaying)
    for ends in (True, False):
        relaying.task = replace(relaying.task, until_caught_up=ends)
        assert not relaying.has_ended()
    relaying.check()
    assert relaying.is_running
    assert relaying._process.pid != first.pid


def test_a_relay_that_is_stopped_too_often_is_an_error(relaying, monkeypatch):
    """The error names the source."""
    monkeypatch.setattr(supervisor, "RESTARTS", 0)
    end_from_outside(relaying)
    with pytest.raises(StageFailed, match="the relay of src was stopped from outside"):
        relaying.check()


def test_a_relay_that_the_run_stops_is_not_restarted(relaying):
    """Neither has it relayed everything."""
    relaying.stop()
    relaying.check()
    assert not relaying.is_running
    assert not relaying.has_ended()


def test_a_relay_that_has_caught_up_has_ended(relaying):
    """It is not restarted."""
    relaying.until_caught_up = True
    relaying.catch_up()
    wait_until(lambda: not relaying.is_running)
    relaying.check()
    assert not relaying.is_running
    assert relaying.has_ended()


def test_a_failure_of_the_run_stops_the_relays_that_have_started(relaying):
    """Their folders are free for the next attempt; without a failure they continue."""
    with stopped_on_failure([relaying]):
        pass
    assert relaying.is_running
    with pytest.raises(StageFailed, match="not opened"), stopped_on_failure([relaying]):
        raise StageFailed("not opened", hint="retry")
    assert not relaying.is_running
    with locked(relaying.folder):
        pass
