"""The fault matrix: at every point each fault, and each cell ends with silver = source, bronze once, the checkpoint right."""

import time
import traceback

import pytest

from tests.crash.bench import Bench
from tests.crash.faults import FAULTS, play
from tests.crash.rows import ROWS

SMOKE = "merge of moved keys, between"
"""The row that every test run takes; the others are `make test-crash`."""


def _marked(row):
    return pytest.param(row, id=row.name, marks=[] if row.name.endswith(SMOKE) else pytest.mark.long)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", [_marked(row) for row in ROWS])
def test_a_fault_at_a_point_loses_and_repeats_nothing(row, mysql80, request, spark, tmp_path, matrix):
    target = request.getfixturevalue("mariadb") if row.sinks else mysql80
    bench = Bench(spark, row, mysql80, target, tmp_path)
    failures = []
    for fault in FAULTS:
        began = time.monotonic()
        try:
            play(bench, fault)
            matrix[row.name, fault] = f"{time.monotonic() - began:.0f} s"
        except Exception:  # noqa: BLE001 - the other cells say whether it is the point or the fault
            matrix[row.name, fault] = "FAILED"
            failures.append(f"--- {row.name}, {fault} ---\n{traceback.format_exc()}")
            bench.disarm()
    assert not failures, "\n".join(failures)
