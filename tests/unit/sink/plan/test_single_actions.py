"""An ALTER TABLE of which the target already has a part: what is executed action by action, and what is not."""

import pytest

from dmdelta.errors import SinkError
from dmdelta.sink.plan.single_actions import Already, Rest, plan_rest

ALREADY = Already(1091, in_doubt=False)
IN_DOUBT = Already(1091, in_doubt=True)
SHARED = Already(1060, in_doubt=False, shared=True)


HEAD = "ALTER TABLE `d`.`t` "


def rest(actions, already=ALREADY, columns=(), left_out=()):
    """The actions of the remaining statements."""
    found = plan_rest(f"{HEAD}{actions}", already, columns)
    assert found.left_out == tuple(left_out)
    assert all(one.startswith(HEAD) for one in found.statements)
    return [one.removeprefix(HEAD) for one in found.statements]


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("DROP FOREIGN KEY fk, DROP COLUMN parent_id", ["DROP FOREIGN KEY fk", "DROP COLUMN parent_id"]),
        ("DROP INDEX i, MODIFY d DATETIME(0)", ["DROP INDEX i", "MODIFY d DATETIME(0)"]),
        ("ADD c INT AFTER a, ADD d INT AFTER c", ["ADD c INT AFTER a", "ADD d INT AFTER c"]),
        ("RENAME COLUMN a TO b, ADD c INT AFTER b", ["RENAME COLUMN a TO b", "ADD c INT AFTER b"]),
        ("MODIFY a INT FIRST, CHANGE b c INT AFTER a", ["MODIFY a INT FIRST", "CHANGE b c INT AFTER a"]),
        ("MODIFY a INT, ALTER a SET INVISIBLE", ["MODIFY a INT", "ALTER a SET INVISIBLE"]),
        ("ADD c VARCHAR(9) DEFAULT 'x, y', DROP e", ["ADD c VARCHAR(9) DEFAULT 'x, y'", "DROP e"]),
        ("ADD c INT, ALGORITHM=INPLACE, ENGINE=InnoDB, LOCK=NONE", ["ADD c INT", "ENGINE=InnoDB"]),
        ("DROP INDEX i, ADD INDEX i (a, b)", ["DROP INDEX i", "ADD INDEX i (a, b)"]),
        ("RENAME INDEX i TO j, ADD INDEX i (a)", ["RENAME INDEX i TO j", "ADD INDEX i (a)"]),
        ("ADD `check` INT, DROP `index`", ["ADD `check` INT", "DROP `index`"]),
    ],
)
def test_each_action_is_a_statement(actions, expected):
    """In the statement's order if no order is needed."""
    assert rest(actions) == expected


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("RENAME u, ADD c INT, RENAME COLUMN a TO b", ["ADD c INT", "RENAME COLUMN a TO b", "RENAME u"]),
        ("DROP p, DROP INDEX i, DROP FOREIGN KEY fk", ["DROP FOREIGN KEY fk", "DROP INDEX i", "DROP p"]),
        ("DROP p, DROP KEY i, DROP CONSTRAINT fk", ["DROP CONSTRAINT fk", "DROP KEY i", "DROP p"]),
        ("ADD UNIQUE KEY u (c), DROP CHECK x, ADD c INT", ["DROP CHECK x", "ADD c INT", "ADD UNIQUE KEY u (c)"]),
        ("ADD CONSTRAINT f FOREIGN KEY (c) REFERENCES p (id), ADD c INT",
         ["ADD c INT", "ADD CONSTRAINT f FOREIGN KEY (c) REFERENCES p (id)"]),
        ("ADD c TEXT, DEFAULT CHARSET latin1, DROP e", ["DEFAULT CHARSET latin1", "ADD c TEXT", "DROP e"]),
        ("ADD c TEXT, CONVERT TO CHARACTER SET latin1", ["ADD c TEXT", "CONVERT TO CHARACTER SET latin1"]),
        ("DROP PRIMARY KEY, DROP e", ["DROP PRIMARY KEY", "DROP e"]),
    ],
)  # fmt: skip
def test_an_action_follows_those_that_it_needs(actions, expected):
    """A column is added before its index, and dropped after its keys; a table is renamed last."""
    assert rest(actions) == expected


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("DROP PRIMARY KEY, DROP e, ADD PRIMARY KEY (a)", ["DROP PRIMARY KEY, ADD PRIMARY KEY (a)", "DROP e"]),
        ("ADD n INT AUTO_INCREMENT, DROP INDEX i, ADD PRIMARY KEY (n)",
         ["DROP INDEX i", "ADD n INT AUTO_INCREMENT, ADD PRIMARY KEY (n)"]),
        ("MODIFY id INT AUTO_INCREMENT, DROP PRIMARY KEY, ADD c INT, ADD PRIMARY KEY (id, c)",
         ["ADD c INT", "MODIFY id INT AUTO_INCREMENT, DROP PRIMARY KEY, ADD PRIMARY KEY (id, c)"]),
        ("DROP PRIMARY KEY, MODIFY n INT PRIMARY KEY, DROP e", ["DROP PRIMARY KEY, MODIFY n INT PRIMARY KEY", "DROP e"]),
        ("ADD COLUMN id INT AUTO_INCREMENT, ADD UNIQUE KEY (ID, a), DROP INDEX i, ADD INDEX (a)",
         ["DROP INDEX i", "ADD COLUMN id INT AUTO_INCREMENT, ADD UNIQUE KEY `ID` (ID, a)", "ADD INDEX `a` (a)"]),
        ("MODIFY id INT AUTO_INCREMENT, ADD INDEX i (id), ADD c INT",
         ["ADD c INT", "MODIFY id INT AUTO_INCREMENT, ADD INDEX i (id)"]),
        ("DROP PRIMARY KEY, MODIFY id INT", ["MODIFY id INT", "DROP PRIMARY KEY"]),
        ("ADD n SERIAL, DROP e", ["ADD n SERIAL", "DROP e"]),
        ("MODIFY id INT, ADD PRIMARY KEY (id), DROP e", ["MODIFY id INT", "ADD PRIMARY KEY (id)", "DROP e"]),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (a)", ["DROP PRIMARY KEY", "ADD PRIMARY KEY (a)"]),
        ("ADD PRIMARY KEY (a), DROP PRIMARY KEY", ["DROP PRIMARY KEY", "ADD PRIMARY KEY (a)"]),
        ("MODIFY n INT PRIMARY KEY, DROP PRIMARY KEY", ["DROP PRIMARY KEY", "MODIFY n INT PRIMARY KEY"]),
        ("DROP PRIMARY KEY, MODIFY n INT PRIMARY KEY, MODIFY id INT",
         ["MODIFY id INT", "DROP PRIMARY KEY, MODIFY n INT PRIMARY KEY"]),
        ("DROP KEY `PRIMARY`, MODIFY id INT", ["MODIFY id INT", "DROP KEY `PRIMARY`"]),
        ("MODIFY n INT PRIMARY KEY, ADD c INT AFTER n", ["ADD c INT AFTER n", "MODIFY n INT PRIMARY KEY"]),
        ("CHANGE e n INT PRIMARY KEY, ADD c INT AFTER n", ["CHANGE e n INT PRIMARY KEY", "ADD c INT AFTER n"]),
        ("ADD n SERIAL, ADD PRIMARY KEY (n)", ["ADD n SERIAL", "ADD PRIMARY KEY (n)"]),
    ],
)  # fmt: skip
def test_changes_of_the_primary_key_stay_together(actions, expected):
    """An AUTO_INCREMENT column must be in a key, which may be another one. If there are no other actions, one of the
    changes is already there: then a new primary key is added after the former one was dropped.
    """
    assert rest(actions) == expected


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("ADD (a INT, `b` INT, INDEX i (a))", ["ADD COLUMN a INT", "ADD COLUMN `b` INT", "ADD INDEX i (a)"]),
        ("ADD COLUMN IF NOT EXISTS (a INT, b INT DEFAULT (1 + 1))",
         ["ADD COLUMN IF NOT EXISTS a INT", "ADD COLUMN IF NOT EXISTS b INT DEFAULT (1 + 1)"]),
        ("ADD COLUMN (a INT)", []),
        ("ADD COLUMN a INT", []),
        ("DROP INDEX i, ALGORITHM=INPLACE", []),
        ("DROP PARTITION p, q", []),
    ],
)  # fmt: skip
def test_several_columns_in_parentheses(action, expected):
    """They are actions, too. Of a single action nothing remains."""
    assert rest(action) == expected


