"""Splitting an ALTER TABLE into its actions."""

import pytest

from dmdelta.ddl.parse.splitting import AlterRename, alter_rename, has_unsplittable_actions, split_alter


@pytest.mark.parametrize(
    ("sql", "head", "actions"),
    [
        ("ALTER TABLE t DROP a, ADD b INT", "ALTER TABLE t", ("DROP a", "ADD b INT")),
        ("alter ignore table `s`.`t,x` ADD COLUMN (a INT, b INT), DROP `c`", "alter ignore table `s`.`t,x`",
         ("ADD COLUMN (a INT, b INT)", "DROP `c`")),
        ("/* why */ ALTER TABLE t ADD a VARCHAR(9) DEFAULT 'x, y' /* so */, ENGINE=InnoDB", "/* why */ ALTER TABLE t",
         ("ADD a VARCHAR(9) DEFAULT 'x, y'", "ENGINE=InnoDB")),
        ("ALTER TABLE t ADD a INT", "ALTER TABLE t", ("ADD a INT",)),
        ("ALTER TABLE t WAIT 5 ADD a INT, DROP b", "ALTER TABLE t WAIT 5", ("ADD a INT", "DROP b")),
        ("ALTER TABLE t ADD INDEX i (a) /*!80000 INVISIBLE */, ADD b INT COMMENT '/*!'", "ALTER TABLE t",
         ("ADD INDEX i (a) /*!80000 INVISIBLE */", "ADD b INT COMMENT '/*!'")),
        ("ALTER TABLE t /*!50000 WAIT 5 */ DROP a, ADD /*! b */ /*M!100100 INT */ /* so */", "ALTER TABLE t /*!50000 WAIT 5 */",
         ("DROP a", "ADD /*! b */ /*M!100100 INT */")),
        ("ALTER TABLE t /*!80000 ADD a INT */, DROP b", "ALTER TABLE t /*!80000 */", ("/*!80000 ADD a INT */", "DROP b")),
        ("/*!40000 ALTER TABLE t DISABLE KEYS */", "/*!40000 ALTER TABLE t */", ("/*!40000 DISABLE KEYS */",)),
        ("ALTER TABLE t ADD a INT /*M! INVISIBLE, ADD b INT */, DROP c", "ALTER TABLE t",
         ("ADD a INT /*M! INVISIBLE */", "/*M! ADD b INT */", "DROP c")),
        ("ALTER TABLE t ADD a INT /*! INVISIBLE", "ALTER TABLE t", ("ADD a INT /*! INVISIBLE",)),
    ],
)  # fmt: skip
def test_actions_are_split(sql, head, actions):
    """In their original text, including commas inside them. Versioned comments stay whole."""
    split = split_alter(sql)
    assert (split.head, split.actions) == (head, actions)
    assert split.of(actions[:1]) == f"{head} {actions[0]}"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a INT, b INT)",
        "ALTER DATABASE d COLLATE x",
        "ALTER TABLE t DROP PARTITION p1, p2",
        "ALTER TABLE t",
        "",
    ],
)
def test_other_statements_are_not_split(sql):
    """Other statements, and lists of names, are not split."""
    assert split_alter(sql) is None


@pytest.mark.parametrize(
    ("sql", "to", "rest"),
    [
        ("ALTER TABLE t RENAME u", ("d", "u"), ""),
        ("alter /* gh-ost */ table `d`.`t` rename `_t_del`", ("d", "_t_del"), ""),
        ("ALTER TABLE t ADD a INT, RENAME TO x.u, DROP b", ("x", "u"), "ALTER TABLE t ADD a INT, DROP b"),
        ("ALTER TABLE t WAIT 5 RENAME AS u, ADD a INT", ("d", "u"), "ALTER TABLE t WAIT 5 ADD a INT"),
        ("ALTER TABLE t RENAME = u, RENAME v, RENAME COLUMN a TO b", ("d", "v"), "ALTER TABLE t RENAME COLUMN a TO b"),
        ("ALTER TABLE x.t RENAME t", ("d", "t"), ""),
        ("ALTER TABLE t RENAME u, ADD a INT /*! INVISIBLE */", ("d", "u"), "ALTER TABLE t ADD a INT /*! INVISIBLE */"),
        ("ALTER TABLE t RENAME u ORDER BY a, b", ("d", "u"), None),
    ],
)
def test_the_rename_of_a_table(sql, to, rest):
    """Its new name, and the statement without it."""
    assert alter_rename(sql, "d") == AlterRename(to, rest)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t RENAME COLUMN a TO b",
        "ALTER TABLE t RENAME INDEX a TO b, RENAME KEY c TO d",
        "ALTER TABLE t RENAME TO t",
        "ALTER TABLE t RENAME d.t",
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
        "RENAME TABLE t TO u",
        "ALTER TABLE",
        "",
    ],
)
def test_no_table_is_renamed_by_an_alter(sql):
    """Other names, the same name, or another statement."""
    assert alter_rename(sql, "d") is None


@pytest.mark.parametrize(
    ("sql", "several"),
    [
        ("ALTER TABLE t ADD a INT, ORDER BY b, c", True),
        ("ALTER TABLE t ADD a INT PARTITION BY KEY (a, b)", True),
        ("ALTER TABLE t DROP a REMOVE PARTITIONING", True),
        ("ALTER TABLE t NOWAIT DROP a, DROP b, ORDER BY c", True),
        ("ALTER TABLE t WAIT 5 DROP PARTITION p, q", False),
        ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES IN (1))", False),
        ("ALTER TABLE t ORDER BY a, b", False),
        ("ALTER TABLE t PARTITION BY KEY (a, b)", False),
        ("ALTER TABLE t REMOVE PARTITIONING", False),
        ("ALTER TABLE t ADD a INT, DROP `order`, DROP b", False),
        ("CREATE TABLE t (a INT) PARTITION BY KEY (a, b)", False),
        ("ALTER TABLE t", False),
    ],
)
def test_actions_that_cannot_be_split(sql, several):
    """Others besides a list of names."""
    assert has_unsplittable_actions(sql) is several
