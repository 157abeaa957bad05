"""Column types."""

from pathlib import Path

import pytest

from dmdelta.ddl.types import silver_columns, silver_type, types_page
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
    """No value of the source type is lost in silver's."""
    assert silver_type(column) == wanted


def test_unknown_type():
    """A type that is not known is an error that names column and type."""
    with pytest.raises(SchemaError, match="'hyperlink' of column c"):
        silver_type(Column("c", "hyperlink"))


def test_page_is_up_to_date():
    """docs/types.md is what the code says."""
    assert Path("docs/types.md").read_text(encoding="utf-8") == types_page()


@pytest.mark.parametrize("name", ["_dm_version", "_DM_COMMITTED_AT"])
def test_reserved_names(name):
    """A source column with a name of silver's own is an error."""
    with pytest.raises(SchemaError, match="silver keeps for itself"):
        silver_columns(TableSchema("db", "t", (Column(name, "int"),)))
