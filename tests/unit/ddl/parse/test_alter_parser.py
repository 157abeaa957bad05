"""The actions of an ALTER TABLE."""

import pytest

from dmdelta.ddl.parse.actions import (
    VERSIONING,
    Add,
    Change,
    Convert,
    DefaultCharset,
    Doubt,
    Drop,
    DropIndex,
    DropKey,
    Empty,
    RenameColumn,
    RenameIndex,
    RenameTo,
    SetKey,
    Show,
    UniqueIndex,
    Unknown,
)
from dmdelta.ddl.parse.alter_parser import alter_actions
from dmdelta.ddl.tokens import tokenize


def actions(text, **keys):
    return alter_actions(tokenize(text), "db", **keys)


MOVES = "moves rows that the log does not contain"
CASES = [
    ("DROP a", [Drop("a")]),
    ("DROP COLUMN IF EXISTS a, DROP b", [Drop("a", True), Drop("b")]),
    ("DROP PRIMARY KEY", [DropKey()]),
    ("DROP INDEX `primary`", [DropKey()]),
    ("DROP KEY PRIMARY", [DropKey()]),
    ("DROP CONSTRAINT IF EXISTS `PRIMARY`", [DropKey()]),
    ("DROP COLUMN `primary`", [Drop("primary")]),
    ("DROP INDEX a, DROP KEY b, DROP FOREIGN KEY c, DROP CONSTRAINT d, DROP CHECK e", [DropIndex("a"), DropIndex("b"), DropIndex("d")]),
    ("DROP FOREIGN KEY `primary`, DROP CHECK `primary`", []),
    ("DROP", [Unknown("DROP")]),
    ("DROP COLUMN", [Unknown("DROP COLUMN")]),
    ("DROP SYSTEM VERSIONING", [Doubt(VERSIONING)]),
    ("DROP PERIOD FOR SYSTEM_TIME", [Doubt(VERSIONING)]),
    ("DROP period", [Drop("period")]),
    ("RENAME COLUMN a TO b", [RenameColumn("a", "b")]),
    ("RENAME COLUMN IF EXISTS a TO b", [RenameColumn("a", "b", True)]),
    ("RENAME COLUMN a", [Unknown("RENAME COLUMN A")]),
    ("RENAME INDEX a TO b, RENAME KEY a TO b", [RenameIndex("a", "b")] * 2),
    ("RENAME TO t, RENAME AS x.t, RENAME = t, RENAME t", [RenameTo((s, "t")) for s in ("db", "x", "db", "db")]),
    ("RENAME", [Unknown("RENAME")]),
    ("ALTER a SET INVISIBLE, ALTER COLUMN b SET VISIBLE", [Show("a", False), Show("b", True)]),
    ("ALTER COLUMN IF EXISTS b SET DEFAULT 1, ALTER b DROP DEFAULT, ALTER", []),
    ("ALTER INDEX i INVISIBLE, ALTER KEY `set` INVISIBLE, ALTER CHECK c ENFORCED", []),
    ("ALTER CONSTRAINT c NOT ENFORCED", []),
    ("CONVERT TO CHARACTER SET latin1", [Convert("latin1")]),
    ("CONVERT TO CHARSET latin1 COLLATE latin1_bin", [Convert("latin1")]),
    ("CONVERT TO CHARACTER SET DEFAULT", [Convert(None)]),
    ("CONVERT TO CHARACTER SET DEFAULT COLLATE latin1_bin", [Convert("latin1")]),
    ("CONVERT TO x", [Unknown("CONVERT TO X")]),
    ("DEFAULT CHARSET latin1", [DefaultCharset("latin1")]),
    ("CHAR SET = latin1 ENGINE=InnoDB", [DefaultCharset("latin1")]),
    ("ENGINE=blackhole", [Doubt("the engine BLACKHOLE stores no rows")]),
    ("TYPE BLACKHOLE", [Doubt("the engine BLACKHOLE stores no rows")]),
    ("ENGINE=InnoDB COMMENT='BLACKHOLE'", []),
    ("ENGINE", []),
    ("AUTO_INCREMENT 5, STATS_PERSISTENT=1, frobnicate=1, FORCE", []),
    ("frobnicate a", [Unknown("FROBNICATE A")]),
    ("`engine` = 1", [Unknown("engine = 1")]),
    ("(a)", [Unknown("( A )")]),
    ("WAIT 5 DROP a", [Drop("a")]),
    ("NOWAIT DROP a", [Drop("a")]),
    ("DROP a ORDER BY b", [Drop("a")]),
    ("DROP a, ORDER BY b, c, DROP d", [Drop("a")]),
    ("DROP a PARTITION BY KEY (b) PARTITIONS 3", [Drop("a")]),
    ("PARTITION BY KEY (b), DROP a", []),
    ("DROP a REMOVE PARTITIONING", [Drop("a")]),
    ("REMOVE PARTITIONING", []),
    ("DROP PARTITION p, q", [Doubt(f"DROP PARTITION {MOVES}")]),
    ("DROP a, DROP PARTITION p, q", [Drop("a"), Doubt(f"DROP PARTITION {MOVES}")]),
    ("TRUNCATE PARTITION p, q", [Doubt(f"TRUNCATE PARTITION {MOVES}")]),
    ("TRUNCATE PARTITION p, ALL", [Doubt(f"TRUNCATE PARTITION {MOVES}")]),
    ("TRUNCATE PARTITION ALL", [Empty()]),
    ("ADD PARTITION (PARTITION p VALUES IN (1)), DROP a", []),
    ("COALESCE PARTITION 2", []),
    ("EXCHANGE PARTITION p WITH TABLE x.u", [Doubt(f"EXCHANGE PARTITION {MOVES}", ("x", "u"), gains=True)]),
    ("CONVERT PARTITION p TO TABLE u", [Doubt(f"CONVERT PARTITION {MOVES}", ("db", "u"))]),
    ("CONVERT TABLE u TO PARTITION p VALUES IN (1)", [Doubt(f"CONVERT TABLE {MOVES}", ("db", "u"), gains=True)]),
    ("DISCARD PARTITION p TABLESPACE", [Doubt(f"DISCARD PARTITION {MOVES}")]),
    ("IMPORT PARTITION p TABLESPACE", [Doubt(f"IMPORT PARTITION {MOVES}", gains=True)]),
    ("DISCARD TABLESPACE", [Doubt(f"DISCARD TABLESPACE {MOVES}")]),
    ("IMPORT TABLESPACE", [Doubt(f"IMPORT TABLESPACE {MOVES}", gains=True)]),
    ("ADD SYSTEM VERSIONING", [Doubt(VERSIONING)]),
    ("ADD PERIOD FOR SYSTEM_TIME (a, b)", [Doubt(VERSIONING)]),
    ("ADD PERIOD FOR p (a, b)", []),
    ("ADD", [Unknown("ADD")]),
    ("ADD COLUMN", [Unknown("ADD COLUMN")]),
    ("ADD a", [Unknown("A")]),
    ("ADD PRIMARY KEY (a, b)", [SetKey(("a", "b"))]),
    ("ADD CONSTRAINT PRIMARY KEY (a)", [SetKey(("a",))]),
    ("ADD CONSTRAINT k PRIMARY KEY USING BTREE (a(9) DESC)", [SetKey(("a",))]),
    ("ADD CONSTRAINT IF NOT EXISTS k PRIMARY KEY (a)", [SetKey(("a",))]),
    ("ADD PRIMARY KEY IF NOT EXISTS (a)", [SetKey(("a",), True)]),
    ("ADD UNIQUE (a), ADD CONSTRAINT u UNIQUE KEY (a)", [UniqueIndex(), UniqueIndex()]),
    ("ADD INDEX (a), ADD FULLTEXT (a), ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES t (a), ADD CHECK (a > 1)", []),
    ("MODIFY a", [Unknown("MODIFY A")]),
    ("CHANGE a INT", [Unknown("CHANGE A INT")]),
    ("CHANGE", [Unknown("CHANGE")]),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), CASES, ids=[text for text, _ in CASES])
