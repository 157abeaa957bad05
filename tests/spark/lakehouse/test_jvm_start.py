"""The start of a JVM: before the session is opened, and its priority."""

import os
import subprocess
import sys

import pytest

from dmdelta.lakehouse.jvm.priority import YIELDS
from tests.support.jvm import local_environment

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

PRIORITY = """
import os
from pathlib import Path
from dmdelta.lakehouse.session import SessionSettings, open_session
before = os.getpriority(os.PRIO_PROCESS, 0)
spark = open_session("priority", SessionSettings(beside_run={beside_run}))
assert spark.range(3).count() == 3
children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
pids = [pid for found in children for pid in found.read_text().split()]
(jvm,) = [pid for pid in pids if "java" in Path(f"/proc/{pid}/cmdline").read_text().split(chr(0))[0]]
threads = [int(found.name) for found in Path(f"/proc/{jvm}/task").iterdir()]
assert len(threads) > 20, threads
added = {os.getpriority(os.PRIO_PROCESS, thread) - before for thread in threads}
print(os.getpriority(os.PRIO_PROCESS, 0) - before, *added)
"""


def run_program(program: str) -> "subprocess.CompletedProcess[str]":
    """The program in a process of its own, in which Spark starts as on a user's machine."""
    command, environment = [sys.executable, "-c", program], local_environment()
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, niceness belongs to the whole process")
@pytest.mark.parametrize(("beside_run", "niceness"), [(False, YIELDS), (True, 0)])
def test_the_jvm_of_a_task_yields_the_cpu(*, beside_run: bool, niceness: int) -> None:
    """All of its threads have a lower priority; the task's own process, and a JVM next to a task, do not."""
    done = run_program(PRIORITY.replace("{beside_run}", str(beside_run)))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"0 {niceness}\n"


def test_a_session_uses_the_jvm_that_was_started_for_it():
    """One JVM, with the limits of one next to a running task; nothing but the result is printed."""
    done = run_program(PROGRAM)
    assert done.returncode == 0, done.stderr
    cores = min(os.cpu_count() or 1, max(2, (os.cpu_count() or 1) // 2))
    assert done.stdout == f"local[{cores}] early {cores}\n"
