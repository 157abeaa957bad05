"""Which rows of the history are valid."""

from datetime import datetime, timezone

import pytest

from dmdelta.checkpoint.points import ORIGIN
from dmdelta.ddl.tracking.tracked_structures import Origin, Structures
from dmdelta.engine.ingest.schema_admin import defined_structure
from dmdelta.engine.ingest.schema_history import DELETE, RESTARTED, HistoryRow, structures_at
from dmdelta.errors import ConfigError, SchemaError
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema

NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)
TABLE = ("db", "t")


def at(offset, epoch=1):
    return Position(epoch, "binlog.000001", offset)


def row(position, *columns, origin=Origin.DDL.value, table="t", schema="db"):
    structure = TableSchema("db", table, tuple(Column(name, "int") for name in columns)) if columns else None
    return HistoryRow(
        position=position, schema=schema, table=table, structure=structure, charset=None, origin=origin, at=NOW
    )


def known(rows, end):
    found = structures_at(rows, end, Structures()).tables.get(TABLE)
    return [column.name for column in found.schema.columns] if found else None


def test_rows_of_a_batch_that_never_landed_are_ignored():
    """They are at or after the end of bronze."""
    rows = [row(at(4), "a"), row(at(10), "a", "b")]
    assert known(rows, at(11)) == ["a", "b"]
    assert known(rows, at(10)) == ["a"]
    assert known(rows, at(4)) is None


def test_decisions_are_valid_at_their_position():
    """They are made at the end of bronze; later statements are applied."""
    rows = [row(at(4), "a"), row(at(10), "z", origin=Origin.UPDATE.value)]
    assert known(rows, at(10)) == ["z"]
    assert known([*rows, row(at(12), "z", "y")], at(20)) == ["z", "y"]
    assert known([*rows, row(at(12), origin=DELETE)], at(12)) is None
    assert known([row(ORIGIN, "z", origin=Origin.UPDATE.value)], ORIGIN) == ["z"]


def test_a_restarted_log_invalidates_earlier_rows():
    """They are invalid as soon as the restart's mark is in bronze."""
    rows = [row(at(4), "a"), row(at(4, 2), origin=RESTARTED, schema=None, table=None)]
    assert known(rows, at(99)) == ["a"]
    assert known(rows, at(4, 2)) is None


def test_a_structure_is_parsed_from_show_create_table():
    """It ends with the default character set; the name may be qualified or not."""
    schema, charset = defined_structure(
        "CREATE TABLE `t` (`id` int NOT NULL, `v` varchar(3), PRIMARY KEY (`id`)) ENGINE=InnoDB DEFAULT CHARSET=latin1",
        TABLE,
        lambda _schema, _table: None,
        mariadb=False,
    )
    assert (schema.name, schema.primary_key, charset) == (TABLE, ("id",), "latin1")
    assert schema.columns[1] == Column("v", "varchar", length=3, charset="latin1")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("ALTER TABLE t ADD a INT", ConfigError),
        ("CREATE TABLE other (id INT)", ConfigError),
        ("CREATE TABLE t (v VARCHAR(3))", SchemaError),
        ("CREATE TABLE t AS SELECT 1", SchemaError),
        ("CREATE TABLE t (id FROB, PRIMARY KEY (nope))", SchemaError),
    ],
)
def test_an_incomplete_structure_is_refused(statement, error):
    """It is refused before anything is recorded."""
    with pytest.raises(error):
        defined_structure(statement, TABLE, lambda _schema, _table: None, mariadb=False)
