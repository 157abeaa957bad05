"""When a live read can reuse the rows of the previous one, and the order of rows from several files."""

import pyarrow as pa
import pytest

from dmdelta.bronze.arrow import LANDED_ARROW_SCHEMA
from dmdelta.bronze.landed_rows import in_log_order
from dmdelta.engine.live.known_log import FAR_BYTES, is_far
from dmdelta.model.position import Position

KNOWN = Position(2, "binlog.000003", 1000)


@pytest.mark.parametrize(
    ("begin", "far"),
    [
        (KNOWN, False),
        (Position(2, "binlog.000003", 1000 + FAR_BYTES), False),
        (Position(2, "binlog.000003", 1001 + FAR_BYTES), True),
        (Position(2, "binlog.000003", 999), True),
        (Position(2, "binlog.000004", 1000), True),
        (Position(3, "binlog.000003", 1000), True),
    ],
)
def test_the_known_log_is_reused_for_reads_that_begin_soon_after_it(begin, far):
    """It is not reused for a read that begins earlier, in another file or in another epoch."""
    assert is_far(KNOWN, begin) is far


def rows(*places):
    return pa.Table.from_pylist([{"seq": seq, "row": row} for seq, row in places], LANDED_ARROW_SCHEMA)


def test_rows_are_in_the_order_of_the_log():
    """Compaction puts files into any order; structures, which have negative ordinals, come before an event's rows."""
    joined = in_log_order([rows((20, 0), (20, 1), (30, 0)), rows((10, -1), (10, -2), (10, 0)), rows()])
    assert list(zip(joined["seq"].to_pylist(), joined["row"].to_pylist(), strict=True)) == [
        (10, -1),
        (10, -2),
        (10, 0),
        (20, 0),
        (20, 1),
        (30, 0),
    ]
    assert in_log_order([]).schema == LANDED_ARROW_SCHEMA
