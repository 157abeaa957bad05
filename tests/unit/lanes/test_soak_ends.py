"""`make soak`: the faults that it injects explain each end of the task."""

from collections import Counter
from types import SimpleNamespace

import pytest

from dmdelta.engine.relay.supervisor import RESTARTS
from dmdelta.failpoint import CrashPoint
from tests.soak.ends import ENDS_PER_FAULT, KILL, Cause, plan_cause, plan_failpoint, unexplained_ends
from tests.soak.faults import KINDS, POINTS, Faults
from tests.soak.judges import Judges
from tests.soak.operations import Operations
from tests.soak.phases import Soak
from tests.soak.shards import ShardChanges
from tests.soak.task import Runner, SoakTask

ERRORS = {
    "injected failure at land-before-commit": Cause.INJECTED,
    "another runner of this task committed to delta.`/silver/shop/orders`": Cause.FENCED,
    "another relay writes to this folder (folder=/relay/s1)": Cause.FENCED,
    "another run writes to this folder (folder=/relay/s1)": Cause.FENCED,
    "another command is working on the task's tables (folder=/relay/s1)": Cause.HELD,
}
STAGES = {
    "apply-s1 failed: No space left on device, injected at silver-before-commit": Cause.INJECTED,
    "the relay of s1 was killed by signal 9": Cause.RELAY_LOST,
    "a stage does not end": Cause.HUNG,
    "the checkpoint write did not end": Cause.HUNG,
}


def log(message):
    """The end of the output of a task that fails."""
    return f"Traceback of a Spark worker\n{{}}\nerror: {message}\nhint: find and stop the other runner\n{{}}\n"


@pytest.mark.parametrize(
    ("code", "message", "cause"),
    [
        *((5, message, cause) for message, cause in ERRORS.items()),
        *((1, message, cause) for message, cause in STAGES.items()),
        (75, "lost the connection to 127.0.0.1:3306: reset", Cause.UNREACHABLE),
    ],
)
def test_an_error_has_the_cause_that_it_names(code, message, cause):
    """With the exit code of its kind; with another one it has none."""
    assert plan_cause(code, log(message)) is cause
    assert plan_cause(3, log(message)) is None


def test_a_kill_is_the_only_signal_with_a_cause():
    """The soak sends no other one, and never asks the task to stop: nor does exit code 0 have a cause."""
    assert plan_cause(-9, "") is Cause.KILLED
    assert [plan_cause(code, log("injected failure at x")) for code in (0, -11, -6, -15)] == [None] * 4


@pytest.mark.parametrize(
    ("code", "output"),
    [
        (1, "Traceback (most recent call last):\n"),
        (5, log("reading delta.`/bronze` failed: DELTA_X")),
        (1, log("the JVM of Spark ended while reading delta.`/bronze`")),
        (5, log("injected failure at x") + "Traceback (most recent call last):\n"),
        (75, log("injected failure at silver-before-commit")),
        (3, log("127.0.0.1:3306 cannot resume at binlog.000001:4")),
        (2, log("the spec is invalid")),
    ],
    ids=["no error", "unknown", "JVM", "traceback", "a retried error", "position lost", "spec"],
)
def test_another_error_has_no_cause(code, output):
    """A run has to retry an injected conflict, and ends with a clear error."""
    assert plan_cause(code, output) is None


@pytest.mark.parametrize(
    ("point", "fault", "causes"),
    [
        (CrashPoint.LAND_DECODED, "kill", KILL),
        (CrashPoint.SINK_DRAINED, "kill", KILL),
        (CrashPoint.RELAY_ROTATED, "kill", (Cause.RELAY_LOST,)),
        (CrashPoint.RELAY_ROTATED, "error:ENOSPC", (Cause.INJECTED, Cause.RELAY_LOST)),
        (CrashPoint.SILVER_AFTER_COMMIT, "error:LakehouseError", (Cause.INJECTED,)),
        (CrashPoint.SILVER_AFTER_COMMIT, "error:CommitConflict", ()),
        (CrashPoint.SINK_DRAINED, "error:TargetUnavailable", ()),
        (CrashPoint.CHECKPOINT_MID_FLUSH, "hang", (Cause.HUNG,)),
    ],
)
def test_a_fault_at_a_crash_point_has_the_ends_that_it_may_cause(point, fault, causes):
    """None for errors that a run retries."""
    assert plan_failpoint(point, fault) == causes


