"""Output of a local JVM: no launcher warning, no stack traces of cancelled jobs, no row values, but every error."""

import subprocess
import sys

from tests.support.jvm import local_environment

PROGRAM = """
import signal, sys, threading, time
from pathlib import Path
from dmdelta.lakehouse.jvm.cancellation import cancel_jobs
from dmdelta.lakehouse.session import SessionSettings, open_session
def handler(signum, frame):
    pass
signal.signal(signal.SIGINT, handler)
spark, folder = open_session("noise", SessionSettings(master="local[2]")), Path(sys.argv[1])
assert signal.getsignal(signal.SIGINT) is handler
errors = []
def write():
    try:
        spark.range(10**12).write.format("delta").save(str(folder))
    except Exception as error:
        errors.append(error)
thread = threading.Thread(target=write)
thread.start()
while not any(folder.glob("*.parquet")):
    time.sleep(0.05)
while thread.is_alive():
    cancel_jobs(spark)
    thread.join(0.5)
assert "cancelled" in str(errors[0]).lower(), errors
try:
    spark.range(1).selectExpr("raise_error(concat('broken on purpose ', id))").collect()
except Exception as error:
    errors.append(error)
assert len(errors) == 2
time.sleep(1)
print("done")
"""


VALUES = """
import sys, time
from dmdelta.lakehouse.session import SessionSettings, open_session
spark, folder, errors = open_session("values", SessionSettings(master="local[2]")), sys.argv[1], []
value = "jane\\n\\tat a.b.C.d(C.java:1)\\nCaused by: a.B: jane\\n\\njane\\n"
rows = spark.createDataFrame([(7, value)], "id LONG, v STRING").repartition(1)
def refuse(batches):
    for batch in batches:
        raise ValueError(batch["v"][0].as_py())
        yield batch
for expression in ("CAST(v AS INT)", "variant_get(to_variant_object(struct(v)), '$.v', 'INT')", "string(raise_error(v))"):
    for write in (False, True):
        try:
            frame = rows.selectExpr(f"{expression} AS v")
            frame.write.format("delta").save(folder) if write else frame.collect()
        except Exception as error:
            errors.append(error)
for frame in (
    rows.mapInArrow(refuse, "v STRING"),
    rows.selectExpr("reflect('java.net.URLDecoder', 'decode', 'a', concat('no-charset-', id))"),
):
    try:
        frame.collect()
    except Exception as error:
        errors.append(error)
assert len(errors) == 8 and sum("jane" in str(error) for error in errors) == 7, errors
time.sleep(1)
print("done")
"""


def run(program, folder):
    """The errors that a program in a process of its own has shown."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        env=local_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]
    return done.stderr


def test_only_reports_of_cancelled_jobs_are_omitted(tmp_path):
    """Also right after a cancellation an error of another job is shown, with its condition and its stack trace."""
    shown = run(PROGRAM, tmp_path / "table")
    for noise in ("incubator", "SPARK_JOB_CANCELLED", "TaskKilled", "Aborting", "aborted."):
        assert noise not in shown, shown[-4000:]
    assert "SparkRuntimeException: [USER_RAISED_EXCEPTION]\n\tat org.apache.spark." in shown


def test_values_are_left_out(tmp_path):
    """Spark's errors quote rows. Their conditions, frames and the operating system's reasons are shown."""
    shown = run(VALUES, tmp_path / "table")
    assert "jane" not in shown, shown[-4000:]
    for condition in ("CAST_INVALID_INPUT", "INVALID_VARIANT_CAST", "USER_RAISED_EXCEPTION", "TASK_WRITE_FAILED"):
        assert f"[{condition}]\n\tat " in shown, shown[-4000:]
    assert '[PYTHON_EXCEPTION]\n  File "<string>", line 9, in refuse\n' in shown, shown[-4000:]
    assert "\nCaused by: java.io.UnsupportedEncodingException: no-charset-7\n\tat java.base/" in shown
