"""Column types."""

from dataclasses import replace
from pathlib import Path

import pytest

from dmdelta.ddl.types.silver_types import same_shape, silver_columns, silver_type, types_page
from dmdelta.errors import SchemaError
from dmdelta.model.schema import Column, TableSchema


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (Column("c", "bigint", unsigned=True), "DECIMAL(20,0)"),
        (Column("c", "int", unsigned=True), "BIGINT"),
        (Column("c", "decimal", precision=38, scale=30), "DECIMAL(38,30)"),
        (Column("c", "decimal", precision=65, scale=30), "STRING"),
        (Column("c", "bit", length=63), "BIGINT"),
        (Column("c", "bit", length=64), "DECIMAL(20,0)"),
        (Column("c", "json"), "VARIANT"),
    ],
)
def test_silver_type(column, wanted):
    """Silver's types hold all values of the source types."""
    assert silver_type(column) == wanted


def test_unknown_type():
    """An unknown type is an error with column and type."""
    with pytest.raises(SchemaError, match="column c has the unknown type 'hyperlink'"):
        silver_type(Column("c", "hyperlink"))


def test_page_is_up_to_date():
    """docs/types.md matches the code."""
    assert Path("docs/types.md").read_text(encoding="utf-8") == types_page()


@pytest.mark.parametrize("name", ["_dm_version", "_DM_COMMITTED_AT"])
def test_reserved_names(name):
    """A source column with the name of one of silver's own columns is an error."""
    with pytest.raises(SchemaError, match="silver reserves"):
        silver_columns(TableSchema("db", "t", (Column(name, "int"),)))


A, B = Column("a", "int"), Column("b", "varchar", length=9)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (TableSchema("d", "t", (A, B), ("a",)), True),
        (TableSchema("x", "y", (B, A), ("a",)), True),
        (TableSchema("d", "t", (A, replace(B, length=10)), ("a",)), True),
        (TableSchema("d", "t", (A, B), ("b",)), False),
        (TableSchema("d", "t", (A, B), ()), False),
        (TableSchema("d", "t", (A,), ("a",)), False),
        (TableSchema("d", "t", (A, replace(B, name="c")), ("a",)), False),
        (TableSchema("d", "t", (replace(A, type="bigint"), B), ("a",)), False),
    ],
)
def test_same_shape(other, same):
    """Names, types in silver, and the key count; the order and lengths do not."""
    key = (A.name,)
    assert same_shape(TableSchema("d", "t", (A, B), key), other) == same
