"""What filters leave of a statement for the target: the same as for silver, action by action."""

import pytest

from dmdelta.errors import SchemaError
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import Action, BlockAllowList, EventFilter, SourceRules
from dmdelta.rules.filters import Rule
from dmdelta.sink.plan.ddl import plan_statement
from dmdelta.sink.plan.target_statement import StatementContext

T = TableSchema(
    "d",
    "t",
    (
        Column("id", "int", nullable=False),
        Column("n", "bigint"),
        Column("p", "decimal", precision=9, scale=2),
        Column("s", "varchar", length=80, charset="utf8mb4"),
    ),
    ("id",),
)


def texts(sql, event, action, *, structure=lambda _: T, more=()):
    rules = (Rule("r", "d", "t", (event,), (), action), *more)
    allowed = SourceRules("s", BlockAllowList(do_dbs=("d",)), events=EventFilter(rules))
    return [
        one.sql
        for one in plan_statement(sql, "d", StatementContext(allowed, lambda _: (), lambda _: (), structure=structure))
    ]


def no_structure(name):
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("event", "sql", "left"),
    [
        ("drop column", "ALTER TABLE t DROP COLUMN s, ADD COLUMN b INT", "ADD COLUMN b INT"),
        ("add column", "ALTER TABLE t ADD a INT, DROP s, ADD b INT, DROP p", "DROP s, DROP p"),
        ("rename table", "ALTER TABLE t ADD a INT, RENAME TO u", "ADD a INT"),
        ("add column", "ALTER TABLE t ADD a INT, RENAME TO u", "RENAME TO `d`.`u`"),
        ("add column", "ALTER TABLE t DROP s, DROP p", "DROP s, DROP p"),
        ("drop column", "ALTER TABLE t DROP s, DROP p", None),
        ("add column", "ALTER TABLE t RENAME TO _t_x, ADD a INT", "RENAME TO `d`.`_t_x`"),
    ],
)
def test_ignored_actions_are_left_out(event, sql, left):
    """The others are executed. No structure is looked up for them."""
    expected = [f"ALTER TABLE `d`.`t` {left}"] if left else []
    assert texts(sql, event, Action.IGNORE, structure=no_structure) == expected


@pytest.mark.parametrize(
    ("event", "action"),
    [
        ("value range decrease", "MODIFY n INT"),
        ("precision decrease", "MODIFY p DECIMAL(5,2)"),
        ("modify charset", "MODIFY s VARCHAR(80) CHARACTER SET latin1"),
        ("modify collation", "MODIFY s VARCHAR(80) COLLATE utf8mb4_bin"),
        ("modify columns order", "MODIFY n BIGINT FIRST"),
        ("rename column", "CHANGE n m BIGINT"),
        ("modify column", "MODIFY n VARCHAR(9)"),
        ("alter table", "MODIFY n BIGINT COMMENT 'x'"),
    ],
)
def test_events_that_depend_on_the_structure(event, action):
    """A rule for the event ignores or stops the statement; a rule for another event lets it pass."""
    sql, executed = f"ALTER TABLE t {action}", [f"ALTER TABLE `d`.`t` {action}"]
    assert texts(sql, event, Action.IGNORE) == []
    with pytest.raises(SchemaError, match=r"a filter of the spec stops a statement on d\.t"):
        texts(sql, event, Action.ERROR)
    for other in {"modify column", "value range decrease"} - {event}:
        assert texts(sql, other, Action.IGNORE) == executed
    assert texts(sql, "modify column", Action.IGNORE, structure=lambda _: None) == [], "an unknown structure"


def test_an_error_stops_the_whole_statement():
    """Also if another rule ignores the other actions."""
    ignores = Rule("i", "d", "t", ("add column",), (), Action.IGNORE)
    for sql in ("ALTER TABLE t DROP s, ADD a INT", "ALTER TABLE t ADD a INT, DROP s, ENGINE = InnoDB"):
        with pytest.raises(SchemaError, match=r"a filter of the spec stops a statement on d\.t"):
            texts(sql, "drop column", Action.ERROR, more=(ignores,))


def test_a_statement_that_cannot_be_split():
    """Its commas separate names: it cannot be executed without the ignored action."""
    sql = "ALTER TABLE t DROP s, ADD a INT, ORDER BY n, id"
    with pytest.raises(SchemaError, match="a filter of the spec stops"):
        texts(sql, "drop column", Action.IGNORE)
    assert texts(sql, "add index", Action.IGNORE) == ["ALTER TABLE `d`.`t` DROP s, ADD a INT, ORDER BY n, id"]


def test_rows_from_outside_whose_move_is_ignored():
    """The filters of the table of the task decide, on the action that concerns it."""
    sql = "ALTER TABLE x.t ADD a INT, RENAME TO d.t"
    assert texts(sql, "rename table", Action.IGNORE, structure=no_structure) == []
    with pytest.raises(SchemaError, match=r"between d\.t and x\.t"):
        texts(sql, "add column", Action.IGNORE, structure=no_structure)
    sql = "ALTER TABLE t DROP s, EXCHANGE PARTITION p WITH TABLE x.u"
    with pytest.raises(SchemaError, match=r"between d\.t and x\.u"):
        texts(sql, "rename table", Action.IGNORE)
