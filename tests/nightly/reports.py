"""A pytest plugin: writes each test's start, failure and end to $DMDELTA_REPORTS, so that a stopped part has results."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

VARIABLE = "DMDELTA_REPORTS"
FAULTS = "faults"
"""The property of a test whose value is a number of faults that it has injected; a test may have several."""


class Reports:
    """Writes the lines; with pytest-xdist, in the controller process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds = Counter[str]()
        self._outcomes: dict[str, str] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write({"begun": nodeid})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid
        self._seconds[test] += report.duration
        if report.failed or (report.skipped and test not in self._outcomes):
            self._outcomes[test] = report.outcome
        # A teardown may not follow: it hangs, or the process of pytest-xdist has died.
        if report.failed or report.when == "teardown":
            faults = sum(value for name, value in report.user_properties if name == FAULTS)
            outcome = self._outcomes.get(test, "passed")
            self._write({"ended": test, "outcome": outcome, "seconds": round(self._seconds[test], 2), "faults": faults})

    def _write(self, line: dict[str, object]) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Removed from the environment, so that neither pytest-xdist workers nor a pytest started by a test write here."""
    if file := os.environ.pop(VARIABLE, ""):
        config.pluginmanager.register(Reports(Path(file)))
