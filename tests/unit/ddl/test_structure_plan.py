"""What tables have where: statements, and what information_schema tells for certain."""

from dmdelta.ddl.structure_plan import Catalog, LogAhead, plan_structures
from dmdelta.ddl.tracking import Origin, Structures, TrackedTable
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.statement import LoggedStatement

T = ("db", "t")


def at(offset):
    return Position(1, "binlog.000001", offset)


def table(*columns, name="t", key=("id",), charset="latin1", origin=Origin.INFORMATION_SCHEMA):
    found = tuple(column if isinstance(column, Column) else Column(column, "int") for column in columns)
    return TrackedTable(TableSchema("db", name, found, key), charset, origin)


def structures(*tables, **charsets):
    return Structures({tracked.schema.name: tracked for tracked in tables}, charsets)


def plan(known, statements, catalog=None, end=100):
    logged = [LoggedStatement(at(offset), "db", sql, "utf8mb4") for offset, sql in statements]
    return plan_structures(known, LogAhead(at(10), at(end), logged), catalog, mariadb=False)


def told(*tables, offset=200, keyed=(T,), **charsets):
    return Catalog(at(offset), structures(*tables, **charsets), frozenset(keyed))


def columns_of(change):
    return [column.name for column in change.tracked.schema.columns] if change.tracked else None


def changes_of(made):
    return [(change.position.offset, columns_of(change)) for change in made.changes if change.table]


def test_statements_are_followed_from_their_positions():
    """A batch with statements in its middle has several structures of a table."""
    made = plan(structures(table("id", "a")), [(20, "ALTER TABLE t ADD b INT"), (30, "ALTER TABLE t DROP a")])
    assert columns_of_table(made.before) == ["id", "a"]
    assert changes_of(made) == [(20, ["id", "a", "b"]), (30, ["id", "b"])]
    assert made.changes[0].tracked.origin is Origin.DDL
    assert columns_of_table(made.after) == ["id", "b"]


def columns_of_table(known):
    return [column.name for column in known.tables[T].schema.columns]


def test_what_is_behind_the_batch_is_not_followed():
    """Statements are read ahead of the batch only to know what information_schema is worth."""
    made = plan(structures(table("id")), [(20, "ALTER TABLE t ADD a INT"), (150, "ALTER TABLE t ADD b INT")])
    assert columns_of_table(made.after) == ["id", "a"]


def test_without_a_statement_information_schema_holds_from_the_begin():
    """Nothing changed between the batch's begin and the position of the reading."""
    made = plan(Structures(), [], told(table("id", "a"), db="latin1"))
    assert changes_of(made) == [(10, ["id", "a"])]
    assert made.after.charsets == {"db": "latin1"}
    assert made.before == made.after


def test_it_holds_behind_the_last_statement_only():
    """Of what a table was before its last statement it tells nothing."""
    present = told(table("id", "a", "b"))
    statements = [(20, "ALTER TABLE t ADD a INT"), (30, "ALTER TABLE t ADD b INT")]
    made = plan(Structures(), statements, present)
    assert changes_of(made) == [(30, ["id", "a", "b"])]
    assert made.before == Structures()
    later = plan(Structures(), [*statements, (150, "ALTER TABLE t ENGINE=InnoDB")], present)
    assert later.changes == ()


def test_it_wins_over_statements_that_led_elsewhere():
    """A difference is a surprise; what statements leave open is none."""
    statements = [(20, "ALTER TABLE t ADD b INT")]
    made = plan(structures(table("id")), statements, told(table("id", "c")))
    assert [change.surprise for change in made.changes if columns_of(change) == ["id", "c"]] == [True]
    text = Column("v", "varchar", length=5, charset="latin1", collation="latin1_bin", nullable=False)
    known = structures(table("id", Column("v", "varchar", length=5, charset="latin1")))
    made = plan(known, [], told(table("id", text)))
    assert [(change.surprise, change.tracked.schema.columns[1]) for change in made.changes] == [(False, text)]


