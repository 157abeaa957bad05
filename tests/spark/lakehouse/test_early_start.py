"""A JVM that starts before the session is opened."""

import os
import subprocess
import sys

PROGRAM = """
import os, subprocess
from pathlib import Path
from dmdelta.lakehouse.session import SessionSettings, begin_session, open_session
settings = SessionSettings(beside_run=True)
begin_session("early", settings)
begin_session("early", settings)
spark = open_session("early", settings)
assert spark.range(3).count() == 3
begin_session("late", settings)
children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
commands = [Path(f"/proc/{pid}/cmdline").read_text() for found in children for pid in found.read_text().split()]
(java,) = [command.split(chr(0)) for command in commands if "java" in command.split(chr(0))[0]]
assert "-Xmx1024m" in java, java
assert f"-XX:ActiveProcessorCount={settings.cores}" in java, java
print(spark.conf.get("spark.master"), spark.conf.get("spark.app.name"), settings.cores)
"""


def test_a_session_uses_the_jvm_that_was_started_for_it():
    """One JVM, with the limits of one next to a running task; nothing but the result is printed."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("SPARK_DRIVER_MEMORY", "SPARK_MASTER")
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr
    cores = min(os.cpu_count() or 1, max(2, (os.cpu_count() or 1) // 2))
    assert done.stdout == f"local[{cores}] early {cores}\n"
