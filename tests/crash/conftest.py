"""A task over three tables of a busy shop: rows that go, keys that change, and one without a key. The fault matrix' table."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.servers import Server
from tests.support.task import Task

TABLES = ("orders", "inventory", "page_views")
_MATRIX = pytest.StashKey[dict[tuple[str, str], str]]()


@pytest.fixture
def task(mysql80: Server, tmp_path: Path) -> Task:
    """It begins where the server is now: older history is other tests' business."""
    made = Task(tmp_path, mysql80, mysql80.fresh_database("crash"), tables=TABLES)
    made.start_here()
    return made


@pytest.fixture(scope="session")
def matrix(request: pytest.FixtureRequest) -> dict[tuple[str, str], str]:
    """What became of each cell, by point and fault; printed at the end."""
    return request.config.stash.setdefault(_MATRIX, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The cells, a line for each point."""
    cells = config.stash.get(_MATRIX, {})
    if not cells:
        return
    # Rows of one kind have the same columns.
    columns = {name: tuple(column for row, column in cells if row == name) for name, _ in cells}
    for heads in dict.fromkeys(columns.values()):
        terminalreporter.section("fault matrix")
        terminalreporter.write_line(_line("", heads))
        for name in (name for name, own in columns.items() if own == heads):
            terminalreporter.write_line(_line(name, [cells[name, column] for column in heads]))
    failed = sum(cell == "FAILED" for cell in cells.values())
    terminalreporter.write_line(f"{len(cells)} cells, {failed} failed")


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:36}" + "".join(f"{cell:>22}" for cell in cells)
