"""Splitting an ALTER TABLE into its actions."""

import pytest

from dmdelta.ddl.parse.splitting import split_alter


@pytest.mark.parametrize(
    ("sql", "head", "actions"),
    [
        ("ALTER TABLE t DROP a, ADD b INT", "ALTER TABLE t", ("DROP a", "ADD b INT")),
        ("alter ignore table `s`.`t,x` ADD COLUMN (a INT, b INT), DROP `c`", "alter ignore table `s`.`t,x`",
         ("ADD COLUMN (a INT, b INT)", "DROP `c`")),
        ("/* why */ ALTER TABLE t ADD a VARCHAR(9) DEFAULT 'x, y' /* so */, ENGINE=InnoDB", "/* why */ ALTER TABLE t",
         ("ADD a VARCHAR(9) DEFAULT 'x, y'", "ENGINE=InnoDB")),
        ("ALTER TABLE t ADD a INT", "ALTER TABLE t", ("ADD a INT",)),
    ],
)  # fmt: skip
def test_actions_are_split(sql, head, actions):
    """In their original text, including commas inside them."""
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
