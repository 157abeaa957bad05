"""The fault matrix: each fault at every point; each cell ends with silver = source, bronze once, a valid checkpoint."""

import time
import traceback

import pytest

from tests.crash.bench import Bench
from tests.crash.faults import FAULTS, play
from tests.crash.rows import ROWS

SMOKE = "silver, merge of moved keys, between"
SMOKE_FAULTS = ("error", "second runner")
"""The cells of every test run; the others are in `make test-crash`."""


def _tests():
    """Each row with its faults; the smoke test's cells are a separate test."""
    for row in ROWS:
        quick = SMOKE_FAULTS if row.name == SMOKE else ()
        if quick:
            yield pytest.param((row, quick), id=f"{row.name}; {', '.join(quick)}")
        rest = tuple(fault for fault in FAULTS if fault not in quick)
        yield pytest.param((row, rest), id=row.name, marks=pytest.mark.long)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cells", [*_tests()])
def test_a_fault_at_a_point_loses_and_repeats_nothing(cells, mysql80, request, spark, tmp_path, matrix):
    row, faults = cells
    target = request.getfixturevalue("mariadb") if row.sinks else mysql80
    bench = Bench(spark, row, mysql80, target, tmp_path)
    failures = []
    for fault in faults:
        began = time.monotonic()
        try:
            play(bench, fault)
            matrix[row.name, fault] = f"{time.monotonic() - began:.0f} s"
        except Exception:  # noqa: BLE001 - the other cells show whether it is the point or the fault
            matrix[row.name, fault] = "FAILED"
            failures.append(f"--- {row.name}, {fault} ---\n{traceback.format_exc()}")
            bench.disarm()
    assert not failures, "\n".join(failures)
