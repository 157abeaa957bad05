"""Cutting a range where the structure changes."""

import pytest

from dmdelta.errors import UnknownSchema
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.pieces import known_schema, plan_pieces, unfillable
from dmdelta.silver.survey import StructureEvent

NAME = ("db", "t")
OLD = TableSchema("db", "t", (Column("id", "int"),), ("id",))
NEW = TableSchema("db", "t", (Column("id", "int"), Column("c", "int")), ("id",))


def at(offset):
    return Position(1, "b.000001", offset)


def told(offset, schema):
    return StructureEvent(at(offset), -1, Op.SCHEMA, schema.to_json())


def ddl(offset, sql):
    return StructureEvent(at(offset), 0, Op.DDL, sql)


def test_nothing_changes():
    """Without statements a range is one piece."""
    (piece,) = plan_pieces(NAME, None, [told(10, OLD)], at(4), at(99))
    assert (piece.begin, piece.end, piece.schema, piece.change, piece.failure) == (at(4), at(99), OLD, None, None)


def test_add_column():
    """ADD COLUMN cuts the range at the statement."""
    first, second = plan_pieces(NAME, OLD, [ddl(20, "ALTER TABLE t ADD c INT"), told(30, NEW)], at(4), at(99))
    assert (first.end, first.schema, second.begin, second.schema) == (at(20), OLD, at(20), NEW)
    assert [added.name for added in first.change.columns] == ["c"]


def test_columns_before_any_row():
    """Two statements without a row between them and after them are both known from their text."""
    structure = [ddl(20, "ALTER TABLE t ADD c INT"), ddl(30, "ALTER TABLE t ADD d INT AFTER c")]
    *_, last = plan_pieces(NAME, OLD, structure, at(4), at(99))
    assert [column.name for column in last.schema.columns] == ["id", "c", "d"]


def test_unsupported_statement():
    """What is before the statement is a piece of its own, and the error names table, position and statement."""
    (piece,) = plan_pieces(NAME, OLD, [ddl(20, "ALTER TABLE t\n DROP c"), told(30, NEW)], at(4), at(99))
    assert piece.end == at(20)
    assert "db.t" in str(piece.failure)
    assert "1/b.000001:20" in str(piece.failure)
    assert "ALTER TABLE t DROP c" in str(piece.failure)
    assert len(piece.rest) == 1


def test_structure_that_no_statement_explains():
    """A structure that differs from what the statements lead to stops the table."""
    (piece,) = plan_pieces(NAME, OLD, [told(30, NEW)], at(4), at(99))
    assert "another structure" in str(piece.failure)


def test_unfillable_column():
    """A default that the log does not tell is an error for tables with rows."""
    first, _ = plan_pieces(NAME, OLD, [ddl(20, "ALTER TABLE t ADD c TIMESTAMP DEFAULT NOW()")], at(4), at(99))
    assert "DEFAULT NOW" in str(unfillable(first, NAME))


def test_unknown_structure():
    """Rows without a structure cannot be applied."""
    (piece,) = plan_pieces(NAME, None, [], at(4), at(99))
    with pytest.raises(UnknownSchema, match=r"db\.t"):
        known_schema(piece, NAME)
