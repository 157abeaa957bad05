"""Which statements change the texts of keys in quarantine."""

from dataclasses import replace

import pytest

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.model.schema import Column, ConstantColumn, StoredColumn, TableSchema
from dmdelta.silver.schema.key_texts import changes_key_text

COLUMNS = (Column("id", "int", nullable=False), Column("n", "int", nullable=False))
TABLE = TableSchema("d", "t", COLUMNS, ("id",))


@pytest.mark.parametrize(
    ("actions", "changes"),
    [
        ("CHANGE id pk INT NOT NULL", True),
        ("CHANGE id ID INT NOT NULL", True),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (n)", True),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)", True),
        ("DROP PRIMARY KEY", True),
        ("MODIFY id VARCHAR(20) NOT NULL", True),
        ("MODIFY id DECIMAL(10,2) NOT NULL", True),
        ("MODIFY id BIGINT UNSIGNED NOT NULL", False),
        ("MODIFY id INT NOT NULL AFTER n", False),
        ("CHANGE n m BIGINT, ADD c INT", False),
    ],
)
def test_statements_that_change_the_text_of_a_key(actions, changes):
    """Other names, columns and notations do; larger integers have the same digits."""
    (effect,) = statement_effects(f"ALTER TABLE t {actions}", "d", lambda _: TABLE)
    assert isinstance(effect, Altered)
    assert changes_key_text(effect.before, effect.after) is changes


@pytest.mark.parametrize(
    ("former", "definition", "changes"),
    [
        (Column("id", "datetime", precision=6), "DATETIME", True),
        (Column("id", "datetime"), "DATETIME(6)", False),
        (Column("id", "timestamp", precision=6), "TIMESTAMP", True),
        (Column("id", "time", precision=6), "TIME", True),
        (Column("id", "binary", length=4), "BINARY(8)", True),
        (Column("id", "enum", members=("a", "b")), "ENUM('a')", True),
        (Column("id", "enum", members=("a", "b")), "ENUM('a', 'b', 'c')", False),
        (Column("id", "varchar", length=40), "CHAR(10)", True),
        (Column("id", "varchar", length=40), "VARCHAR(60)", False),
        (Column("id", "bigint"), "INT", False),
        (Column("id", "int"), "BIGINT", False),
    ],
)
def test_a_statement_that_rewrites_a_key_changes_its_text(former, definition, changes):
    """Within one type of silver, too. A key has no NULLs, so its column loses none."""
    before = replace(TABLE, columns=(former, COLUMNS[1]))
    (effect,) = statement_effects(f"ALTER TABLE t MODIFY id {definition} NOT NULL", "d", lambda _: before)
    assert changes_key_text(effect.before, effect.after) is changes


def test_other_shards_do_not_change_the_key_of_a_shard():
    """The type in which a merged table stores a column is not the shard's."""
    stored = TableSchema("d", "t", (StoredColumn.of(COLUMNS[0], "STRING"), COLUMNS[1]), ("id",))
    assert not changes_key_text(TABLE, stored)


def test_a_structure_in_silver_is_read_from_its_text():
    """With constant columns, and those that a merged table stores in another type."""
    columns = (StoredColumn.of(COLUMNS[0], "STRING"), COLUMNS[1], ConstantColumn("_dm_shard", "varchar", value="s.d.t"))
    schema = TableSchema("d", "t", columns, ("id", "_dm_shard"))
    assert TableSchema.from_json(schema.to_json()) == schema