def test_an_index_without_a_name():
    """It gets the server's name, so that it is not added twice."""
    assert rest("ADD c INT, ADD INDEX (c), ADD UNIQUE (c, d), ADD KEY USING BTREE (`C`), ADD FULLTEXT (e(9))") == [
        "ADD c INT",
        "ADD INDEX `c` (c)",
        "ADD UNIQUE `c_2` (c, d)",
        "ADD KEY `C_3` USING BTREE (`C`)",
        "ADD FULLTEXT `e` (e(9))",
    ]
    assert rest("DROP e, ADD INDEX c (a), ADD CONSTRAINT UNIQUE INDEX (c)") == [
        "ADD INDEX c (a)",
        "ADD CONSTRAINT UNIQUE INDEX `c_2` (c)",
        "DROP e",
    ]
    unchanged = [
        "ADD CONSTRAINT u UNIQUE (c)",
        "ADD INDEX ((a + b))",
        "ADD PRIMARY KEY (a)",
        "ADD FOREIGN KEY (c) REFERENCES p (id)",
        "ADD CHECK (a > 0)",
        "ADD INDEX type (type)",
    ]
    for action in unchanged:
        assert rest(f"DROP INDEX i, {action}") == ["DROP INDEX i", action]


NAMELESS = [
    "ADD CHECK (b > 0)",
    "ADD CONSTRAINT CHECK (b > 0)",
    "ADD FOREIGN KEY (b) REFERENCES p (id)",
    "ADD CONSTRAINT FOREIGN KEY f (b) REFERENCES p (id)",
    "ADD INDEX ((b + 1))",
    "ADD UNIQUE USING BTREE (b, (b + 1))",
    "ADD CONSTRAINT UNIQUE KEY ((b + 1))",
]


