"""A range of the log as numeric columns: which tables change where, and where slices may end."""

import pyarrow as pa

from dmdelta.sink.read.range_index import LogLines, TableLine

NAMES = ("seq", "op", "schema_version", "partial", "key_changed", "transaction")
TYPES = (pa.int64(), pa.string(), pa.int64(), pa.bool_(), pa.bool_(), pa.int64())


def lines(*rows):
    """(seq, op, schema_version, partial, key_changed, transaction), in buckets of 10 from 100 on."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(NAMES)
    table = pa.table({name: pa.array(column, kind) for name, column, kind in zip(NAMES, columns, TYPES, strict=True)})
    return LogLines.of(table, 100, 10)


def test_tables_by_bucket():
    """A line per table and bucket; statements and schema rows have none."""
    found = lines(
        (113, "delete", 7, False, None, 2),
        (100, "insert", 7, False, None, 1),
        (104, "update", 7, True, True, 1),
        (105, "insert", 9, False, None, 1),
        (106, "ddl", None, False, None, 5),
    )
    assert found.tables() == [
        TableLine(7, frozenset(("insert", "update")), 1, 1, 100, 104),
        TableLine(9, frozenset(("insert",)), 0, 0, 105, 105),
        TableLine(7, frozenset(("delete",)), 0, 0, 113, 113),
    ]


def test_tables_between_statements():
    """A table that is renamed and gets its name back has a line before and one after, and none between."""
    found = lines(
        (100, "insert", 7, False, None, 1),
        (101, "ddl", None, False, None, 2),
        (101, "ddl", None, False, None, 2),
        (102, "insert", 8, False, None, 3),
        (103, "truncate", None, False, None, 4),
        (104, "insert", 8, False, None, 5),
        (105, "ddl", None, False, None, 6),
        (112, "update", 7, False, None, 7),
    )
    assert [(line.version, line.first, line.last) for line in found.tables()] == [
        (7, 100, 100),
        (8, 102, 102),
        (8, 104, 104),
        (7, 112, 112),
    ]


def test_cuts_are_where_transactions_start():
    """The first transaction of each bucket; if a long one covers the bucket, its first row, which is no boundary."""
    found = lines(
        (100, "insert", 7, False, None, 1),
        (111, "insert", 7, False, None, 1),
        (115, "insert", 7, False, None, 2),
        (121, "insert", 7, False, None, 2),
        (129, "insert", 7, False, None, 2),
        (130, "watermark", None, False, None, 9),
        (131, "xa_commit", None, False, None, 3),
    )
    assert found.cuts() == [(115, True), (121, False), (131, True)]


def test_an_empty_range():
    """A range without lines has neither."""
    assert (lines().tables(), lines().cuts()) == ([], [])