def test_a_key_that_is_a_unique_index_is_no_surprise():
    """No statement tells that a unique index serves as a key: the table stays without one."""
    made = plan(structures(table("id", key=())), [], told(table("id", key=("id",)), keyed=()))
    assert made.changes == ()
    made = plan(structures(table("id", key=())), [], told(table("id", key=("id",))))
    assert made.after.tables[T].schema.primary_key == ("id",)


def test_what_somebody_gave_stays_until_a_statement():
    """`binlog-schema update` is for what the log does not tell, such as an ALTER with sql_log_bin=0."""
    known = structures(table("id", "given", origin=Origin.UPDATE))
    assert plan(known, [], told(table("id", "a"))).changes == ()
    made = plan(known, [(20, "ALTER TABLE t ADD b INT")], told(table("id", "a", "b")))
    assert changes_of(made)[-1] == (20, ["id", "a", "b"])


def test_a_statement_that_is_not_understood_leaves_nothing_known():
    """Until information_schema tells it, which it does if nothing came behind."""
    statements = [(20, "ALTER TABLE t FROBNICATE a")]
    made = plan(structures(table("id", "a")), statements)
    assert [(columns_of(change), change.lost) for change in made.changes] == [(None, True)]
    made = plan(structures(table("id", "a")), statements, told(table("id", "z")))
    assert [columns_of(change) for change in made.changes] == [None, ["id", "z"]]
    dropped = plan(structures(table("id", "a")), [(20, "DROP TABLE t")])
    assert [change.lost for change in dropped.changes] == [False]


def test_creations_on_condition_change_nothing_for_certain():
    """CREATE … IF NOT EXISTS stands in the log whether or not it did anything."""
    statements = [(15, "CREATE DATABASE IF NOT EXISTS db"), (20, "CREATE TABLE IF NOT EXISTS t (other INT)")]
    made = plan(Structures(), statements, told(table("id"), db="latin1"))
    assert columns_of_table(made.after) == ["id"]
    assert made.after.charsets == {"db": "latin1"}
    assert plan(Structures(), statements).after.charsets == {}


def test_databases_lend_their_character_set():
    """A server's own is what CREATE DATABASE falls back on; a database takes its tables along."""
    statements = [
        (15, "CREATE DATABASE db"),
        (20, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(3))"),
        (25, "ALTER DATABASE db CHARACTER SET latin1"),
        (30, "CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(3))"),
        (35, "ALTER TABLE t ADD w VARCHAR(3)"),
    ]
    after = plan(Structures(), statements).after
    lengths = {name: [column.length for column in tracked.schema.columns] for name, tracked in after.tables.items()}
    assert lengths == {T: [0, 12, 12], ("db", "u"): [0, 3]}
    assert plan(after, [(40, "DROP DATABASE db")]).after == Structures()


def test_collations_that_a_conversion_changes_are_not_kept():
    """Nobody tells them until information_schema is read."""
    known = structures(table("id", Column("v", "text", charset="latin1", collation="latin1_bin")))
    after = plan(known, [(20, "ALTER TABLE t CONVERT TO CHARACTER SET latin1 COLLATE latin1_german1_ci")]).after
    assert after.tables[T].schema.columns[1].collation is None


def test_a_reading_from_before_the_batch_tells_nothing():
    """What came between it and the batch is not at hand."""
    assert plan(Structures(), [], told(table("id"), offset=5)).changes == ()


def test_the_default_character_set_holds_longer_than_the_columns():
    """An ALTER that leaves it alone does not make what information_schema says of it less certain."""
    known = structures(table("id", charset=None))
    statements = [(20, "ALTER TABLE t ADD v VARCHAR(3)"), (30, "ALTER TABLE t ADD w VARCHAR(3)")]
    text = [Column(name, "varchar", length=3, charset="latin1") for name in ("v", "w")]
    made = plan(known, statements, told(table("id", *text)))
    assert made.before.tables[T].charset == "latin1"
    assert [change.tracked.schema.columns[-1] for change in made.changes[1:3]] == text
    assert not any(change.surprise for change in made.changes)
    converted = [(20, "ALTER TABLE t ADD v VARCHAR(3)"), (30, "ALTER TABLE t DEFAULT CHARSET latin1")]
    assert plan(known, converted, told(table("id", text[0]))).before.tables[T].charset is None
