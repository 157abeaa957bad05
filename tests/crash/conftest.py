"""A task over three tables of a busy shop: deletes, key changes, and a table without a key. The fault matrix' table."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.servers import Server
from tests.support.task import Task

TABLES = ("orders", "inventory", "page_views")
_FAILED = "FAILED"
_CELL = "cell"
_FAULTS = "faults"
"""tests/nightly/reports.py counts them."""


@pytest.fixture
def task(mysql80: Server, tmp_path: Path) -> Task:
    """It starts at the server's current position: the earlier log is from other tests."""
    made = Task(tmp_path, mysql80, mysql80.fresh_database("crash"), tables=TABLES)
    made.start_here()
    return made


class Cells:
    """The outcome of each cell of a test, by point and fault; printed at the end, from all test processes.

    Each cell has injected a fault, except a failed one: its fault may not have been met.
    """

    def __init__(self, told: list[tuple[str, object]]) -> None:
        self._told = told

    def __setitem__(self, cell: tuple[str, str], outcome: str) -> None:
        self._told.append((_CELL, (*cell, outcome)))
        if outcome != _FAILED:
            self._told.append((_FAULTS, 1))


@pytest.fixture
def matrix(request: pytest.FixtureRequest) -> Cells:
    return Cells(request.node.user_properties)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The cells, one line per point."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    told = [value for report in reports for name, value in report.user_properties if name == _CELL]
    cells = {(row, fault): outcome for row, fault, outcome in told}
    if not cells:
        return
    # Rows of one kind have the same columns.
    columns = {name: tuple(sorted(column for row, column in cells if row == name)) for name, _ in cells}
    for heads in dict.fromkeys(columns.values()):
        terminalreporter.section("fault matrix")
        terminalreporter.write_line(_line("", heads))
        for name in (name for name, own in columns.items() if own == heads):
            terminalreporter.write_line(_line(name, [cells[name, column] for column in heads]))
    failed = sum(cell == _FAILED for cell in cells.values())
    terminalreporter.write_line(f"{len(cells)} cells, {failed} failed")


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:36}" + "".join(f"{cell:>22}" for cell in cells)
