"""Which data files of a table in a folder may have rows of a range."""

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dmdelta.lakehouse.access.data_files import files_within
from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable

SCHEMA = pa.schema([("day", pa.date32()), ("epoch", pa.int32()), ("seq", pa.int64()), ("ddl", pa.string())])


@pytest.fixture
def table(tmp_path):
    """Three files: of 1 and 2, of 5 with a statement, and of 9."""
    for rows in ([(1, None), (2, None)], [(5, "TRUNCATE TABLE t"), (5, None)], [(9, None)]):
        found = [{"day": None, "epoch": 1, "seq": seq, "ddl": ddl} for seq, ddl in rows]
        write_deltalake(str(tmp_path), pa.Table.from_pylist(found, SCHEMA), mode="append")
    return LocalTable("t", tmp_path)


@pytest.mark.parametrize(
    ("bounds", "counts"),
    [
        ({}, [1, 2, 2]),
        ({"seq": (2, 5)}, [2, 2]),
        ({"seq": (3, 4)}, []),
        ({"seq": (6, 99), "epoch": (1, 1)}, [1]),
        ({"seq": (6, 99), "epoch": (2, 2)}, []),
    ],
)
def test_files_within_bounds(table, bounds, counts):
    """Both bounds are inclusive."""
    found = files_within(table, bounds)
    assert sorted(file.rows for file in found) == counts
    assert all(file.path.stat().st_size == file.size for file in found)


def test_files_that_have_values(table):
    """A column that is NULL in all rows of a file."""
    (found,) = files_within(table, {}, present="ddl")
    assert found.rows == 2


def test_a_table_without_files(tmp_path):
    """Its statistics have no columns."""
    write_deltalake(str(tmp_path), SCHEMA.empty_table())
    assert files_within(LocalTable("t", tmp_path), {"seq": (1, 2)}, present="ddl") == []
