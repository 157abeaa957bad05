"""Tables' structures: derived from statements, and from what information_schema determines with certainty."""

import pytest

from dmdelta.ddl.tracking.structure_plan import Catalog, LogAhead, plan_structures
from dmdelta.ddl.tracking.tracked_structures import Origin, Structures, TrackedTable
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.statement import LoggedStatement

T = ("db", "t")


def at(offset):
    return Position(1, "binlog.000001", offset)


def table(*columns, name="t", key=("id",), charset="latin1", origin=Origin.INFORMATION_SCHEMA, unique=""):
    found = tuple(column if isinstance(column, Column) else Column(column, "int") for column in columns)
    return TrackedTable(TableSchema("db", name, found, key, unique), charset, origin)


def structures(*tables, **charsets):
    return Structures({tracked.schema.name: tracked for tracked in tables}, charsets)


def plan(known, statements, catalog=None, end=100):
    logged = [LoggedStatement(at(offset), "db", sql, "utf8mb4") for offset, sql in statements]
    return plan_structures(known, LogAhead(at(10), at(end), logged), catalog, mariadb=False)


def catalog(*tables, offset=200, keyed=(T,), **charsets):
    return Catalog(at(offset), structures(*tables, **charsets), frozenset(keyed))


def columns_of(change):
    return [column.name for column in change.tracked.schema.columns] if change.tracked else None


def changes_of(made):
    return [(change.position.offset, columns_of(change)) for change in made.changes if change.table]


def test_statements_apply_from_their_positions():
    """A batch with statements in the middle has several structures for a table."""
    made = plan(structures(table("id", "a")), [(20, "ALTER TABLE t ADD b INT"), (30, "ALTER TABLE t DROP a")])
    assert columns_of_table(made.before) == ["id", "a"]
    assert changes_of(made) == [(20, ["id", "a", "b"]), (30, ["id", "b"])]
    assert made.changes[0].tracked.origin is Origin.DDL
    assert columns_of_table(made.after) == ["id", "b"]


def columns_of_table(known):
    return [column.name for column in known.tables[T].schema.columns]


def test_statements_after_the_batch_are_not_applied():
    """Statements after the batch only determine from where information_schema is certain."""
    made = plan(structures(table("id")), [(20, "ALTER TABLE t ADD a INT"), (150, "ALTER TABLE t ADD b INT")])
    assert columns_of_table(made.after) == ["id", "a"]


def test_without_statements_information_schema_applies_from_the_beginning():
    """Nothing changed between the batch's beginning and the position at which it was read."""
    made = plan(Structures(), [], catalog(table("id", "a"), db="latin1"))
    assert changes_of(made) == [(10, ["id", "a"])]
    assert made.after.charsets == {"db": "latin1"}
    assert made.before == made.after


def test_it_applies_after_the_last_statement_only():
    """It says nothing about a table's structure before its last statement."""
    present = catalog(table("id", "a", "b"))
    statements = [(20, "ALTER TABLE t ADD a INT"), (30, "ALTER TABLE t ADD b INT")]
    made = plan(Structures(), statements, present)
    assert changes_of(made) == [(30, ["id", "a", "b"])]
    assert made.before == Structures()
    later = plan(Structures(), [*statements, (150, "ALTER TABLE t ENGINE=InnoDB")], present)
    assert later.changes == ()


def test_it_overrides_structures_derived_from_statements():
    """A difference is a surprise; what statements leave open is not."""
    statements = [(20, "ALTER TABLE t ADD b INT")]
    made = plan(structures(table("id")), statements, catalog(table("id", "c")))
    assert [change.surprise for change in made.changes if columns_of(change) == ["id", "c"]] == [True]
    text = Column("v", "varchar", length=5, charset="latin1", collation="latin1_bin", nullable=False)
    known = structures(table("id", Column("v", "varchar", length=5, charset="latin1")))
    made = plan(known, [], catalog(table("id", text)))
    assert [(change.surprise, change.tracked.schema.columns[1]) for change in made.changes] == [(False, text)]


def test_a_unique_index_as_key_is_not_a_surprise():
    """No statement determines that a unique index serves as a key: the table remains without one."""
    by_index = table("id", key=("id",), unique="u")
    made = plan(structures(table("id", key=())), [], catalog(by_index, keyed=()))
    assert made.changes == ()
    made = plan(structures(table("id", key=())), [], catalog(table("id", key=("id",))))
    assert made.after.tables[T].schema.primary_key == ("id",)
    # The primary key is gone without a statement.
    made = plan(structures(table("id", "a", key=("a",))), [], catalog(by_index, keyed=()))
    assert [(change.surprise, change.structure) for change in made.changes] == [(True, by_index.schema)]


