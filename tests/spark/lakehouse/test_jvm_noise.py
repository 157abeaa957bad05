"""Output of a local JVM: no launcher warning, no stack traces of cancelled jobs, but every other error."""

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


def test_only_reports_of_cancelled_jobs_are_omitted(tmp_path):
    """Also right after a cancellation an error of another job is shown, with its stack trace."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "table")],
        env=local_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]
    for noise in ("incubator", "SPARK_JOB_CANCELLED", "TaskKilled", "Aborting", "aborted."):
        assert noise not in done.stderr, done.stderr[-4000:]
    assert "broken on purpose 0" in done.stderr
    assert "\tat org.apache.spark." in done.stderr
