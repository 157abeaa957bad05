"""Which of the shards' statements the target executes, and when: two sources, a real target, no Spark."""

from dataclasses import dataclass, field

import pytest

from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.errors import SchemaError
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import Route
from dmdelta.sharding import Action, Coordination, Mode
from dmdelta.sink.plan.shard_columns import holds_all
from dmdelta.sink.read.slices import Statement
from dmdelta.sink.shards import Outcome, ShardEffects, ShardLog, SinkShards
from dmdelta.sink.target.tables import Tables
from tests.support.sinking import target_of

BEGIN = (Column("id", "int", nullable=False), Column("v", "int"), Column("w", "varchar", length=40))
WAITS, DONE, OWN = Outcome.WAITS, Outcome.DONE, Outcome.OWN


class ToOne:
    """Rules that send every table to one."""

    def __init__(self, database):
        self.target = Route(database, "t", merged=True)

    def wanted(self, schema, table):
        return True

    def route(self, schema, table):
        return self.target


@dataclass
class Source:
    """A source's shards: each is a table `t` in a database of its own."""

    name: str
    coordination: Coordination
    database: str
    tables: Tables
    sources: int = 2
    structures: dict = field(default_factory=dict)
    offset: int = 100

    def __post_init__(self):
        self.shards = SinkShards(
            self.name, ToOne(self.database), self.coordination, self.sources, ShardLog(self.structure, self.effects), {}
        )

    def structure(self, name, at):
        return self.structures.get(name)

    def effects(self, name, statement):
        before = self.structures.get(name)
        effects = tuple(statement_effects(statement.text, name[0], lambda _: before, mariadb=False))
        last = effects[-1] if effects else None
        after = before if last is None else getattr(last, "after", getattr(last, "schema", None))
        return ShardEffects(effects, after)

    def open(self, *shards):
        for shard in shards:
            self.structures.setdefault((shard, "t"), TableSchema(shard, "t", BEGIN, ("id",)))
        self.shards.open(list(self.structures), Position(1, "binlog.000001", 4), {})

    def statement(self, shard, sql, at=None):
        self.offset += 100
        return Statement(at or Position(1, "binlog.000001", self.offset), shard, ((shard, "t"),), sql)

    def follow(self, statement):
        name = statement.tables[0]
        text = statement.text.replace(" t ", f" `{self.database}`.`t` ")
        outcome = self.shards.follow(name, statement, [text], self.tables)
        if outcome is not WAITS:
            self.structures[name] = self.effects(name, statement).after
        return outcome


@pytest.fixture
def mode():
    return Mode.PESSIMISTIC


@pytest.fixture(params=["mariadb", pytest.param("mysql80_too", marks=pytest.mark.long)])
def sides(request, mode):
    """Two sources, and a function that reads the names of the target's columns, or another part: 4 is the default."""
    server = request.getfixturevalue(request.param)
    database = server.fresh_database("merged")
    server.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT, w VARCHAR(40))", database=database)
    server.execute("INSERT INTO t VALUES (1, 1, 'a')", database=database)
    coordination = Coordination(mode, holds_all)
    tables = Tables(target_of(server))
    first, second = (Source(name, coordination, database, tables) for name in ("s1", "s2"))

    def columns(part=0):
        return [row[part] for row in server.query("SHOW COLUMNS FROM t", database)]

    yield first, second, columns
    tables.close()


def held(*statements):
    return {one.tables[0]: one.position for one in statements}


def test_a_statement_is_executed_once_when_all_have_reached_it(sides):
    """Each shard waits, the last one executes the statement, the others are released and have nothing left to do."""
    first, second, columns = sides
    first.open("a", "b")
    second.open("c", "d")
    sql = "ALTER TABLE t ADD x INT DEFAULT 5"
    waiting = [first.statement("a", sql), first.statement("b", sql), second.statement("c", sql)]
    assert [side.follow(one) for side, one in zip((first, first, second), waiting, strict=True)] == [WAITS] * 3
    assert columns() == ["id", "v", "w"]
    (lock,) = first.coordination.locks()
    assert (len(lock.lock.ready), len(lock.lock.remain), lock.statements) == (3, 1, (sql,))
    assert first.shards.released(held(*waiting[:2])) == []
    assert second.follow(second.statement("d", sql)) is DONE
    assert columns() == ["id", "v", "w", "x"]
    assert set(first.shards.released(held(*waiting[:2]))) == {("a", "t"), ("b", "t")}
    assert [first.follow(one) for one in waiting[:2]] == [DONE, DONE]
    assert second.follow(waiting[2]) is DONE
    assert columns() == ["id", "v", "w", "x"]
    assert first.coordination.locks() == []


