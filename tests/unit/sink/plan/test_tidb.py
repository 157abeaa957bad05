"""Differences between TiDB and MySQL: split statements, character sets and collations."""

import pytest

from dmdelta.errors import SchemaError, SinkError
from dmdelta.model.schema import Column, TableSchema
from dmdelta.sink.plan.creation import create_table
from dmdelta.sink.plan.tidb import tidb_collation, tidb_statements


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        (
            "ALTER TABLE `d`.`t` ADD x DECIMAL(3,1) DEFAULT '1,2', ADD INDEX (x, y)",
            ["ALTER TABLE `d`.`t` ADD x DECIMAL(3,1) DEFAULT '1,2'", "ALTER TABLE `d`.`t` ADD INDEX (x, y)"],
        ),
        ("ALTER TABLE t ADD x INT, ALGORITHM=INSTANT, LOCK = NONE", ["ALTER TABLE t ADD x INT"]),
        ("ALTER TABLE t ALGORITHM=INPLACE", []),
        ("ALTER TABLE t RENAME TO u, ADD x INT", ["ALTER TABLE t ADD x INT", "ALTER TABLE t RENAME TO u"]),
        ("ALTER TABLE t DROP b, ADD b INT", ["ALTER TABLE t DROP b", "ALTER TABLE t ADD b INT"]),
        ("CREATE TABLE t (a INT, b INT)", ["CREATE TABLE t (a INT, b INT)"]),
    ],
)
def test_one_action_at_a_time(sql, wanted):
    """An ALTER with several actions becomes one statement per action, without ALGORITHM and LOCK."""
    assert tidb_statements(sql) == wanted


@pytest.mark.parametrize(
    "actions",
    [
        "RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "CHANGE a B INT, CHANGE b c INT",
        "ADD COLUMN a BIGINT, DROP COLUMN a",
        "ADD (x INT, a INT), RENAME COLUMN a TO y",
    ],
)
def test_exchanged_names_are_refused(actions):
    """One by one, such actions would hit an existing name, and TiDB's error for it counts as already applied."""
    with pytest.raises(SchemaError, match="dmdelta binlog replace"):
        tidb_statements(f"ALTER TABLE t {actions}")


@pytest.mark.parametrize(
    ("charset", "collation", "wanted"),
    [
        ("utf8mb4", "utf8mb4_general_ci", "utf8mb4_general_ci"),
        ("utf8mb4", "utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci"),
        ("utf8mb4", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin"),
        ("utf8mb4", "utf8mb4_unicode_520_ci", "utf8mb4_bin"),
        ("utf8mb3", "utf8mb3_general_ci", "utf8_general_ci"),
        ("utf8mb3", "utf8mb3_czech_ci", "utf8_bin"),
        ("latin1", "latin1_swedish_ci", "latin1_bin"),
        ("utf16", "utf16_general_ci", "utf8mb4_bin"),
        ("gb18030", "gb18030_chinese_ci", "utf8mb4_bin"),
    ],
)
def test_collations(charset, collation, wanted):
    """TiDB's own collations stay; others are replaced by one that distinguishes at least what the source's does."""
    assert tidb_collation(charset, collation) == wanted


def test_a_table_with_tidbs_character_sets():
    """Lengths are counted in the source's character set, names are those of the target."""
    text = Column("v", "varchar", length=40, charset="utf16", collation="utf16_bin")
    schema = TableSchema("d", "t", (Column("id", "int", nullable=False), text), ("id",))
    assert create_table(schema, (), tidb=True) == (
        "CREATE TABLE IF NOT EXISTS `d`.`t` (`id` INT NOT NULL, "
        "`v` VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL, PRIMARY KEY (`id`)) DEFAULT CHARACTER SET utf8mb4"
    )


@pytest.mark.parametrize(
    ("charset", "collation", "there", "wanted"),
    [
        ("utf16", "utf16_bin", ["utf16_bin"], "utf16 COLLATE utf16_bin"),
        ("utf8mb4", "utf8mb4_0900_ai_ci", ["utf8mb4_0900_ai_ci", "utf8mb4_bin"], "utf8mb4 COLLATE utf8mb4_0900_ai_ci"),
        (
            "utf8mb4",
            "utf8mb4_0900_ai_ci",
            ["utf8mb4_bin", "utf8mb4_unicode_520_ci", "utf8mb4_unicode_520_nopad_ci"],
            "utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci",
        ),
        (
            "utf8mb4",
            "utf8mb4_de_pb_0900_ai_ci",
            ["utf8mb4_bin", "utf8mb4_unicode_520_ci"],
            "utf8mb4 COLLATE utf8mb4_bin",
        ),
        (
            "utf8mb4",
            "utf8mb4_uca1400_ai_ci",
            ["utf8mb4_bin", "utf8mb4_unicode_520_ci"],
            "utf8mb4 COLLATE utf8mb4_unicode_520_ci",
        ),
        ("utf8mb4", "utf8mb4_0900_as_cs", ["utf8mb4_bin", "utf8mb4_nopad_bin"], "utf8mb4 COLLATE utf8mb4_nopad_bin"),
        ("gb18030", "gb18030_chinese_ci", ["utf8mb4_bin"], "utf8mb4 COLLATE utf8mb4_bin"),
        ("utf8mb3", "utf8mb3_general_ci", ["utf8_bin", "utf8_general_ci"], "utf8 COLLATE utf8_general_ci"),
    ],
)
def test_collations_that_a_target_lacks(charset, collation, there, wanted):
    """The source's if the target has it, else the closest one that distinguishes at least what the source's does."""
    column = Column("v", "text", charset=charset, collation=collation)
    made = create_table(TableSchema("d", "t", (column,), ()), there)
    assert f"`v` TEXT CHARACTER SET {wanted} NULL" in made


@pytest.mark.parametrize("kind", ["geometry", "vector"])
def test_types_that_tidb_lacks(kind):
    """The error names table and column and has a hint."""
    schema = TableSchema("d", "t", (Column("place", kind),), ())
    with pytest.raises(SinkError, match=rf"column place \({kind}\) of d\.t(.|\n)*block-allow-list"):
        create_table(schema, (), tidb=True)