NOT_NULL = Column("id", "int", nullable=False)
LOSES_KEY = [
    "ALTER TABLE t DROP INDEX u, ADD UNIQUE u2 (id, a)",
    "ALTER TABLE t DROP KEY IF EXISTS `U`",
    "ALTER TABLE t DROP CONSTRAINT u",
    "DROP INDEX u ON db.t",
    "DROP INDEX IF EXISTS U ON t",
    "CREATE OR REPLACE UNIQUE INDEX u ON t (id, a)",
    "ALTER TABLE t MODIFY ID INT NULL",
    "ALTER TABLE t CHANGE id n INT",
    "ALTER TABLE t DROP id, ADD id INT",
]


@pytest.mark.parametrize("sql", LOSES_KEY)
def test_a_key_that_is_a_unique_index_may_be_dropped(sql):
    """Which index is the key now is not in the log: the table's structure is unknown until information_schema is certain."""
    known = structures(table(NOT_NULL, "a", unique="u"))
    made = plan(known, [(20, sql)])
    assert [(change.position, change.tracked, change.lost) for change in made.changes] == [(at(20), None, True)]
    present = table(NOT_NULL, "a", key=("id", "a"), unique="u")
    assert plan(known, [(20, sql)], catalog(present, keyed=())).after.tables[T] == present
    again = plan(known, [(20, sql), (30, "ALTER TABLE t ADD c INT")], catalog(present, keyed=()))
    assert changes_of(again) == [(20, None), (30, ["id", "a"])]


@pytest.mark.parametrize(
    "created", ["CREATE UNIQUE INDEX u ON t (id)", "CREATE OR REPLACE UNIQUE INDEX IF NOT EXISTS U ON db.t (id)"]
)
def test_a_unique_index_is_no_key_before_it_is_created(created):
    """Rows before it may have equal values: the table has no key there."""
    known, present = structures(table(NOT_NULL, "a", unique="u")), table(NOT_NULL, "a", unique="u")
    made = plan(known, [(20, "DROP INDEX u ON t"), (50, created)], catalog(present, keyed=()))
    if created.startswith("CREATE UNIQUE"):
        assert [(change.position, change.structure and change.structure.primary_key) for change in made.changes] == [
            (at(20), None),
            (at(20), ()),
        ]
        assert made.after.tables[T].schema.unique_key == ""
    unknown = plan(structures(), [(50, created)], catalog(present, keyed=()))
    assert unknown.after.tables[T].schema.primary_key == (() if created.startswith("CREATE UNIQUE") else ("id",))


def test_another_unique_index_is_the_key_already_before_one_is_created():
    """So is a primary key, and an index that an earlier statement created."""
    statements = [(50, "CREATE UNIQUE INDEX v ON t (a)")]
    for present, keyed in ((table(NOT_NULL, "a", unique="u"), ()), (table(NOT_NULL, "a"), (T,))):
        assert plan(structures(), statements, catalog(present, keyed=keyed)).after.tables[T] == present
    present = table(NOT_NULL, "a", unique="v")
    made = plan(structures(), [*statements, (60, "ALTER TABLE t ADD a INT")], catalog(present, keyed=()))
    assert made.after.tables[T] == present


@pytest.mark.parametrize("sql", LOSES_KEY)
def test_a_primary_key_stays_if_another_index_is_dropped(sql):
    """So do the key and the structure of a table without a key."""
    for known in (table(NOT_NULL, "a"), table(NOT_NULL, "a", key=())):
        after = plan(structures(known), [(20, sql)]).after.tables[T].schema
        assert len(after.primary_key) == len(known.schema.primary_key)
        assert not after.unique_key


@pytest.mark.parametrize(
    ("sql", "name", "key", "unique"),
    [
        ("ALTER TABLE t ADD b INT, ADD INDEX (a)", "t", ("id",), "u"),
        ("ALTER TABLE t MODIFY id BIGINT NOT NULL, MODIFY a INT NULL", "t", ("id",), "u"),
        ("ALTER TABLE t CHANGE id n INT NOT NULL", "t", ("n",), "u"),
        ("ALTER TABLE t DROP INDEX u, ADD PRIMARY KEY (a)", "t", ("a",), ""),
        ("ALTER TABLE t DROP INDEX u, MODIFY a INT PRIMARY KEY", "t", ("a",), ""),
        ("ALTER TABLE t DROP id", "t", (), ""),
        ("ALTER TABLE t DROP id, ADD id INT NOT NULL", "t", ("id",), "u"),
        ("ALTER TABLE t RENAME TO v", "v", ("id",), "u"),
        ("ALTER TABLE t RENAME INDEX U TO w, DROP INDEX i", "t", ("id",), "w"),
        ("ALTER TABLE t RENAME KEY i TO w", "t", ("id",), "u"),
        ("ALTER TABLE t RENAME INDEX IF EXISTS u TO w", "t", ("id",), "w"),
        ("ALTER TABLE t MODIFY id BIGINT AUTO_INCREMENT", "t", ("id",), "u"),
        ("ALTER TABLE t DROP INDEX i, DROP KEY w, DROP CONSTRAINT c", "t", ("id",), "u"),
        ("DROP INDEX i ON t", "t", ("id",), "u"),
        ("CREATE OR REPLACE INDEX i ON t (a)", "t", ("id",), "u"),
        ("CREATE UNIQUE INDEX u ON other (a)", "t", ("id",), "u"),
        ("CREATE TABLE v LIKE t", "v", ("id",), "u"),
        ("ALTER TABLE t DROP INDEX u, RENAME TO v", "v", None, None),
    ],
)
def test_a_key_that_is_a_unique_index_is_followed(sql, name, key, unique):
    """Until it is dropped or a primary key replaces it."""
    found = plan(structures(table(NOT_NULL, "a", unique="u")), [(20, sql)]).after.tables.get(("db", name))
    assert (found and (found.schema.primary_key, found.schema.unique_key)) == (None if key is None else (key, unique))


