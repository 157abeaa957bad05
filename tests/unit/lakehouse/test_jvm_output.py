"""The output of a local JVM: noise is omitted, everything else reaches stderr unchanged."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dmdelta.lakehouse.jvm.cancellation import cancel_jobs, interrupts_kept
from dmdelta.lakehouse.jvm.output import LineFilter, _Cancellations, is_cancellation
from tests.support.logged import logged

ROOT = Path(__file__).resolve().parents[3]
INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector"
ABORTING = "2026-11-21 10:00:00 ERROR FileFormatWriter: Aborting job 7e0c3c2a-1b1c-4a53-a0a4-2c1d8b1d8f11."
CANCELLED = [
    ABORTING,
    "org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 12 cancelled part of cancelled job tag own SQLSTATE: HY008",
    "\tat org.apache.spark.scheduler.DAGScheduler.handleJobCancellation(DAGScheduler.scala:2900)",
    "\t... 12 more",
]
KILLED = [
    "2026-11-21 10:00:00 ERROR Utils: Aborting task",
    "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/lake.",
    "\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailed(QueryExecutionErrors.scala:900)",
    "Caused by: org.apache.spark.TaskKilledException",
    "\tat org.apache.spark.TaskContextImpl.killTaskIfInterrupted(TaskContextImpl.scala:267)",
    "",
]
FULL_DISK = [
    "2026-11-21 10:00:00 ERROR Utils: Aborting task",
    "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/lake.",
    "\tSuppressed: org.apache.spark.TaskKilledException",
    "Caused by: java.io.IOException: No space left on device",
    "\tat java.base/sun.nio.ch.UnixFileDispatcherImpl.write0(Native Method)",
]
CANCELLED_AGAIN = [
    "2026-11-21 10:00:00 ERROR DeltaInsertReplaceOnOrUsingCommand: Fatal error in INSERT REPLACE ON/USING in attempt 1",
    "org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 207 cancelled as part of cancellation of all jobs SQLSTATE: XXKDA",
    "\tat org.apache.spark.errors.SparkCoreErrors$.sparkJobCancelled(SparkCoreErrors.scala:235)",
]
ABORTED = ["2026-11-21 10:00:00 ERROR FileFormatWriter: Job job_202611211000_0012 aborted."]
UNKNOWN = [
    "OpenJDK 64-Bit Server VM warning: something",
    "",
    "  indented",
    "Deleted 3 files and directories in a total of 1 directories.",
    "java.lang.OutOfMemoryError: Java heap space",
]


def shown(lines, *, is_cancelling):
    known = LineFilter(lambda: is_cancelling)
    return [text for line in lines for text in known.take(line)] + known.settle()


@pytest.mark.parametrize("is_cancelling", [False, True])
def test_unknown_lines_pass(is_cancelling):
    """They keep their order, also while jobs are cancelled."""
    assert shown(["spinner …" + INCUBATOR, "x"], is_cancelling=is_cancelling) == ["spinner …", "x"]
    lines = [*UNKNOWN, *FULL_DISK, UNKNOWN[0], "2026-11-21 10:00:00 ERROR Executor: no trace", *UNKNOWN]
    assert shown([INCUBATOR, *lines], is_cancelling=is_cancelling) == lines


@pytest.mark.parametrize("report", [CANCELLED, CANCELLED_AGAIN, KILLED, ABORTED])
def test_reports_of_cancelled_jobs_are_omitted_only_after_a_cancellation(report):
    """A report without a cancellation is an error, and lines after a report are shown."""
    lines = [*report, *report, "PySpark worker failed", *report, *FULL_DISK]
    assert shown(lines, is_cancelling=False) == lines
    assert shown(lines, is_cancelling=True) == ["PySpark worker failed", *FULL_DISK]


@pytest.mark.parametrize(
    ("report", "answer"),
    [
        (CANCELLED, True),
        (KILLED, True),
        (ABORTED, True),
        (FULL_DISK, False),
        (["2026-11-21 10:00:00 ERROR TaskSetManager: Task 0 in stage 3.0 failed 1 times; aborting job"], False),
        ([ABORTING, "org.apache.spark.SparkException: Job 5 cancelled because SparkContext was shut down"], True),
        ([ABORTING, "java.nio.channels.ClosedByInterruptException"], True),
        ([ABORTING, "java.lang.NullPointerException"], False),
    ],
)
def test_the_root_cause_decides(report, answer):
    """A suppressed exception, or a message without one, is not the cause."""
    assert is_cancellation(report) is answer


def test_reports_have_the_pattern_of_the_configuration():
    """Their first line is recognized by it."""
    settings = (ROOT / "dmdelta" / "lakehouse" / "log4j2.properties").read_text(encoding="utf-8").splitlines()
    pattern = "%d{yyyy-MM-dd HH:mm:ss} %p %c{1}: ${message}%n${trace}"  # both: tests/unit/lakehouse/test_jvm_log.py
    assert f"appender.stderr.layout.pattern = {pattern}" in settings


def test_an_omitted_report_is_named_in_the_log():
    """Nothing is lost silently."""
    with logged("dmdelta.lakehouse.jvm.output") as told:
        assert shown(KILLED, is_cancelling=True) == []
    ((_, _, fields),) = told
    assert fields == {"logger": "Utils", "lines": len(KILLED)}


def test_a_cancellation_is_recent_for_a_while(monkeypatch):
    """Spark reports cancelled jobs seconds later; an error much later is not one of them."""
    clock = [100.0]
    monkeypatch.setattr("dmdelta.lakehouse.jvm.output.time.monotonic", lambda: clock[0])
    known = _Cancellations()
    assert not known.recent
    known.note()
    clock[0] += 14.0
    assert known.recent
    clock[0] += 1.0
    assert not known.recent


PROGRAM = """
import os, subprocess, sys
from dmdelta.lakehouse.jvm.output import filtered_output
fails = "fails" in sys.argv
try:
    with filtered_output():
        script = 'echo "WARNING: Using incubator modules: jdk.incubator.vector" >&2; echo to stdout; echo to stderr >&2'
        child = subprocess.Popen(["sh", "-c", script + "; read go; echo later >&2; printf unfinished"], stdin=-1)
        if fails:
            child.communicate(b"go\\n")
            raise OSError("did not start")