@pytest.mark.parametrize("action", NAMELESS)
def test_what_the_server_gives_a_new_name(action):
    """It is not added a second time: it is left out if the statement may have been executed. A new column that the
    target lacks shows that it was not.
    """
    both = ["ADD a INT", action]
    assert rest(f"ADD a INT, {action}", ALREADY, ("a", "b")) == both
    for already in (IN_DOUBT, SHARED):
        assert rest(f"ADD a INT, {action}", already, ("A", "b"), [action]) == ["ADD a INT"]
        assert rest(f"ADD a INT, {action}", already, ("b",)) == both
        assert rest(f"DROP INDEX i, {action}", already, ("b",), [action]) == ["DROP INDEX i"]


@pytest.mark.parametrize(
    "action",
    [
        "ADD CONSTRAINT c CHECK (b > 0)",
        "ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES p (id)",
        "ADD FOREIGN KEY IF NOT EXISTS f (b) REFERENCES p (id)",
        "ADD INDEX i ((b + 1))",
        "ADD CONSTRAINT u UNIQUE ((b + 1))",
        "ADD PRIMARY KEY (b)",
        "ADD `check` INT",
        "COMMENT = 'ADD CHECK'",
    ],
)
def test_what_the_server_refuses_a_second_time(action):
    """It is executed, whether the statement may have been executed or not."""
    for already in (ALREADY, IN_DOUBT, SHARED):
        assert rest(f"DROP INDEX i, {action}", already, ("b", "check")) == ["DROP INDEX i", action]


@pytest.mark.parametrize(
    ("actions", "columns", "left_out", "expected"),
    [
        ("MODIFY v VARCHAR(20), ADD INDEX i (v)", ("v",), ["MODIFY v VARCHAR(20)"], ["ADD INDEX i (v)"]),
        ("CHANGE v V VARCHAR(20), ADD INDEX i (v)", ("v",), ["CHANGE v V VARCHAR(20)"], ["ADD INDEX i (v)"]),
        ("DROP COLUMN d, ADD INDEX i (a)", ("a", "D"), ["DROP COLUMN d"], ["ADD INDEX i (a)"]),
        ("DROP COLUMN d, ADD INDEX i (a)", ("a",), [], ["ADD INDEX i (a)", "DROP COLUMN d"]),
        ("CHANGE v w INT, ADD INDEX i (a)", ("a", "v"), [], ["CHANGE v w INT", "ADD INDEX i (a)"]),
        ("CHANGE v w INT, ADD INDEX i (a)", ("a", "w"), [], ["CHANGE v w INT", "ADD INDEX i (a)"]),
        ("ADD c INT, MODIFY v VARCHAR(20), DROP d", ("d", "v"), [], ["ADD c INT", "MODIFY v VARCHAR(20)", "DROP d"]),
        ("DROP INDEX i, DROP PRIMARY KEY, MODIFY n INT PRIMARY KEY", ("n",), [],
         ["DROP INDEX i", "DROP PRIMARY KEY, MODIFY n INT PRIMARY KEY"]),
        ("MODIFY v INT, DROP PRIMARY KEY, ADD PRIMARY KEY (a)", ("v", "a"), ["MODIFY v INT"],
         ["DROP PRIMARY KEY, ADD PRIMARY KEY (a)"]),
    ],
)  # fmt: skip
def test_a_later_shard_does_not_repeat_what_the_target_has_moved_past(actions, columns, left_out, expected):
    """Another shard's later statement may have added the column again, or widened it."""
    for already in (SHARED, Already(1061, in_doubt=True, shared=True)):
        assert rest(actions, already, columns, left_out) == expected
    assert sorted([*left_out, *expected]) == sorted(rest(actions, IN_DOUBT, columns))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("ADD INDEX i (a) /*!80000 INVISIBLE */, ADD COLUMN b INT",
         ["ADD COLUMN b INT", "ADD INDEX i (a) /*!80000 INVISIBLE */"]),
        ("ADD (a INT /*!80000 INVISIBLE */, INDEX i (a))",
         ["ADD COLUMN a INT /*!80000 INVISIBLE */", "ADD INDEX i (a)"]),
    ],
)  # fmt: skip
def test_versioned_comments_stay_whole(action, expected):
    """A statement with an open comment is none."""
    assert rest(action, IN_DOUBT) == expected