def test_an_operators_structure_is_kept_until_a_statement():
    """`binlog-schema update` is for changes that are not in the log, such as an ALTER with sql_log_bin=0."""
    known = structures(table("id", "given", origin=Origin.UPDATE))
    assert plan(known, [], catalog(table("id", "a"))).changes == ()
    made = plan(known, [(20, "ALTER TABLE t ADD b INT")], catalog(table("id", "a", "b")))
    assert changes_of(made)[-1] == (20, ["id", "a", "b"])


def test_a_statement_that_is_not_understood_makes_the_structure_unknown():
    """It is unknown until information_schema provides it, which requires that no statement follows."""
    statements = [(20, "ALTER TABLE t FROBNICATE a")]
    made = plan(structures(table("id", "a")), statements)
    assert [(columns_of(change), change.lost) for change in made.changes] == [(None, True)]
    made = plan(structures(table("id", "a")), statements, catalog(table("id", "z")))
    assert [columns_of(change) for change in made.changes] == [None, ["id", "z"]]
    dropped = plan(structures(table("id", "a")), [(20, "DROP TABLE t")])
    assert [change.lost for change in dropped.changes] == [False]


def test_conditional_creations_are_ignored():
    """CREATE … IF NOT EXISTS is in the log whether or not it had an effect."""
    statements = [(15, "CREATE DATABASE IF NOT EXISTS db"), (20, "CREATE TABLE IF NOT EXISTS t (other INT)")]
    made = plan(Structures(), statements, catalog(table("id"), db="latin1"))
    assert columns_of_table(made.after) == ["id"]
    assert made.after.charsets == {"db": "latin1"}
    assert plan(Structures(), statements).after.charsets == {}


def test_tables_inherit_the_character_set_of_their_database():
    """CREATE DATABASE defaults to the server's character set; dropping a database drops its tables."""
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


def test_collations_changed_by_a_conversion_become_unknown():
    """They are unknown until information_schema is read."""
    known = structures(table("id", Column("v", "text", charset="latin1", collation="latin1_bin")))
    after = plan(known, [(20, "ALTER TABLE t CONVERT TO CHARACTER SET latin1 COLLATE latin1_german1_ci")]).after
    assert after.tables[T].schema.columns[1].collation is None


def test_a_catalog_read_before_the_batch_is_ignored():
    """The statements between it and the batch are not available."""
    assert plan(Structures(), [], catalog(table("id"), offset=5)).changes == ()


def test_the_default_character_set_is_certain_longer_than_the_columns():
    """After an ALTER that does not change it, information_schema's value is still certain."""
    known = structures(table("id", charset=None))
    statements = [(20, "ALTER TABLE t ADD v VARCHAR(3)"), (30, "ALTER TABLE t ADD w VARCHAR(3)")]
    text = [Column(name, "varchar", length=3, charset="latin1") for name in ("v", "w")]
    made = plan(known, statements, catalog(table("id", *text)))
    assert made.before.tables[T].charset == "latin1"
    assert [change.tracked.schema.columns[-1] for change in made.changes[1:3]] == text
    assert not any(change.surprise for change in made.changes)
    converted = [(20, "ALTER TABLE t ADD v VARCHAR(3)"), (30, "ALTER TABLE t DEFAULT CHARSET latin1")]
    assert plan(known, converted, catalog(table("id", text[0]))).before.tables[T].charset is None


@pytest.mark.parametrize(
    ("kind", "catalogued", "surprise"),
    [
        ("text", "mediumtext", False),
        ("blob", "longblob", False),
        ("text", "varchar", True),
        ("varchar", "text", True),
        ("text", "blob", True),
        ("blob", "text", True),
        ("int", "bigint", True),
    ],
)
def test_the_size_of_a_text_type_is_not_a_surprise(kind, catalogued, surprise):
    """It can depend on a character set that the statement leaves open; another type does not."""
    known = structures(table("id", Column("v", kind, charset="latin1")))
    made = plan(known, [], catalog(table("id", Column("v", catalogued, charset="latin1"))))
    assert [change.surprise for change in made.changes] == [surprise]
    assert made.after.tables[T].schema.columns[1].type == catalogued