def test_nothing_is_decided_before_all_have_opened(sides):
    """A shard waits while another source has not opened: it may have shards."""
    first, second, columns = sides
    first.open("a")
    statement = first.statement("a", "ALTER TABLE t DROP w")
    assert first.follow(statement) is WAITS
    assert first.shards.released(held(statement)) == []
    second.open("c")
    assert first.shards.released(held(statement)) == [("a", "t")]
    assert first.follow(statement) is WAITS
    assert second.follow(second.statement("c", "ALTER TABLE t DROP w")) is DONE
    assert first.follow(statement) is DONE
    assert columns() == ["id", "v"]


@pytest.mark.parametrize(
    ("sql", "executed"),
    [
        ("ALTER TABLE t ADD x INT NOT NULL DEFAULT 5", ["id", "v", "w", "x"]),
        ("ALTER TABLE t DROP w", ["id", "v"]),
        ("ALTER TABLE t CHANGE w label VARCHAR(40)", ["id", "v", "label"]),
        ("ALTER TABLE t MODIFY v BIGINT", ["id", "v", "w"]),
        ("ALTER TABLE t ADD x INT, DROP w, CHANGE v n BIGINT", ["id", "n", "x"]),
    ],
)
def test_a_crash_after_the_statement(sides, sql, executed):
    """The target has executed it, but no shard has continued: all are released, and it is not executed again."""
    first, second, columns = sides
    first.open("a")
    second.open("c")
    statements = first.statement("a", sql), second.statement("c", sql)
    assert first.follow(statements[0]) is WAITS
    structures = dict(second.structures)
    assert second.follow(statements[1]) is DONE
    second.structures.clear()
    second.structures.update(structures)
    again = Coordination(Mode.PESSIMISTIC)
    later = [Source(one.name, again, one.database, one.tables, structures=one.structures) for one in (first, second)]
    for one in later:
        one.open()
    pairs = list(zip(later, statements, strict=True))
    waiting = [(one, statement) for one, statement in pairs if one.follow(statement) is WAITS]
    assert len(waiting) <= 1
    assert [one.follow(statement) for one, statement in waiting] == [DONE] * len(waiting)
    assert sorted(columns()) == sorted(executed)


def test_statements_without_agreement(sides):
    """An index and a longer text are executed at once; dropped shards are not waited for."""
    first, second, columns = sides
    first.open("a", "b")
    second.open("c")
    for sql in ("ALTER TABLE t ADD INDEX i (v)", "ALTER TABLE t MODIFY w VARCHAR(80)"):
        assert first.follow(first.statement("a", sql)) is OWN
    statements = first.statement("a", "ALTER TABLE t ADD x INT"), second.statement("c", "ALTER TABLE t ADD x INT")
    assert [first.follow(statements[0]), second.follow(statements[1])] == [WAITS, WAITS]
    assert first.follow(first.statement("b", "DROP TABLE t")) is OWN
    assert first.follow(statements[0]) is DONE
    assert columns() == ["id", "v", "w", "x"]


def test_a_dropped_shard_after_a_restart(sides):
    """The checkpoint may still have it: no shard waits for a table that neither the log nor the catalog has."""
    first, second, columns = sides
    first.open("a")
    first.structures["gone", "t"] = None
    first.shards.open(list(first.structures), Position(1, "binlog.000001", 4), {})
    second.open()
    assert first.follow(first.statement("a", "ALTER TABLE t ADD x INT")) is DONE
    assert columns() == ["id", "v", "w", "x"]


