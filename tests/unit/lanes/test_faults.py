"""`make nightly` counts the faults that the fault matrix has injected."""

from tests.crash.conftest import Cells
from tests.nightly.reports import FAULTS


def test_a_failed_cell_is_no_injected_fault():
    """Its point may not have been passed. It is a cell of the printed matrix all the same."""
    told: list[tuple[str, object]] = []
    cells = Cells(told)
    for fault, outcome in (("kill", "12 s"), ("hang", "FAILED"), ("error", "9 s")):
        cells["silver, merge", fault] = outcome
    assert [value for name, value in told if name == FAULTS] == [1, 1]
    assert len([value for name, value in told if name == "cell"]) == 3