def test_actions(text, wanted):
    """What affects columns, the key or rows is found; other actions are ignored."""
    assert list(actions(text)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ADD a INT", [("a", False)]),
        ("ADD COLUMN IF NOT EXISTS a INT", [("a", True)]),
        ("ADD (a INT, b INT, KEY (a))", [("a", False), ("b", False)]),
        ("ADD COLUMN IF NOT EXISTS (a INT, b INT)", [("a", True), ("b", True)]),
        ("ADD COLUMN key INT", [("key", False)]),
        ("ADD COLUMN (a INT, KEY (a))", [("a", False)]),
        ("ADD KEY (a)", []),
        ("ADD COLUMN check INT", [("check", False)]),
    ],
)
def test_added_columns(text, wanted):
    """One or several, with the name of an index only after the word COLUMN."""
    found = actions(text)
    assert all(isinstance(action, Add) for action in found)
    assert [(action.definition.name, action.lenient) for action in found] == wanted


@pytest.mark.parametrize(
    ("text", "was", "name", "lenient"),
    [
        ("MODIFY a INT", "a", "a", False),
        ("MODIFY COLUMN IF EXISTS a INT", "a", "a", True),
        ("CHANGE a b INT", "a", "b", False),
        ("CHANGE COLUMN IF EXISTS a b INT", "a", "b", True),
    ],
)
def test_changed_columns(text, was, name, lenient):
    (action,) = actions(text)
    assert isinstance(action, Change)
    assert (action.was, action.definition.name, action.lenient) == (was, name, lenient)


@pytest.mark.parametrize("text", ["ADD a JSON", "ADD (a JSON)", "MODIFY a JSON", "CHANGE b a JSON"])
@pytest.mark.parametrize(("keys", "kind"), [({}, "json"), ({"mariadb": True}, "longtext")])
def test_json_is_text_in_mariadb_only(text, keys, kind):
    (action,) = actions(text, **keys)
    assert action.definition.column.type == kind


def test_a_period_column_is_one_of_a_versioned_table():
    """The column is added, and the rows are in doubt."""
    added, doubt = actions("ADD a TIMESTAMP(6) GENERATED ALWAYS AS ROW START")
    assert isinstance(added, Add)
    assert doubt == Doubt(VERSIONING)