def test_a_shard_that_an_ad_hoc_snapshot_brings(sides):
    """Its log has no rows yet: its structure is that of the snapshot's rows, and the other shards do not wait."""
    first, second, columns = sides
    first.open("a")
    second.open()
    second.structures["late", "t"] = TableSchema("late", "t", (*BEGIN, Column("x", "int")), ("id",))
    assert not second.shards.is_known(("late", "t"))
    second.shards.joins_at(("late", "t"), Position(1, "binlog.000001", 100))
    assert second.shards.is_known(("late", "t"))
    assert first.follow(first.statement("a", "ALTER TABLE t ADD x INT")) is DONE
    assert columns() == ["id", "v", "w", "x"]


def test_an_operator_override(sides):
    """`exec` executes an ADD for one shard; a RENAME still waits, because the others' rows have the old name."""
    first, second, columns = sides
    first.open("a")
    second.open("c")
    target, owner = (first.database, "t"), "s1-`a`.`t`"
    added = first.statement("a", "ALTER TABLE t ADD x INT")
    assert first.follow(added) is WAITS
    assert first.coordination.decide(target, Action.EXEC, owner)
    assert first.shards.released(held(added)) == [("a", "t")]
    assert first.follow(added) is DONE
    assert columns() == ["id", "v", "w", "x"]
    renamed = first.statement("a", "ALTER TABLE t CHANGE w label VARCHAR(40)")
    assert first.follow(renamed) is WAITS
    assert not first.coordination.decide(target, Action.EXEC, owner)
    assert first.shards.released(held(renamed)) == []


def test_a_shard_that_begins_with_the_column(sides):
    """A created table waits for the others; then the target has its columns, and its CREATE TABLE changes nothing."""
    first, second, columns = sides
    first.open("a")
    second.open()
    created = second.statement("c", "CREATE TABLE t (id INT PRIMARY KEY, v INT, w VARCHAR(40), x DECIMAL(9,2))")
    assert second.follow(created) is WAITS
    assert first.follow(first.statement("a", "ALTER TABLE t ADD x DECIMAL(9,2)")) is DONE
    assert second.follow(created) is OWN
    assert columns() == ["id", "v", "w", "x"]


def test_a_reused_name(sides):
    """Afterwards the columns look unchanged: the sink stops, with the next step."""
    first, second, _ = sides
    first.open("a")
    second.open("c")
    with pytest.raises(SchemaError, match="reuses the column name w") as refused:
        first.follow(first.statement("a", "ALTER TABLE t DROP w, ADD w INT"))
    assert "binlog replace" in refused.value.hint


@pytest.mark.parametrize("mode", [Mode.OPTIMISTIC])
def test_optimistic(sides):
    """A column is added with the first shard, dropped with the last; a type is widened at once; a rename waits."""
    first, second, columns = sides
    first.open("a", "b")
    second.open("c")

    def follow(side, shard, sql):
        return side.follow(side.statement(shard, sql))

    assert follow(first, "a", "ALTER TABLE t ADD x INT") is DONE
    assert columns() == ["id", "v", "w", "x"]
    assert follow(second, "c", "ALTER TABLE t ADD x BIGINT") is DONE
    assert follow(first, "b", "ALTER TABLE t ADD y INT, ADD x BIGINT") is DONE
    assert columns() == ["id", "v", "w", "x", "y"]
    assert follow(first, "a", "ALTER TABLE t DROP w, ADD y INT") is DONE
    assert follow(first, "b", "ALTER TABLE t DROP w") is DONE
    assert columns() == ["id", "v", "w", "x", "y"]
    assert follow(second, "c", "ALTER TABLE t DROP w") is DONE
    assert columns() == ["id", "v", "x", "y"]
    assert follow(first, "a", "ALTER TABLE t CHANGE v n INT") is WAITS


@pytest.mark.parametrize("mode", [Mode.OPTIMISTIC])
def test_rows_get_the_default_of_a_created_shard(sides):
    """The column's default is that of its CREATE TABLE, for the others' rows, as their own ALTER TABLE gives it."""
    first, second, columns = sides
    first.open("a")
    second.open()
    created = "CREATE TABLE t (id INT PRIMARY KEY, v INT, w VARCHAR(40), x INT DEFAULT 7)"
    assert second.follow(second.statement("c", created)) is DONE
    assert first.follow(first.statement("a", "ALTER TABLE t ADD x INT DEFAULT 7")) is DONE
    assert (columns(), columns(4)) == (["id", "v", "w", "x"], [None, None, None, "7"])
