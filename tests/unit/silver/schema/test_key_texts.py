"""Which statements change the texts of keys in quarantine."""

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
    assert changes_key_text(effect) is changes


def test_other_shards_do_not_change_the_key_of_a_shard():
    """The type in which a merged table stores a column is not the shard's."""
    stored = TableSchema("d", "t", (StoredColumn.of(COLUMNS[0], "STRING"), COLUMNS[1]), ("id",))
    assert not changes_key_text(Altered(TABLE, stored, ()))


def test_a_structure_in_silver_is_read_from_its_text():
    """With constant columns, and those that a merged table stores in another type."""
    columns = (StoredColumn.of(COLUMNS[0], "STRING"), COLUMNS[1], ConstantColumn("_dm_shard", "varchar", value="s.d.t"))
    schema = TableSchema("d", "t", columns, ("id", "_dm_shard"))
    assert TableSchema.from_json(schema.to_json()) == schema
