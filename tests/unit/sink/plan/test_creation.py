"""Statements that create a table of the target, and that add columns to one."""

import pytest

from dmdelta.model.schema import Column, ConstantColumn, TableSchema
from dmdelta.sink.plan.creation import add_columns, column_statement, create_table
from dmdelta.sink.plan.target_table import TargetColumn, TargetKey, TargetTable

SHARD = ConstantColumn("shard", "varchar", value="a")
SCHEMA = TableSchema("d", "t", (Column("id", "int"), Column("n", "bigint"), SHARD), ("id",))
KEYS = (
    TargetKey("PRIMARY", (("id", None),)),
    TargetKey("name", (("name", 10), ("n", None))),
    TargetKey("lowered", ((None, None),)),
)
WORD = "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"


def having(*names):
    return TargetTable("d", "t", {name: TargetColumn(name, "int") for name in names}, KEYS)


def test_an_extracted_column_is_part_of_the_key():
    """Rows of several source tables can have the same key."""
    assert create_table(SCHEMA, ()) == (
        f"CREATE TABLE IF NOT EXISTS `d`.`t` (`id` INT NOT NULL, `n` BIGINT NULL, `shard` {WORD}, "
        "PRIMARY KEY (`id`, `shard`)) DEFAULT CHARACTER SET utf8mb4"
    )


def test_a_column_keeps_its_default():
    """A text that needs a type without defaults has none."""
    columns = (Column("a", "int", default="1"), Column("b", "varchar", length=20, nullable=False, default="it's \\"))
    long = Column("c", "varchar", length=20_000, default="x")
    assert create_table(TableSchema("d", "t", (*columns, long)), ()) == (
        "CREATE TABLE IF NOT EXISTS `d`.`t` (`a` INT NULL DEFAULT '1', `b` VARCHAR(20) NOT NULL DEFAULT 'it''s \\\\', "
        "`c` MEDIUMTEXT NULL) DEFAULT CHARACTER SET utf8mb4"
    )
    added = column_statement("ADD", TableSchema("d", "t", columns[1:]), ())
    assert added == "ALTER TABLE `d`.`t` ADD COLUMN `b` VARCHAR(20) NULL DEFAULT 'it''s \\\\'"


def test_a_merged_table_accepts_rows_of_shards_that_lack_a_column():
    """Only keys, and columns with a default, are NOT NULL: a shard without the column has no value for it."""
    columns = (Column("id", "int", nullable=False), Column("a", "int", nullable=False))
    schema = TableSchema("d", "t", (*columns, Column("b", "int", nullable=False, default="1")), ("id",))
    own, merged = (create_table(schema, (), merged=merged) for merged in (False, True))
    assert "`id` INT NOT NULL, `a` INT NOT NULL, `b` INT NOT NULL DEFAULT '1'" in own
    assert "`id` INT NOT NULL, `a` INT NULL, `b` INT NOT NULL DEFAULT '1'" in merged


def test_keys_of_an_empty_table_get_the_extracted_columns():
    """They change in one statement, so a crash leaves the table unchanged or complete; keys on expressions stay."""
    assert add_columns(SCHEMA, having("id"), (), empty=True) == [
        (
            f"ALTER TABLE `d`.`t` ADD COLUMN `n` BIGINT NULL, ADD COLUMN `shard` {WORD}, "
            "DROP PRIMARY KEY, ADD PRIMARY KEY (`id`, `shard`), "
            "DROP INDEX `name`, ADD UNIQUE INDEX `name` (`name`(10), `n`, `shard`)"
        )
    ]


@pytest.mark.parametrize(("names", "empty"), [(("id", "shard"), True), (("id", "shard"), False)])
def test_other_columns_leave_keys_alone(names, empty):
    """A table that is reloaded gets the columns that it lacks."""
    assert add_columns(SCHEMA, having(*names), (), empty=empty) == ["ALTER TABLE `d`.`t` ADD COLUMN `n` BIGINT NULL"]


def test_tidb_creates_an_empty_table_again():
    """It cannot change a clustered key. Other columns are added one by one."""
    again = ["DROP TABLE IF EXISTS `d`.`t`", create_table(SCHEMA, (), tidb=True, merged=True)]
    assert add_columns(SCHEMA, having("id", "n"), (), tidb=True, empty=True) == again
    assert add_columns(SCHEMA, having("id"), (), tidb=True, empty=False) == [
        "ALTER TABLE `d`.`t` ADD COLUMN `n` BIGINT NULL",
        f"ALTER TABLE `d`.`t` ADD COLUMN `shard` {WORD}",
    ]
