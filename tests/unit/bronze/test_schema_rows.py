"""The structures in bronze's rows, if there is no history of structures."""

from dmdelta.bronze.schema_rows import SchemaRow, structures_of
from dmdelta.ddl.tracking.tracked_structures import Origin
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema

T = TableSchema("db", "t", (Column("id", "int"),), ("id",))


def at(offset):
    return Position(2, "binlog.000001", offset)


def test_structure_rows_and_following_statements():
    """A statement that names several tables has a row for each and is applied once."""
    rename = "RENAME TABLE t TO u, other TO t"
    known = structures_of(
        [
            SchemaRow(Position.of_chunk(1, 1), Op.SCHEMA, "db", T.to_json()),
            SchemaRow(at(4), Op.DDL, "db", "CREATE TABLE other (a INT)"),
            SchemaRow(at(9), Op.DDL, "db", rename),
            SchemaRow(at(9), Op.DDL, "db", rename),
            SchemaRow(at(12), Op.DDL, "db", "ALTER TABLE u ADD x INT"),
        ],
        mariadb=False,
    )
    columns = {name: [column.name for column in tracked.schema.columns] for name, tracked in known.tables.items()}
    assert columns == {("db", "u"): ["id", "x"], ("db", "t"): ["a"]}


def test_the_origin_of_a_structure():
    """A snapshot's chunk, or a table map."""
    for position, origin in ((Position.of_chunk(1, 1), Origin.SNAPSHOT), (at(4), Origin.TABLE_MAP)):
        known = structures_of([SchemaRow(position, Op.SCHEMA, "db", T.to_json())], mariadb=False)
        assert known.tables["db", "t"].origin is origin
