"""Schema ranges: splitting a range where the structure changes."""

from dataclasses import replace

import pytest

from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Moved, Truncated
from dmdelta.errors import UnknownSchema
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES, Action, EventFilter, OnlineDdl
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


def recorded(offset, schema):
    return StructureEvent(at(offset), -1, Op.SCHEMA, schema.to_json())


def ddl(offset, sql):
    return StructureEvent(at(offset), 0, Op.DDL, sql)


def pieces(known, structure, **facts):
    return plan_schema_ranges(TableLog(NAME, "mysql", structure, **facts), known, at(4), at(99))


def test_nothing_changes():
    """Without statements a range is one schema range."""
    (piece,) = pieces(None, [recorded(10, OLD)])
    assert (piece.begin, piece.end, piece.schema, piece.then) == (at(4), at(99), OLD, None)


def test_add_column():
    """A statement splits the range at its position; the structure after it has the types in the log."""
    first, second = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c INT"), recorded(30, NEW)])
    assert (first.end, first.schema, second.begin, second.schema) == (at(20), OLD, at(20), NEW)
    (effect,) = first.then.effects
    assert isinstance(effect, Altered)


@pytest.mark.parametrize(
    ("action", "statement", "names"),
    [
        ("Ignore", "ALTER TABLE t DROP c, ADD d INT", ["id", "c", "d"]),
        ("Ignore", "ALTER TABLE t DROP c", None),
        ("Error", "ALTER TABLE t DROP c, ADD d INT", "a filter of the spec has the action Error"),
    ],
)
def test_a_filter_ignores_actions(action, statement, names):
    """Silver applies the actions of a statement that no filter ignores; the structure is that of the source."""
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


def test_events_of_a_schema_range():
    """Schema ranges before the first and after the last event are empty; the only one with events has all of them."""
    parts = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c INT"), ddl(40, "ALTER TABLE t DROP c")])
    events = TableEvents(*NAME, {Op.INSERT: 3}, at(20), at(35))
    before, inside, after = (known_inside(piece, parts, events) for piece in parts)
    assert (before.row_count, after.row_count) == (0, 0)
    assert inside is events
    over_two = replace(events, last=at(40))
    assert [known_inside(piece, parts, over_two) is None for piece in parts] == [False, True, True]


def test_structure_without_rows():
    """The structure after statements without row changes follows from their text."""
    *_, last = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c INT"), ddl(30, "ALTER TABLE t ADD d INT AFTER c")])
    assert [column.name for column in last.schema.columns] == ["id", "c", "d"]


def test_an_applied_statement():
    """A statement that silver has applied changes the structure without splitting the range."""
    (piece,) = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c INT")], ddl_applied_to=at(20))
    assert [column.name for column in piece.schema.columns] == ["id", "c"]


def of(column):
    return TableSchema("db", "t", (ID, column), ("id",))


@pytest.mark.parametrize(
    ("before", "first", "second", "logged", "types"),
    [
        (
            Column("c", "decimal", precision=10, scale=4),
            "DECIMAL(10,2)",
            "DECIMAL(10,4)",
            Column("c", "decimal", precision=10, scale=4),
            [Column("c", "decimal", precision=10, scale=2), Column("c", "decimal", precision=10, scale=4)],
        ),
        (
            Column("c", "datetime", precision=6),
            "DATETIME",
            "DATETIME(6)",
            Column("c", "datetime", precision=6),
            [Column("c", "datetime"), Column("c", "datetime", precision=6)],
        ),
        (
            Column("c", "enum", members=("a", "b"), charset="latin1"),
            "ENUM('a')",
            "ENUM('a','b')",
            Column("c", "enum", members=("a", "b"), charset="latin1"),
            [Column("c", "enum", members=("a",)), Column("c", "enum", members=("a", "b"), charset="latin1")],
        ),
        (
            Column("c", "varchar", length=80, charset="utf8mb4"),
            "VARCHAR(2)",
            "VARCHAR(20)",
            Column("c", "varchar", length=80, charset="utf8mb4"),
            [Column("c", "varchar", length=2), Column("c", "varchar", length=80, charset="utf8mb4")],
        ),
        (
            Column("c", "text", charset="utf8mb4"),
            "HYPERLINK",
            "TEXT",
            Column("c", "text", charset="utf8mb4"),
            [Column("c", "hyperlink"), Column("c", "text", charset="utf8mb4")],
        ),
    ],
)
def test_the_log_behind_another_statement_does_not_replace_a_type(before, first, second, logged, types):
    """The second statement sets the type in the log; the first one converts the values to its own."""
    statements = [ddl(20, f"ALTER TABLE t MODIFY c {first}"), ddl(30, f"ALTER TABLE t MODIFY c {second}")]
    parts = pieces(of(before), [*statements, recorded(40, of(logged))])
    assert [effect.after.columns[1] for piece in parts[:-1] for effect in piece.then.effects] == types