def test_more_ends_than_faults_are_not_explained():
    """Fewer are. A command may hold the tables for several starts, and a run restarts its relays."""
    injected = {Cause.KILLED: 2, Cause.HELD: 1, Cause.RELAY_LOST: RESTARTS}
    assert unexplained_ends({Cause.KILLED: 1}, injected) == []
    most = {Cause.KILLED: 2, Cause.HELD: int(ENDS_PER_FAULT[Cause.HELD])}
    assert unexplained_ends(most, injected) == []
    found = unexplained_ends({Cause.KILLED: 3, Cause.RELAY_LOST: 1, Cause.FENCED: 1}, injected)
    assert found == [
        "killed: 3 ends, of which the injected faults explain 2",
        "fenced: 1 ends, of which the injected faults explain 0",
        "relay lost: 1 ends, of which the injected faults explain 0",
    ]
    assert unexplained_ends({Cause.RELAY_LOST: 1}, {Cause.RELAY_LOST: RESTARTS + 1}) == []


@pytest.fixture
def soak(tmp_path):
    """A soak without sources, whose task runs."""
    task = SoakTask(tmp_path, None, "")
    runner = Runner(task)
    runner._process = process(None)
    commands = Operations(task)
    return Soak((), Faults(None, runner, (), ()), commands, Judges(None, task, commands), ShardChanges(7))


def process(code, output=""):
    """A process of the task: running, or ended with a code."""
    return SimpleNamespace(poll=lambda: code, log=lambda: output)


def end(soak, code, output=""):
    """The process ends, and another one runs."""
    soak.faults.runner._process = process(code, output)
    soak.faults.runner._note_end()
    soak.faults.runner._process = process(None)


def test_a_phase_fails_after_an_end_that_no_fault_explains(soak):
    """An end by itself, another signal, and one kill more than were injected; with the end of the output."""
    soak._check_ends()
    soak.faults.causes.update(KILL)
    end(soak, -9)
    soak._check_ends()
    end(soak, -9)
    with pytest.raises(AssertionError, match="killed: 2 ends, of which the injected faults explain 1"):
        soak._check_ends()
    for code in (0, -11):
        end(soak, code, "the last words")
        with pytest.raises(AssertionError, match=f"exit code {code}:\nthe last words"):
            soak._check_ends()


def test_a_task_that_starts_while_a_command_holds_its_tables_ends(soak):
    """No other command explains it."""
    end(soak, 5, log("another command is working on the task's tables"))
    with pytest.raises(AssertionError, match="held by a command"):
        soak._check_ends()
    soak.operations.holds = 1
    soak._check_ends()


def test_a_task_that_ends_again_and_again_does_not_catch_up(soak):
    """Every end counts except a kill's."""
    for code in (-9, 0, -11, 5):
        end(soak, code)
    assert soak.faults.runner.failures == 3
    assert soak.faults.runner.ended == Counter([-9, 0, -11, 5])


def test_a_fault_that_nobody_meets_explains_nothing(soak):
    """It is disarmed at the end of the phase."""
    soak.faults._arm(CrashPoint.LAND_DECODED, "kill")
    assert soak.faults.causes[Cause.KILLED] == 1
    soak.faults.disarm()
    assert soak.faults.causes[Cause.KILLED] == 0
    soak.faults._arm(CrashPoint.LAND_DECODED, "kill")
    soak.faults.runner.task.failpoint.unlink()
    soak.faults.disarm()
    assert soak.faults.causes[Cause.KILLED] == 1


def test_each_fault_of_a_crash_point_is_known():
    """Those without a cause are the errors that a run retries."""
    free = {
        fault
        for side, points in POINTS.items()
        for p in points
        for fault in KINDS[side]
        if not plan_failpoint(p, fault)
    }
    assert free == {"error:CommitConflict", "error:TargetUnavailable"}
