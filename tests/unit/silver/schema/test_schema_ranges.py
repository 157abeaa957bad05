"""Cutting a range where the structure changes."""

from dataclasses import replace

import pytest

from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Truncated
from dmdelta.errors import UnknownSchema
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES, Action, EventFilter
from dmdelta.rules.filters import Rule
from dmdelta.rules.operators import Operator, Verb
from dmdelta.silver.schema.ddl_effects import TableLog
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents
from dmdelta.silver.schema.schema_ranges import known_inside, known_schema, plan_schema_ranges

NAME = ("db", "t")
ID = Column("id", "int", nullable=False)
OLD = TableSchema("db", "t", (ID,), ("id",))
NEW = TableSchema("db", "t", (ID, Column("c", "int")), ("id",))


def at(offset):
    return Position(1, "b.000001", offset)


def told(offset, schema):
    return StructureEvent(at(offset), -1, Op.SCHEMA, schema.to_json())


def ddl(offset, sql):
    return StructureEvent(at(offset), 0, Op.DDL, sql)


def pieces(known, structure, **facts):
    return plan_schema_ranges(TableLog(NAME, "mysql", structure, **facts), known, at(4), at(99))


def test_nothing_changes():
    """Without statements a range is one piece."""
    (piece,) = pieces(None, [told(10, OLD)])
    assert (piece.begin, piece.end, piece.schema, piece.then) == (at(4), at(99), OLD, None)


def test_add_column():
    """A statement cuts the range where it stands; the types behind it are those that the log tells."""
    first, second = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c INT"), told(30, NEW)])
    assert (first.end, first.schema, second.begin, second.schema) == (at(20), OLD, at(20), NEW)
    (effect,) = first.then.effects
    assert isinstance(effect, Altered)


@pytest.mark.parametrize(
    ("action", "statement", "names"),
    [
        ("Ignore", "ALTER TABLE t DROP c, ADD d INT", ["id", "c", "d"]),
        ("Ignore", "ALTER TABLE t DROP c", None),
        ("Error", "ALTER TABLE t DROP c, ADD d INT", "a filter of the spec says Error"),
    ],
)
def test_a_filter_leaves_actions_out(action, statement, names):
    """Of a statement of several actions silver follows those that are left; the structure is the source's all the same."""
    rules = replace(NO_RULES, events=EventFilter((Rule("f", "db", None, ("drop column",), (), Action(action)),)))
    first, *more = pieces(NEW, [ddl(20, statement)], rules=rules)
    after = (more or [first])[-1].schema
    assert "c" not in [column.name for column in after.columns]
    if names is None:
        assert not more
    elif action == "Error":
        assert first.then.refused == names
    else:
        assert [column.name for column in first.then.effects[0].after.columns] == names
        assert first.then.event.text == statement


def test_what_a_piece_holds_by_the_places_of_the_events():
    """Pieces before the first and behind the last event are empty; one that alone has events has all of them."""
    cut = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c INT"), ddl(40, "ALTER TABLE t DROP c")])
    events = TableEvents(*NAME, {Op.INSERT: 3}, at(20), at(35))
    before, inside, behind = (known_inside(piece, cut, events) for piece in cut)
    assert (before.row_count, behind.row_count) == (0, 0)
    assert inside is events
    over_two = replace(events, last=at(40))
    assert [known_inside(piece, cut, over_two) is None for piece in cut] == [False, True, True]


def test_columns_before_any_row():
    """Two statements without a row between them and after them are both known from their text."""
    *_, last = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c INT"), ddl(30, "ALTER TABLE t ADD d INT AFTER c")])
    assert [column.name for column in last.schema.columns] == ["id", "c", "d"]


def test_a_statement_that_was_followed():
    """What silver has followed before only moves the structure on."""
    (piece,) = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c INT")], ddl_applied_to=at(20))
    assert [column.name for column in piece.schema.columns] == ["id", "c"]


def test_structure_that_no_statement_explains():
    """The log is believed: silver becomes what the table map says."""
    first, second = pieces(OLD, [told(30, NEW)])
    assert first.then.surprise
    assert second.schema == NEW


@pytest.mark.parametrize(
    ("sql", "kinds", "schema"),
    [
        ("TRUNCATE t", [Truncated], OLD),
        ("DROP TABLE t, u", [Dropped], None),
        ("DROP DATABASE db", [Dropped], None),
        ("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, c INT)", [Dropped, Created], NEW),
    ],
)
def test_tables_that_come_and_go(sql, kinds, schema):
    """The structure is gone with the table, and there with the next one."""
    first, second = pieces(OLD, [ddl(20, sql)])
    assert [type(effect) for effect in first.then.effects] == kinds
    assert (second.schema and [column.name for column in second.schema.columns]) == (
        schema and [column.name for column in schema.columns]
    )


def test_another_table_makes_no_cut():
    """A statement that touches the table's columns not at all is no boundary."""
    (piece,) = pieces(OLD, [ddl(20, "ALTER TABLE t ADD INDEX i (id)"), ddl(30, "ALTER TABLE u DROP id")])
    assert piece.schema == OLD


def test_a_copied_structure():
    """CREATE … LIKE takes the other table's structure as it was then."""
    other = TableSchema("db", "u", NEW.columns, NEW.primary_key)
    asked = []
    *_, last = pieces(None, [ddl(20, "CREATE TABLE t LIKE u")], other=lambda *which: asked.append(which) or other)
    assert last.schema == NEW
    assert asked == [(("db", "u"), at(20))]


@pytest.mark.parametrize(
    ("sql", "source"),
    [
        ("RENAME TABLE u TO t", "u"),
        ("ALTER TABLE u RENAME TO t", "u"),
        ("ALTER TABLE u DROP c, RENAME TO t", "u"),
        ("RENAME TABLE t TO tmp, u TO t, tmp TO u", "u"),
        ("RENAME TABLE u TO tmp, t TO u, tmp TO t", "u"),
    ],
)
def test_a_structure_that_comes_by_rename(sql, source):
    """A table takes over the structure that the other one has behind the statement, by way of other names or not."""
    other = {("db", source): TableSchema("db", source, NEW.columns, NEW.primary_key)}
    *_, last = pieces(None, [ddl(20, sql)], other=lambda name, _: other.get(name))
    assert last.schema == (OLD if "DROP" in sql else NEW)


@pytest.mark.parametrize(
    ("operator", "columns"),
    [
        (Operator(Verb.SKIP), []),
        (Operator(Verb.REPLACE, ("ALTER TABLE t ADD c CHAR(36)",)), [["id", "c"]]),
        (Operator(Verb.INJECT, ("ALTER TABLE t ADD d INT",)), [["id", "d"], ["id", "d", "c"]]),
    ],
)
def test_operators(operator, columns):
    """Silver follows what was decided; the structure of the rows is what the source made of it."""
    rules = replace(NO_RULES, operators={at(20): operator})
    *first, last = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c CHAR(36) DEFAULT (UUID())")], rules=rules)
    assert [
        [column.name for column in effect.after.columns] for piece in first for effect in piece.then.effects
    ] == columns
    assert [column.name for column in last.schema.columns] == ["id", "c"]


def test_unknown_structure():
    """Rows without a structure cannot be applied."""
    (piece,) = pieces(None, [])
    with pytest.raises(UnknownSchema, match=r"db\.t"):
        known_schema(piece, NAME)
