"""The columns of information_schema as a table map describes them."""

import pytest

from dmdelta.model.schema import Column
from dmdelta.source.catalog import _column


@pytest.mark.parametrize(
    ("mariadb", "column"),
    [(True, Column("v", "varbinary", length=6144)), (False, Column("v", "vector"))],
    ids=["mariadb", "mysql"],
)
def test_a_vector(mariadb, column):
    """MariaDB logs it as a VARBINARY with 4 bytes per float; MySQL has a type for it in the log."""
    fields = ("v", "vector", "vector(1536)", None, None, None, None, None, "YES", "", None, None)
    assert _column(fields, mariadb=mariadb) == column
