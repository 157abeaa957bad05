"""What a restart skips: recorded changes, and those before a table's point."""

from dataclasses import replace

import pyarrow as pa
import pytest

from dmdelta.changelog.variant_arrays import TEXT
from dmdelta.model.position import Position
from dmdelta.sink.change import Act
from dmdelta.sink.execution_log import ExecutedEvents, encode
from dmdelta.sink.read.change_reader import Past, TableChanges
from tests.unit.sink.execute.test_columnar_compactor import columns_of

NOTHING = ExecutedEvents()
EVERY = columns_of([(Act.INSERT, key, "x") for key in range(10)])
"""Their `seq` is 100 to 109."""


def point(epoch, seq):
    return Position(epoch, "binlog.000000", seq)


@pytest.mark.parametrize(
    ("table_point", "left"),
    [(None, range(10)), (point(2, 104), range(4, 10)), (point(2, 200), range(0)), (point(1, 104), range(10))],
)
def test_changes_before_the_table_point_are_skipped(table_point, left):
    """A point of an earlier epoch skips nothing of this one."""
    found = Past(2, NOTHING, table_point).left(EVERY)
    assert found.identity.to_pylist() == [str(key) for key in left]


def test_records_count_behind_the_point():
    """Both are skipped: changes before the point, and recorded changes after it."""
    executed = ExecutedEvents()
    executed.add(2, 107, encode([(101, 0), (107, 0)]))
    found = Past(2, executed, point(2, 105)).left(EVERY)
    assert found.identity.to_pylist() == ["5", "6", "8", "9"]


@pytest.mark.parametrize(("marked", "was", "unknown"), [(True, "0", True), (True, None, False), (False, "0", False)])
def test_key_changes_of_rows_that_the_target_may_lack(marked, was, unknown):
    """If quarantined rows are omitted, the row that an update moves may be missing: only safe mode writes it."""
    columns = replace(columns_of([(Act.UPDATE, 1, "x")]), was=pa.array([was], TEXT))
    assert TableChanges(None, columns, marked=marked).moves_unknown is unknown
