"""A pytest plugin: which test executes which line, and how long each test takes.

coverage records the running test for each line; its data and the durations are in the folder $DMDELTA_CONTEXTS, in two
files for each process of pytest-xdist.
"""

import json
import os
from collections import Counter
from pathlib import Path

import coverage
import pytest

FOLDER = Path(os.environ["DMDELTA_CONTEXTS"])
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "controller")
_measured = coverage.Coverage(data_file=str(FOLDER / f"{PROCESS}.coverage"), source=["dmdelta"], config_file=False)
_measured.start()
_seconds = Counter[str]()


def function_of(nodeid: str) -> str:
    """The test function of a node, without its parameters."""
    return nodeid.partition("[")[0]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    _measured.switch_context(function_of(item.nodeid))
    yield
    _measured.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[function_of(report.nodeid)] += report.duration


def pytest_sessionfinish() -> None:
    """Not later: pytest-xdist kills a process that takes ten seconds to end."""
    _measured.stop()
    _measured.save()
    (FOLDER / f"{PROCESS}.seconds").write_text(json.dumps(_seconds))