except OSError as error:
    os.write(2, f"{error}\\n".encode())
else:
    print("own stdout", flush=True)
    os.write(2, b"own stderr\\n")
    child.communicate(b"go\\n")
"""


@pytest.mark.parametrize("arguments", [[], ["fails"]])
def test_the_output_of_a_child_reaches_stderr(arguments):
    """On either stream, during the block and later; if the child does not start, before the error."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    child = ["to stdout", "to stderr", "later"]
    if arguments:
        assert done.stdout == ""
        assert done.stderr == "\n".join([*child, "unfinisheddid not start\n"])
    else:
        assert done.stdout == "own stdout\n"
        lines = done.stderr.splitlines()
        assert sorted(lines) == sorted([*child, "own stderr", "unfinished"])
        assert [line for line in lines if line in child] == child


PROGRESS = """
import os, select
from dmdelta.lakehouse.jvm.output import filtered_output
read, write = os.pipe()
os.dup2(write, 2)
with filtered_output():
    for n in range(3):
        frame = b"\\r\\x1b[2K frame %d" % n
        os.write(2, frame)
        shown = b""
        while len(shown) < len(frame):
            shown += os.read(read, 100)
        assert shown == frame, shown
print("shown")
"""


def test_a_progress_display_does_not_wait_for_the_end_of_a_line():
    """A spinner of this process continues while the JVM starts."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRESS],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "shown\n"


INHERITED = """
import subprocess
from dmdelta.lakehouse.jvm.output import inherited_output
with inherited_output():
    subprocess.Popen(["sh", "-c", "echo to stdout; sleep 0.5; echo the end"])
print("own stdout")
"""


def test_inherited_output_ends_with_the_child():
    """A reader of this process's output waits for the JVM, too."""
    done = subprocess.run(
        [sys.executable, "-c", INHERITED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("own stdout\n", "to stdout\nthe end\n")


class Interrupted:
    """A session that counts cancellations."""

    def __init__(self):
        self.times = 0

    def interruptAll(self):  # noqa: N802 - Spark's name
        self.times += 1


def test_cancelling_jobs_announces_their_reports(monkeypatch):
    """First, because Spark reports them at once."""
    known = _Cancellations()
    monkeypatch.setattr("dmdelta.lakehouse.jvm.output._CANCELLATIONS", known)
    session = Interrupted()
    cancel_jobs(session)
    assert session.times == 1
    assert known.recent


@pytest.fixture
def default_handler():
    """Python's handler of SIGINT, as on a terminal: a background job of a shell begins with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def sparks_own(_signum, _frame):
    raise KeyboardInterrupt


def test_a_callers_handler_of_ctrl_c_is_kept(default_handler):
    """PySpark replaces it: Ctrl-C would cancel the run instead of stopping it at a boundary."""

    def callers(_signum, _frame):
        pass

    signal.signal(signal.SIGINT, callers)
    with interrupts_kept():
        signal.signal(signal.SIGINT, sparks_own)
    assert signal.getsignal(signal.SIGINT) is callers


def test_without_a_handler_ctrl_c_cancels_jobs_quietly(default_handler, monkeypatch):
    """As in PySpark, but without stack traces of the cancelled jobs."""
    known = _Cancellations()
    monkeypatch.setattr("dmdelta.lakehouse.jvm.output._CANCELLATIONS", known)
    with interrupts_kept():
        signal.signal(signal.SIGINT, sparks_own)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert known.recent
    with interrupts_kept():
        pass  # the JVM was already running
    assert known.recent
