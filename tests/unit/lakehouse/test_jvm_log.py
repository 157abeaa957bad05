"""What `log4j2.properties` leaves of a message and of a stack trace: no row values, but everything that output.py reads.

The expressions are applied here as Java does it; `tests/spark/lakehouse/test_jvm_noise.py` shows that a JVM does.
"""

import re

import pytest

from dmdelta.lakehouse.jvm.options import LOG4J
from dmdelta.lakehouse.jvm.output import is_cancellation

_FRAME = "\tat org.apache.spark.scheduler.Task.run(Task.scala:147)"
_TASK = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent "
    "failure: Lost task 0.3 in stage 3.0 (TID 3) (host executor 1)"
)
_CAST = '[CAST_INVALID_INPUT] The value \'jane@doe.example\' of the type "STRING" cannot be cast to "INT"'


def replaced(name, text):
    """A text after the replacement (`%replace{of}{expression}{substitution}`) that is a property."""
    lines = LOG4J.read_text(encoding="utf-8").replace(r"\\", "\\").splitlines()
    values = dict(line[len("property.") :].split(" = ", 1) for line in lines if line.startswith("property."))
    found = re.fullmatch(r"%replace\{%(?:m|ex)\}\{(.+)\}\{\$1\}", values[name])
    expression = found[1]
    while "${" in expression:
        expression = re.sub(r"\$\{(\w+)\}", lambda used: values[used[1]], expression)
    return re.sub(expression, lambda match: match[1] or "", text)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Exception in task 0.0 in stage 0.0 (TID 0)", "Exception in task 0.0 in stage 0.0 (TID 0)"),
        (f"Job failed: {_CAST}\nmore", "Job failed: [CAST_INVALID_INPUT]"),
        ("failed to compile\r\n/* 001 */ 'jane@doe.example'", "failed to compile"),
    ],
)
def test_a_message_is_one_line_without_the_text_of_a_condition(message, left):
    assert replaced("message", message) == left


@pytest.mark.parametrize(
    ("trace", "left"),
    [
        ([f"org.apache.spark.SparkNumberFormatException: {_CAST}", "== SQL ==", "SELECT 'jane'", "   ^^^^", "", _FRAME],
         ["org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT]", _FRAME]),
        ([f"{_TASK}: java.lang.ArithmeticException: {_CAST}", _FRAME, "", "Driver stacktrace:", _FRAME],
         [f"{_TASK}: java.lang.ArithmeticException: [CAST_INVALID_INPUT]", _FRAME, _FRAME]),
        ([f"{_TASK}: a.B: {_CAST}", f"Caused by: a.B: {_CAST}", _FRAME, "\t... 12 more"],
         [f"{_TASK}: a.B: [CAST_INVALID_INPUT]", "Caused by: a.B: [CAST_INVALID_INPUT]", _FRAME, "\t... 12 more"]),
        (["a.PythonException: Traceback (most recent call last):", '  File "/a b/c.py", line 29, in <lambda>',
          "    raise ValueError(row)", "ValueError: jane@doe.example", "", _FRAME],
         ["a.PythonException", '  File "/a b/c.py", line 29, in <lambda>', _FRAME]),
        (["a.B: Caused by: jane", "a.C: jane", "Caused by: jane.doe: x", "\tat jane doe", "jane", _FRAME], ["a.B", _FRAME]),
        (["a.B", _FRAME, "\tSuppressed: a.C: jane", "\t" + _FRAME, "Caused by: java.io.IOException: No space left on device"],
         ["a.B", _FRAME, "\tSuppressed: a.C", "\t" + _FRAME, "Caused by: java.io.IOException: No space left on device"]),
        (["java.lang.OutOfMemoryError: Java heap space", _FRAME], ["java.lang.OutOfMemoryError: Java heap space", _FRAME]),
    ],
)  # fmt: skip
def test_a_stack_trace_is_its_frames_with_the_classes_and_conditions_of_its_exceptions(trace, left):
    """And what the operating system says, for which no row is read."""
    assert replaced("trace", "\n".join([*trace, ""])).splitlines() == left


@pytest.mark.parametrize(
    "cause",
    [
        "org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 12 cancelled part of cancelled job tag own SQLSTATE: HY008",
        "org.apache.spark.SparkException: Job 5 cancelled because SparkContext was shut down",
        "org.apache.spark.SparkException: Job aborted due to stage failure: Stage 3 was cancelled",
        f"{_TASK}: TaskKilled (Stage cancelled: jane)",
        "java.nio.channels.ClosedByInterruptException",
        "java.io.InterruptedIOException: getFileStatus",
        "java.lang.InterruptedException: sleep interrupted",
        "org.apache.spark.TaskKilledException",
    ],
)
def test_the_reports_of_cancelled_jobs_are_still_recognized(cause):
    """As the exception itself, and as a cause."""
    for trace in ([cause, _FRAME], ["a.B: [TASK_WRITE_FAILED] Task failed", _FRAME, f"Caused by: {cause}", _FRAME]):
        left = replaced("trace", "\n".join([*trace, ""])).splitlines()
        assert "jane" not in "".join(left)
        assert is_cancellation(["2026-11-21 10:00:00 ERROR Utils: Aborting task", *left])