@pytest.mark.parametrize(
    ("definition", "logged"),
    [
        ("VARCHAR(9)", Column("c", "varchar", length=36, charset="utf8mb4", collation="utf8mb4_bin")),
        ("TEXT CHARSET latin1", Column("c", "text", charset="latin1", collation="latin1_bin")),
        ("SET('a')", Column("c", "set", members=("a",), charset="latin1")),
        ("HYPERLINK", Column("c", "binary", length=16)),
    ],
)
def test_the_log_behind_another_statement_completes_a_type(definition, logged):
    """It determines what the statement leaves open."""
    after = TableSchema("db", "t", (*of(logged).columns, Column("d", "int")), ("id",))
    statements = [ddl(20, f"ALTER TABLE t ADD c {definition}"), ddl(30, "ALTER TABLE t ADD d INT")]
    first, *_ = pieces(OLD, [*statements, recorded(40, after)])
    assert first.then.effects[0].after.columns[1] == logged


def test_a_structure_without_a_statement():
    """The structure in the log takes precedence over that of the statements."""
    first, second = pieces(OLD, [recorded(30, NEW)])
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
def test_dropped_and_created_tables(sql, kinds, schema):
    """A dropped table has no structure; a created one has that of its statement."""
    first, second = pieces(OLD, [ddl(20, sql)])
    assert [type(effect) for effect in first.then.effects] == kinds
    assert (second.schema and [column.name for column in second.schema.columns]) == (
        schema and [column.name for column in schema.columns]
    )


def test_a_statement_without_effect():
    """A statement that does not change the table's columns does not split the range."""
    (piece,) = pieces(OLD, [ddl(20, "ALTER TABLE t ADD INDEX i (id)"), ddl(30, "ALTER TABLE u DROP id")])
    assert piece.schema == OLD


def test_a_copied_structure():
    """CREATE … LIKE copies the other table's structure at the statement."""
    other = TableSchema("db", "u", NEW.columns, NEW.primary_key)
    lookups = []
    *_, last = pieces(None, [ddl(20, "CREATE TABLE t LIKE u")], other=lambda *which: lookups.append(which) or other)
    assert last.schema == NEW
    assert lookups == [(("db", "u"), at(20))]


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
def test_structure_after_a_rename(sql, source):
    """A renamed table has the structure of the other table after the statement, also through temporary names."""
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
    """Silver applies the operator's statements; the structure of the rows is that of the source's statement."""
    rules = replace(NO_RULES, operators={at(20): operator})
    *first, last = pieces(OLD, [ddl(20, "ALTER TABLE t ADD c CHAR(36) DEFAULT (UUID())")], rules=rules)
    assert [
        [column.name for column in effect.after.columns] for piece in first for effect in piece.then.effects
    ] == columns
    assert [column.name for column in last.schema.columns] == ["id", "c"]


@pytest.mark.parametrize("known", [OLD, None])
def test_rows_that_the_log_does_not_contain(known):
    """Silver refuses a statement that moves rows into a table, even if the table is new; the structure stays."""
    first, second = pieces(known, [ddl(20, "ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t")])
    assert "EXCHANGE PARTITION moves rows" in first.then.refused
    assert [type(effect) for effect in first.then.effects] == [Moved]
    assert second.schema == known


def test_a_filter_ignores_moved_rows():
    """Silver continues with the rows that it has."""
    rule = Rule("f", "db", None, ("exchange table partition",), (), Action.IGNORE)
    statement = ddl(20, "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u")
    (piece,) = pieces(OLD, [statement], rules=replace(NO_RULES, events=EventFilter((rule,))))
    assert piece.then is None


def test_unknown_structure():
    """Rows without a structure cannot be applied."""
    (piece,) = pieces(None, [])
    with pytest.raises(UnknownSchema, match=r"db\.t"):
        known_schema(piece, NAME)


def test_a_cut_over_from_a_shadow_table_of_another_name():
    """Its statements belong to the table that the pattern captures, so silver does not know them."""
    rules = replace(NO_RULES, online=OnlineDdl((r"^_(.+)_new$",), (r"^_(.+)_old$",)))
    first, _ = pieces(OLD, [ddl(20, "RENAME TABLE t TO _t_old, __t_new TO t")], rules=rules)
    assert first.then.refused.endswith("shadow-table-rules captures db._t as its real table")
