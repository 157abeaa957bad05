"""Runs tests on mutants in a copy of the checkout, each in a fork that has already imported third-party libraries."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from tests.mutation.mutants import Mutant, mutated
from tests.mutation.selection import Contexts, read_contexts

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 2
FOREIGN = (
    *("deltalake", "jinja2", "numpy", "pandas", "prometheus_client", "pyarrow", "pydantic", "pymysql"),
    *("pyspark.sql", "pyspark.sql.functions", "pytest", "rich", "sqlglot", "typer", "yaml", "zstandard"),
)
NOT_IN_A_COPY = ("tests/unit/test_verification_page.py",)
"""It needs git's history."""
MOST_MEMORY = 12 << 30
"""Bytes of address space: a mutant of a length must not exhaust the machine's memory."""
WAIT_SECONDS = 15.0
"""A mutant may take three times as long as its tests, plus this."""
LONGEST_SECONDS = 900.0
"""The time limit of all tests that run on mutants, unmutated."""
OUTPUT = "mutant.log"
_SURVIVED, _INTERNAL_ERROR, _USAGE_ERROR, _NONE_COLLECTED = 0, 3, 4, 5
"""Exit codes of pytest."""


class Fate(str, Enum):
    """What the tests do with a mutant."""

    KILLED = "killed"
    TIMED_OUT = "killed by a timeout"
    SURVIVED = "SURVIVED"
    UNCOLLECTED = "not collected"
    """Pytest cannot collect the tests: most often the mutant prevents an import."""
    UNTESTED = "not tested"
    """Pytest itself failed, or found no test."""


def fate_of(code: int | None) -> Fate:
    """The fate that an exit code of pytest shows; None: the tests exceeded their time. A signal kills, too."""
    if code is None:
        return Fate.TIMED_OUT
    known = {
        _SURVIVED: Fate.SURVIVED,
        _INTERNAL_ERROR: Fate.UNTESTED,
        _USAGE_ERROR: Fate.UNCOLLECTED,
        _NONE_COLLECTED: Fate.UNTESTED,
    }
    return known.get(code, Fate.KILLED)


def copied(folder: Path) -> Path:
    """A copy of the checkout's index and of new files; other files that the tests need are symbolic links."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place)
    for name in (".venv", ".servers"):
        if (ROOT / name).exists() and not (folder / name).exists():
            (folder / name).symlink_to((ROOT / name).resolve())
    return folder


def measured(copy: Path, folder: Path, tools: Path) -> Contexts:
    """Run the unit tests once, unmutated.

    Raises:
        RuntimeError: they fail.
    """
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(copy), "DMDELTA_CONTEXTS": str(folder)}
    start = f"import sys, pytest; sys.path.append({str(tools)!r}); sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", start, "tests/unit", "-q", "-p", "tests.mutation.contexts"]
    command += ["-n", str(PROCESSES), "--dist", "loadfile", *(f"--ignore={path}" for path in NOT_IN_A_COPY)]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the unit tests fail without a mutant:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    return read_contexts(folder, copy)


def import_foreign() -> None:
    """Import them before a fork."""
    for name in FOREIGN:
        __import__(name)


def check_unmutated(copy: Path, tests: Sequence[str]) -> None:
    """Check that tests pass in a fork if nothing is mutated, so that a failure is due to the mutant.

    Raises:
        RuntimeError: they do not.
    """
    if _exit_code(copy, tests, LONGEST_SECONDS) != _SURVIVED:
        raise RuntimeError(f"tests fail in a fork without a mutant:\n{(copy / OUTPUT).read_text()[-4000:]}")


def run_mutant(copy: Path, mutant: Mutant, tests: Sequence[str], seconds: float) -> Fate:
    """Run tests on a mutant: it is killed, also by a timeout, or survives.

    Raises:
        RuntimeError: pytest itself failed, or it cannot collect the tests without the mutant either.
    """
    fate = fate_of(_mutated_code(copy, mutant, tests, 3 * seconds + WAIT_SECONDS))
    output = (copy / OUTPUT).read_text("utf-8", "replace")[-4000:]
    if fate is Fate.UNCOLLECTED and _exit_code(copy, tests, LONGEST_SECONDS, "--collect-only") == _SURVIVED:
        return Fate.KILLED
    if fate in (Fate.UNCOLLECTED, Fate.UNTESTED):
        raise RuntimeError(f"{mutant} is {fate.value}, pytest itself failed:\n{output}")
    return fate


def _mutated_code(copy: Path, mutant: Mutant, tests: Sequence[str], seconds: float) -> int | None:
    module = copy / mutant.path
    text, status = module.read_text("utf-8"), module.stat()
    module.write_text(mutated(text, mutant), "utf-8")
    # Not the mtime of the original: its compiled file would be used instead if the sizes are equal.
    os.utime(module, (status.st_atime, status.st_mtime + 60))
    try:
        return _exit_code(copy, tests, seconds)
    finally:
        module.write_text(text, "utf-8")
        os.utime(module, (status.st_atime, status.st_mtime))


def _exit_code(copy: Path, tests: Sequence[str], seconds: float, *options: str) -> int | None:
    """Pytest's exit code in a fork; None: it exceeds its time."""
    child = os.fork()
    if not child:
        _run_here(copy, [*tests, *options])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _run_here(copy: Path, arguments: Sequence[str]) -> None:
    """In the fork: unload the checkout's own modules, and write no compiled modules."""
    code = _INTERNAL_ERROR
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        output = os.open(copy / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "dmdelta")]:
            del sys.modules[name]
        sys.path[:] = [str(copy), *(place for place in sys.path if place and Path(place).resolve() != ROOT)]
        import pytest

        # pytest cannot rewrite plugins that are already imported, which is not a test failure.
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main([*arguments, *options]))
    except BaseException:  # noqa: BLE001 - nothing may leave the fork
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