OF_INDEXES = [
    "DROP INDEX i, RENAME INDEX j TO I",
    "RENAME INDEX i TO j, RENAME INDEX j TO k",
    "DROP INDEX i, ORDER BY a",
    "ADD UNIQUE KEY u (a) PARTITION BY KEY (a)",
]


@pytest.mark.parametrize("actions", OF_INDEXES)
def test_actions_that_change_no_names_of_columns(actions):
    """Nothing can show that the statement was executed: it counts as executed if that is possible."""
    for already in (IN_DOUBT, SHARED):
        assert rest(actions, already, ("a",)) == []
    with pytest.raises(SinkError, match="cannot be executed one by one"):
        rest(actions, ALREADY, ("a",))


DEPENDENT = [
    "CHANGE a b INT, CHANGE b a INT",
    "RENAME COLUMN a TO b, RENAME COLUMN b TO c, DROP INDEX i",
    "DROP a, ADD A BIGINT",
    "DROP b, CHANGE a b INT",
    "RENAME COLUMN a TO b, MODIFY a INT",
    "RENAME COLUMN a TO b, ALTER a SET INVISIBLE",
    "ADD c INT AFTER d, ADD D INT",
    "MODIFY c INT AFTER d, CHANGE e d INT",
    "ADD n INT PRIMARY KEY, DROP PRIMARY KEY",
    "CHANGE e n INT AUTO_INCREMENT, DROP PRIMARY KEY, ADD PRIMARY KEY (n)",
    "ADD c INT, ORDER BY a, b",
    "ADD c INT, DROP d PARTITION BY KEY (a, b)",
]


@pytest.mark.parametrize("actions", DEPENDENT)
def test_actions_that_depend_on_each_other(actions):
    """One by one they have another effect: the sink stops, with the next step."""
    for already in (ALREADY, IN_DOUBT, SHARED):
        with pytest.raises(SinkError, match="cannot be executed one by one: ALTER TABLE") as stopped:
            rest(actions, already, ("a", "b", "e"))
        assert "dmdelta binlog skip" in stopped.value.hint
        assert stopped.value.context["code"] == already.code


@pytest.mark.parametrize(
    ("actions", "columns", "executed"),
    [
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO c", ("b", "C"), True),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO c", ("a", "b"), False),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO c", ("a", "b", "c"), False),
        ("DROP b, CHANGE a b INT", ("b",), True),
        ("DROP b, CHANGE a b INT", ("A", "b"), False),
        ("DROP a, ADD a BIGINT, ADD c INT", ("a", "c"), True),
        ("DROP a, ADD a BIGINT, ADD c INT", ("a",), False),
        ("DROP a, ADD a BIGINT, DROP INDEX i", ("a",), False),
        ("ADD c INT, ORDER BY a, b", ("c",), True),
        ("DROP PRIMARY KEY, ADD n SERIAL, ADD PRIMARY KEY (n)", ("id", "n"), True),
    ],
)
def test_columns_that_show_that_it_was_executed(actions, columns, executed):
    """As a whole, before a crash or for another source table."""
    for already in (IN_DOUBT, SHARED):
        if executed:
            assert rest(actions, already, columns) == []
        else:
            with pytest.raises(SinkError):
                rest(actions, already, columns)
    with pytest.raises(SinkError):
        rest(actions, ALREADY, columns)


@pytest.mark.parametrize("code", [1049, 1146])
def test_a_table_that_the_target_lacks(code):
    """A later statement has dropped or renamed it."""
    for actions in ("ADD c INT, DROP d", *OF_INDEXES, *DEPENDENT):
        assert rest(actions, Already(code, in_doubt=True)) == []


@pytest.mark.parametrize("sql", ["CREATE INDEX i ON t (a)", "DROP DATABASE d", "RENAME TABLE t TO u, v TO t"])
def test_other_statements_have_no_actions(sql):
    """Nothing remains of them."""
    assert plan_rest(sql, ALREADY, ()) == Rest()