@pytest.mark.parametrize(
    ("column", "catalogued", "surprise"),
    [
        (Column("v", "varchar", length=3), Column("v", "varchar", length=12, charset="utf8mb4"), False),
        (
            Column("v", "varchar", length=3, charset="latin1"),
            Column("v", "varchar", length=12, charset="utf8mb4"),
            True,
        ),
        (Column("v", "binary", length=3), Column("v", "binary", length=12), True),
        (Column("v", "enum", members=("a",), charset="binary"), Column("v", "enum", members=("a",)), False),
        (Column("v", "enum", members=("a",), charset="binary"), Column("v", "enum", members=("b",)), True),
        (Column("v", "int"), Column("w", "int"), True),
        (Column("v", "int"), Column("v", "int", visible=False), False),
    ],
)
def test_what_a_statement_leaves_open_is_not_a_surprise(column, catalogued, surprise):
    """The character set of text and the length that depends on it, visibility."""
    made = plan(structures(table("id", column)), [], catalog(table("id", catalogued)))
    assert [change.surprise for change in made.changes] == [surprise]


def test_the_structures_of_a_batch():
    """Those at its begin and all changes, with their positions; None for a table that is unknown then."""
    made = plan(
        structures(table("id")), [(20, "ALTER TABLE t ADD a INT"), (30, "DROP TABLE t"), (40, "CREATE DATABASE x")]
    )
    found = [(each.since.offset, each.schema and len(each.schema.columns)) for each in made.structures(at(10))]
    assert found == [(10, 1), (20, 2), (30, None)]
    assert {each.table for each in made.structures(at(10))} == {T}


def test_a_statement_at_the_end_of_a_batch_is_not_in_it():
    """The batch ends before it."""
    made = plan(structures(table("id")), [(99, "ALTER TABLE t ADD a INT"), (100, "ALTER TABLE t ADD b INT")])
    assert columns_of_table(made.after) == ["id", "a"]


def test_a_catalog_at_a_statement_is_read_before_it():
    """The log ended there: the statement follows."""
    present = catalog(table("id", "a"), offset=50)
    made = plan(Structures(), [(20, "ALTER TABLE t ADD a INT"), (50, "ALTER TABLE t ADD b INT")], present)
    assert changes_of(made) == [(20, ["id", "a"]), (50, ["id", "a", "b"])]
    assert plan(Structures(), [], catalog(table("id"), offset=10)).changes == ()
    assert changes_of(plan(Structures(), [], catalog(table("id"), offset=11))) == [(10, ["id"])]


@pytest.mark.parametrize("sql", ["CREATE INDEX i ON t (id)", "TRUNCATE TABLE t"])
def test_information_schema_is_certain_before_a_statement_that_changes_no_structure(sql):
    assert changes_of(plan(Structures(), [(20, sql)], catalog(table("id")))) == [(10, ["id"])]


def test_a_dropped_database_makes_the_structures_of_its_tables_uncertain_before():
    """They are created after it, by statements that are not in the log."""
    made = plan(structures(table("old")), [(20, "DROP DATABASE db")], catalog(table("id"), db="latin1"))
    assert [(change.position.offset, columns_of(change), change.surprise) for change in made.changes] == [
        (20, None, False),
        (20, ["id"], False),
        (20, None, False),
    ]
    assert made.before == structures(table("old"))


def test_a_renamed_table_is_not_lost():
    """A statement that is not understood loses the table, a rename does not."""
    made = plan(structures(table("id")), [(20, "ALTER TABLE t RENAME u")])
    assert {change.table: change.lost for change in made.changes} == {"t": False, "u": False}
    made = plan(structures(table("id")), [(20, "DROP INDEX `PRIMARY` ON t")])
    assert [(columns_of(change), change.lost) for change in made.changes] == [(["id"], False)]


@pytest.mark.parametrize(
    ("sql", "certain"),
    [
        ("ALTER TABLE t ADD a INT", True),
        ("ALTER TABLE t ENGINE=InnoDB", True),
        ("ALTER TABLE t CHARSET latin1", False),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1", False),
        ("ALTER TABLE t FROBNICATE", False),
        ("DROP TABLE t", False),
    ],
)
def test_the_default_character_set_is_certain_before_a_statement_that_keeps_it(sql, certain):
    made = plan(structures(table("id", charset=None)), [(20, sql)], catalog(table("id")))
    assert made.before.tables[T].charset == ("latin1" if certain else None)
