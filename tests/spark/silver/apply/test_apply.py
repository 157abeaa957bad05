"""From bronze to silver: every kind of batch, structure changes, replays and crashes."""

from dataclasses import replace
from datetime import datetime

import pytest

from dmdelta.changelog.context import SourceContext
from dmdelta.errors import Fenced, SchemaError, UnsupportedSchemaChange
from dmdelta.failpoint import CrashPoint
from dmdelta.model.change import Op
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES, Action, EventFilter, Route, SourceRules
from dmdelta.rules.filters import Rule
from dmdelta.silver.apply import apply as applying
from dmdelta.silver.apply import context
from dmdelta.silver.rows import commits as steps
from dmdelta.silver.rows.compaction import compacted, keyed_changes
from dmdelta.silver.rows.strategy import MAX_REPLACED_KEYS, Mode, Step
from dmdelta.silver.schema.evolution import DROPPED
from dmdelta.silver.schema.range_profile import tables_with_events
from dmdelta.silver.table.state import silver_position
from dmdelta.silver.table.table import open_silver
from dmdelta.silver.table.target import Target
from tests.support.changelog import ITEMS, LOG, SOURCE, TASK, Changelog

ITEMS_NAME = ("d", "items")
KEYLESS = ("d", "log")


@pytest.fixture
def changelog(spark, lakehouse):
    return Changelog(spark, lakehouse)


@pytest.mark.parametrize(
    ("most", "step"), [(MAX_REPLACED_KEYS, Step.REPLACE_LITERALS), (0, Step.MERGE)], ids=["few keys", "many keys"]
)
def test_the_example_of_safe_mode(changelog, monkeypatch, most, step):
    """The three statements of DM's safe-mode document, replayed twice, leave the same table."""
    name = ("dummydb", "dummytbl")
    columns = (Column("id", "int"), Column("int_value", "int"), Column("str_value", "varchar"))
    changelog.tell(TableSchema(*name, columns, ("id",)))
    changelog.insert({"id": 888, "int_value": 888888, "str_value": "abc888"}, name)
    changelog.apply(changelog.position.__class__(1, "binlog.000001", 4), name=name)
    begin = changelog.position
    changelog.insert({"id": 123, "int_value": 999, "str_value": "abc"}, name)
    old, new = ({"id": 123, "int_value": value, "str_value": "abc"} for value in (999, 888999))
    changelog.update(old, new, name)
    moved = {"int_value": 888888, "str_value": "abc888"}
    changelog.update({"id": 888, **moved}, {"id": 999, **moved}, name)
    wanted = [(123, 888999, "abc"), (999, 888888, "abc888")]
    monkeypatch.setattr(steps, "MAX_REPLACED_KEYS", most)
    assert changelog.apply(begin, name=name).steps == (step,)
    assert changelog.silver(name) == wanted
    for _ in range(2):
        assert changelog.apply(begin, mode=Mode.SAFE, name=name).steps == (Step.MERGE,)
        assert changelog.silver(name) == wanted


def test_compaction_algebra(spark, changelog, lakehouse):
    """Two changes of a row become one by DM's table; a key change is a delete and an insert."""
    row = [{"id": key, "v": "x"} for key in range(8)]
    changelog.insert(row[0]), changelog.update(row[0], row[0])
    changelog.insert(row[1]), changelog.delete(row[1])
    changelog.update(row[2], row[2]), changelog.update(row[2], row[2])
    changelog.update(row[3], row[3]), changelog.delete(row[3])
    changelog.delete(row[4]), changelog.insert(row[4])
    changelog.update(row[5], row[6])
    changelog.insert(row[7]), changelog.delete(row[7]), changelog.insert(row[7])
    changelog.land()
    changes = keyed_changes(spark.table(lakehouse.bronze), ITEMS, moves=True)
    net = {line["k0"]: line["op"] for line in compacted(changes, ITEMS).collect()}
    expected = ["insert", "delete", "update", "delete", "update", "delete", "insert", "insert"]
    assert net == dict(enumerate(expected))


def test_add_column_and_other_statements(changelog):
    """Rows before ADD COLUMN get its default, later ones their own value; replays change nothing; a default that
    the log lacks stops the table after applying what precedes the statement.
    """
    begin = changelog.position
    changelog.ddl("DROP TABLE IF EXISTS items")
    changelog.ddl("CREATE TABLE items (id BIGINT PRIMARY KEY, v VARCHAR(20))")
    changelog.tell(ITEMS)
    changelog.insert({"id": 1, "v": "a"}), changelog.insert({"id": 2, "v": "b"})
    changelog.ddl("ALTER TABLE items ADD COLUMN n INT NOT NULL DEFAULT 7 AFTER id, ADD INDEX (v)")
    changelog.tell(TableSchema("d", "items", (ITEMS.columns[0], Column("n", "int"), ITEMS.columns[1]), ("id",)))
    changelog.update({"id": 1, "n": 7, "v": "a"}, {"id": 1, "n": 8, "v": "a"})
    changelog.apply(begin)
    assert changelog.silver() == [(1, 8, "a"), (2, 7, "b")]
    changelog.apply(begin, mode=Mode.SAFE)
    assert changelog.silver() == [(1, 8, "a"), (2, 7, "b")]
    begin = changelog.position
    changelog.delete({"id": 2, "n": 7, "v": "b"})
    changelog.ddl("ALTER TABLE items ADD seen TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP")
    with pytest.raises(UnsupportedSchemaChange, match="CURRENT_TIMESTAMP") as caught:
        changelog.apply(begin)
    assert "d.items" in str(caught.value)
    assert changelog.silver() == [(1, 8, "a")]


@pytest.mark.parametrize(
    ("mode", "cuts"),
    [
        (Mode.NORMAL, ()),
        (Mode.SAFE, (2,)),
        *(
            pytest.param(mode, cuts, marks=pytest.mark.long)
            for mode, cuts in [
                (Mode.SAFE, ()),
                (Mode.NORMAL, (2,)),
                (Mode.NORMAL, (1, 2, 3, 4)),
                (Mode.SAFE, (1, 2, 3, 4)),
            ]
        ),
    ],
)
def test_a_column_that_a_rule_keeps(changelog, spark, cuts, mode):
    """It keeps the values that rows had when the source dropped it, however the log is split; later rows have none."""
    wide = TableSchema("d", "items", (*ITEMS.columns, Column("old", "int")), ("id",))
    keeping = SourceRules(
        SOURCE, events=EventFilter((Rule("keep", "d", "items", ("drop column",), (), Action.IGNORE),))
    )
    begin = changelog.position
    changelog.tell(wide)
    for key in range(1, 6):
        changelog.insert({"id": key, "v": "a", "old": key})
    changelog.apply(begin, rules=keeping)
    begin = changelog.position
    changelog.ddl("ALTER TABLE items DROP COLUMN old")
    changelog.tell(ITEMS)
    changes = (
        lambda: changelog.update({"id": 1, "v": "a"}, {"id": 1, "v": "b"}),
        lambda: changelog.delete({"id": 2, "v": "a"}),
        lambda: changelog.insert({"id": 2, "v": "c"}),
        lambda: changelog.update({"id": 3, "v": "a"}, {"id": 33, "v": "a"}),
        lambda: changelog.delete({"id": 4, "v": "a"}),
    )
    for number, change in enumerate(changes):
        if number in cuts:
            changelog.apply(begin, mode=mode, rules=keeping)
            begin = changelog.position
        change()
    changelog.apply(begin, mode=mode, rules=keeping)
    assert changelog.silver() == [(1, "b", 1), (2, "c", None), (33, "a", None), (5, "a", 5)]


def test_a_table_created_again_with_another_key(changelog):
    """Silver is clustered by the new key, so the columns of the former one can be dropped."""
    begin, name = changelog.position, ("d", "t")
    columns = (Column("a", "int", nullable=False), Column("b", "int", nullable=False))
    before = TableSchema("d", "t", columns, ("a",))
    changelog.tell(before)
    changelog.insert({"a": 1, "b": 1}, name)
    changelog.ddl("DROP TABLE t", name)
    changelog.ddl("CREATE TABLE t (a INT NOT NULL, b INT PRIMARY KEY)", name)
    changelog.tell(replace(before, primary_key=("b",)))
    changelog.insert({"a": 1, "b": 2}, name)
    changelog.ddl("ALTER TABLE t DROP COLUMN a", name)
    changelog.tell(TableSchema("d", "t", columns[1:], ("b",)))
    changelog.update({"b": 2}, {"b": 3}, name)
    changelog.apply(begin, name=name)
    assert changelog.silver(name) == [(3,)]


def test_dropped_database(changelog, spark, lakehouse):
    """DROP DATABASE empties and marks all its tables that bronze knows."""
    begin = changelog.position
    changelog.tell(ITEMS)
    changelog.insert({"id": 1, "v": "a"})
    changelog.apply(begin)
    begin = changelog.position
    changelog.ddl("DROP DATABASE d", ("d", None))
    end = changelog.land()
    (events,) = tables_with_events(spark, changelog.request(begin, end).context, begin, end)
    assert (events.table, events.ddl) == ("items", 1)
    assert changelog.apply(begin, end, events=events).structure is None
    assert changelog.silver() == []
    properties = dict(spark.sql(f"SHOW TBLPROPERTIES {lakehouse.silver(*ITEMS.name)}").collect())
    assert properties[DROPPED] == str(begin)


def test_prepared_transactions(changelog, spark, lakehouse):
    """Rows prepared in XA reach silver with their commit, in a later range, and never after a rollback."""
    begin = changelog.position
    changelog.tell(ITEMS)
    changelog.insert({"id": 1, "v": "plain"})
    changelog.insert({"id": 2, "v": "prepared"}, xid="one")
    changelog.insert({"id": 3, "v": "rolled back"}, xid="two")
    changelog.apply(begin)
    assert changelog.silver() == [(1, "plain")]
    begin = changelog.position
    changelog.xa_end(Op.XA_ROLLBACK, "two")
    changelog.xa_end(Op.XA_COMMIT, "one")
    changelog.insert({"id": 4, "v": "prepared again"}, xid="two")
    changelog.xa_end(Op.XA_COMMIT, "two")
    end = changelog.land()
    (events,) = tables_with_events(spark, changelog.request(begin, end).context, begin, end)
    assert events.rows == {Op.INSERT: 2}
    changelog.apply(begin, end, events=events)
    assert changelog.silver() == [(1, "plain"), (2, "prepared"), (4, "prepared again")]


@pytest.mark.parametrize(
    ("again", "landed"),
    [
        pytest.param(True, False, id="restart before XA PREPARE", marks=pytest.mark.long),
        pytest.param(False, True, id="restart after XA PREPARE"),
        pytest.param(True, True, id="restart before XA PREPARE, whose commit had landed", marks=pytest.mark.long),
        pytest.param(False, False, id="XA PREPARE at the end of an epoch", marks=pytest.mark.long),
    ],
)
def test_rows_prepared_in_several_epochs(changelog, again, landed):
    """An XA transaction reaches silver once, whether earlier epochs have the same rows, the same commit, or both."""
    name = KEYLESS
    one, two, three = ({"a": number, "b": "x"} for number in (1, 2, 3))
    begin = changelog.position
    changelog.tell(LOG)
    changelog.insert(one, name)
    prepare = changelog.position
    changelog.insert(two, name, xid="x")
    commit = changelog.position
    changelog.apply(begin, name=name)
    if landed:
        changelog.xa_end(Op.XA_COMMIT, "x")
        changelog.land()
    changelog.restart(prepare if again else commit)
    begin = changelog.position
    if again:
        changelog.insert(two, name, xid="x")
    changelog.xa_end(Op.XA_COMMIT, "x")
    changelog.apply(begin, name=name)
    assert changelog.silver(name) == [(1, "x"), (2, "x")]
    begin = changelog.position
    changelog.insert(three, name, xid="x")
    changelog.xa_end(Op.XA_COMMIT, "x")
    changelog.apply(begin, name=name)
    assert changelog.silver(name) == [(1, "x"), (2, "x"), (3, "x")]


def test_partial_images(changelog):
    """MINIMAL and NOBLOB images change only the columns they contain; a row under a new key keeps the others."""
    name = ("d", "part")
    schema = TableSchema(*name, (Column("id", "int"), Column("a", "int"), Column("b", "varchar")), ("id",))
    begin = changelog.position
    changelog.tell(schema)
    changelog.insert({"id": 1, "a": 1, "b": "x"}, name), changelog.insert({"id": 2, "a": 2, "b": "y"}, name)
    changelog.apply(begin, name=name)
    begin = changelog.position
    changelog.update({"id": 1}, {"id": 1, "a": 5}, name, image=["id", "a"])
    changelog.update({"id": 1}, {"id": 1, "b": None}, name, image=["id", "b"])
    changelog.delete({"id": 2}, name), changelog.insert({"id": 2, "a": 6}, name, image=["id", "a"])
    changelog.update({"id": 2}, {"id": 2, "a": 7}, name, image=["id", "a"])
    assert changelog.apply(begin, name=name).steps == (Step.MERGE_FOLDED,)
    assert changelog.silver(name) == [(1, 5, None), (2, 7, None)]
    changelog.apply(begin, name=name, mode=Mode.SAFE)
    assert changelog.silver(name) == [(1, 5, None), (2, 7, None)]
    begin = changelog.position
    changelog.update({"id": 1}, {"id": 1, "b": "z"}, name, image=["id", "b"])
    (
        changelog.update({"id": 2}, {"id": 3}, name, image=["id"]),
        changelog.update({"id": 1}, {"id": 2}, name, image=["id"]),
    )
    changelog.update({"id": 3}, {"id": 4, "a": 8}, name, image=["id", "a"])
    changelog.update({"id": 4}, {"id": 4, "b": "w"}, name, image=["id", "b"])
    for mode in (Mode.NORMAL, Mode.SAFE):
        steps = changelog.apply(begin, name=name, mode=mode).steps
        assert steps == (Step.MERGE_FOLDED, Step.MERGE_MOVES, Step.MERGE_MOVES, Step.MERGE_FOLDED)
        assert changelog.silver(name) == [(2, 5, "z"), (4, 8, "w")]


def test_zero_dates_in_a_key(changelog):
    """They are NULL in silver, where such a row is replaced, kept once in safe mode, and deleted like any other."""
    name = ("d", "prices")
    columns = (Column("id", "int"), Column("until", "datetime"), Column("v", "int"))
    changelog.tell(TableSchema(*name, columns, ("id", "until")))
    zero, other = ({"id": key, "until": "0000-00-00 00:00:00"} for key in (1, 2))
    begin = changelog.position
    changelog.insert({**zero, "v": 1}, name), changelog.insert({**other, "v": 1}, name)
    changelog.insert({"id": 1, "until": "2026-01-02 03:04:05", "v": 1}, name)
    changelog.apply(changelog.position.__class__(1, "binlog.000001", 4), name=name)
    kept = (1, datetime(2026, 1, 2, 3, 4, 5), 1)  # noqa: DTZ001 - DATETIME has no zone
    for wanted, write in (
        ([kept, (1, None, 2), (2, None, 1)], lambda: changelog.update({**zero, "v": 1}, {**zero, "v": 2}, name)),
        ([kept, (1, None, 2)], lambda: changelog.delete({**other, "v": 1}, name)),
        (
            [kept, (2, None, 3)],
            lambda: (
                changelog.update({**zero, "v": 2}, {**other, "v": 2}, name),
                changelog.update(
                    {"id": 2, "until": other["until"]}, {**other, "v": 3}, name, image=["id", "until", "v"]
                ),
            ),
        ),
    ):
        begin = changelog.position
        write()
        for mode in (Mode.NORMAL, Mode.SAFE, Mode.SAFE):
            changelog.apply(begin, name=name, mode=mode)
            assert changelog.silver(name) == sorted(wanted, key=repr)


def test_documents_of_a_snapshot_in_a_table_without_a_key(spark, changelog, lakehouse):
    """MySQL's text of a date or a decimal equals the typed value in the log, so the log deletes the row."""
    name = ("d", "audit")
    schema = TableSchema(*name, (Column("a", "int"), Column("doc", "json")))
    begin = changelog.position
    changelog.tell(schema)
    texts = ("2026-01-02 03:04:05.000000", "2026-01-02 03:04:05.120000", "2026-01-02 03:04:05.000001")
    documents = [{"at": text, "n": number} for text, number in zip(texts, (100.0, 0.5, 7), strict=True)]
    for number, document in enumerate(documents):
        changelog.change(Op.READ, None, {"a": number, "doc": document}, name)
    changelog.apply(begin, name=name)
    begin = changelog.position
    for number in (0, 1):
        changelog.delete({"a": number, "doc": documents[number]}, name)
    end = changelog.land()
    typed = "named_struct('at', CAST(before:doc.at::string AS TIMESTAMP_NTZ), 'n', CAST(before:doc.n::string AS DECIMAL(9,3)))"
    spark.sql(
        f"""UPDATE {lakehouse.bronze} SET before = to_variant_object(named_struct('a', before:a::int, 'doc', {typed}))
        WHERE op = 'delete' AND table_name = 'audit'"""
    )
    changelog.apply(begin, end, name=name)
    assert [row[0] for row in changelog.silver(name)] == [2]


def test_keyless_table(changelog):
    """Equal rows are counted: as many are removed as were deleted, and replayed inserts are not added twice."""
    begin = changelog.position
    changelog.tell(LOG)
    for number in (1, 1, 1, 2):
        changelog.insert({"a": number, "b": None}, KEYLESS)
    assert changelog.apply(begin, name=KEYLESS).steps == (Step.APPEND_KEYLESS,)
    changelog.apply(begin, name=KEYLESS, mode=Mode.SAFE)
    assert changelog.silver(KEYLESS) == [(1, None), (1, None), (1, None), (2, None)]
    begin = changelog.position
    changelog.delete({"a": 1, "b": None}, KEYLESS)
    changelog.update({"a": 1, "b": None}, {"a": 5, "b": "q"}, KEYLESS)
    changelog.insert({"a": 9, "b": None}, KEYLESS), changelog.delete({"a": 9, "b": None}, KEYLESS)
    changelog.apply(begin, name=KEYLESS)
    assert changelog.silver(KEYLESS) == [(1, None), (2, None), (5, "q")]


def test_odd_names_and_types(changelog):
    """Columns of any name, composite keys and extreme values of Delta's types arrive unchanged; zero dates are NULL."""
    name = ("o dd", "t`x.y")
    kinds = {
        "a b": "int", "c.d": "varchar", "e'f": "date", 'g"h?.': "varchar", "ü`": "datetime",
        "big": "bigint", "doc": "json",
    }  # fmt: skip
    columns = tuple(Column(column, kind, unsigned=column == "big") for column, kind in kinds.items())
    begin = changelog.position
    changelog.tell(TableSchema(*name, columns, ("a b", "c.d")))
    top = 2**64 - 1
    row = {"a b": 1, "c.d": "k'\\1", "e'f": "0000-00-00", 'g"h?.': "ü", "ü`": "2020-02-31 00:00:00", "big": top}
    changelog.insert({**row, "doc": None}, name), changelog.insert({**row, "a b": 2}, name)
    changelog.apply(begin, name=name)
    begin = changelog.position
    changelog.delete({**row, "doc": None}, name), changelog.update({**row, "a b": 2}, {**row, "a b": 2, "big": 5}, name)
    assert changelog.apply(begin, name=name).steps == (Step.MERGE,)
    ((*values, document),) = changelog.silver(name)
    assert [str(value) for value in values] == ["2", "k'\\1", "None", "ü", "None", "5"]
    assert document is None
    changelog.apply(begin, name=name, mode=Mode.SAFE)
    assert len(changelog.silver(name)) == 1


TAKEN = (
    "op", "sign", "identity", "gone", "nth", "many", "newest", "part", "rank", "whole", "p1", "k0", "o0", "told", "committed",
    "new_image", "before", "after", "image", "epoch", "seq", "row", "committed_at", "key_changed", "age", "first", "born",
    "at", "target", "source", "times", "wanted_identity", "live_version", "l0", "earlier",
)  # fmt: skip
"""Names that queries on the way to silver use."""


@pytest.mark.parametrize("mode", [Mode.SAFE, pytest.param(Mode.NORMAL, marks=pytest.mark.long)])
def test_columns_may_have_any_name(changelog, mode):
    """Each way of applying distinguishes the source's columns from its own."""
    keyed, bag = ("d", "keyed"), ("d", "bag")
    others = tuple(Column(name, "int") for name in TAKEN)
    begin = changelog.position
    changelog.tell(TableSchema(*keyed, (Column("id", "bigint"), *others), ("id",)))
    changelog.tell(TableSchema(*bag, others))
    row = {name: number for number, name in enumerate(TAKEN)}
    for number in range(1, 5):
        changelog.insert({"id": number, **row}, keyed), changelog.insert(row, bag)
    for name in (keyed, bag):
        changelog.apply(begin, name=name)
    begin, newer = changelog.position, {**row, "op": 99}
    changelog.update({"id": 1, **row}, {"id": 1, **newer}, keyed), changelog.delete({"id": 2, **row}, keyed)
    changelog.update({"id": 3, **row}, {"id": 7, **newer}, keyed)
    changelog.update(row, newer, bag), changelog.delete(row, bag)
    for name in (keyed, bag):
        changelog.apply(begin, name=name, mode=mode)
    old, new = tuple(row.values()), tuple(newer.values())
    assert sorted(changelog.silver(keyed)) == sorted([(1, *new), (4, *old), (7, *new)])
    assert sorted(changelog.silver(bag)) == sorted([old, old, new])
    # Images that lack columns, also of a row whose key changes.
    begin = changelog.position
    changelog.update({"id": 4}, {"id": 4, "sign": 5}, keyed, image=["id", "sign"])
    changelog.update({"id": 1}, {"id": 8}, keyed, image=["id"])
    changelog.update({"id": 7}, {"id": 7, "whole": 6}, keyed, image=["id", "whole"])
    changelog.apply(begin, name=keyed, mode=mode)
    names = ("id", *TAKEN)
    found = {line["id"]: line for line in (dict(zip(names, values, strict=True)) for values in changelog.silver(keyed))}
    assert found == {
        4: {"id": 4, **row, "sign": 5},
        7: {"id": 7, **newer, "whole": 6},
        8: {"id": 8, **newer},
    }


def test_crash_between_commits(changelog, spark, lakehouse, monkeypatch):
    """After a crash after any commit of a batch, the same batch from the table's own position completes it."""
    begin = changelog.position
    changelog.tell(ITEMS)
    rows = [{"id": key, "v": "a"} for key in range(4)]
    for row in rows:
        changelog.insert(row)
    changelog.apply(begin)
    begin = changelog.position
    changelog.delete(rows[0])
    changelog.update(rows[1], {"id": 1, "v": "b"})
    changelog.ddl("ALTER TABLE items ADD n INT NOT NULL DEFAULT 7")
    changelog.delete({**rows[2], "n": 7})
    changelog.insert({**rows[0], "n": 1})
    end = changelog.land()

    def crash(point):
        if point in (CrashPoint.SILVER_BETWEEN_COMMITS, CrashPoint.SILVER_AFTER_CHANGE):
            raise InterruptedError

    monkeypatch.setattr(applying, "reach", crash)
    monkeypatch.setattr(context, "reach", crash)
    crashes = 0
    target = Target(SourceContext(lakehouse, TASK, SOURCE, "run", "mysql", NO_RULES), ITEMS_NAME, Route(*ITEMS_NAME))
    while (commit := silver_position(spark, target)).tag.end < end:
        changelog.batch = 1
        changelog.results.clear()
        try:
            changelog.apply(max(begin, commit.tag.end), end)
        except InterruptedError:
            crashes += 1
    assert crashes == 4  # after the rows before the ALTER, and after each of its three changes
    assert changelog.silver() == [(0, "a", 1), (1, "b", 7), (3, "a", 7)]


def test_two_runners_and_two_sources(changelog, spark, lakehouse):
    """A second runner of the task is fenced out; a second source with the same table is an error naming both."""
    begin = changelog.position
    changelog.tell(ITEMS)
    changelog.insert({"id": 1, "v": "a"})
    first = changelog.apply(begin)
    zombie = Changelog(spark, lakehouse, run="run-2")
    with pytest.raises(Fenced):
        zombie.apply(begin, changelog.position, known=first.structure, applied=0)
    request = changelog.request(begin, changelog.position)
    request = replace(request, context=replace(request.context, source_id="second"))
    with pytest.raises(SchemaError, match=r"the rows of d\.items of shop, but d\.items of second is routed to it"):
        applying.apply_table(spark, request)


@pytest.mark.parametrize("key", [(), pytest.param(("id",), marks=pytest.mark.long)])
def test_runners_that_join_ranges_differently(changelog, spark, key):
    """Delta would accept both commits, because the versions differ: the rows of both ranges are appended once."""
    begin = changelog.position
    changelog.tell(replace(ITEMS, primary_key=key))
    changelog.insert({"id": 1, "v": "a"})
    changelog.apply(begin)
    begin = changelog.position
    changelog.insert({"id": 2, "v": "b"})
    middle = changelog.land()
    changelog.insert({"id": 3, "v": "c"})
    applying.apply_table(spark, changelog.request(begin, middle, run="run-2"))
    with pytest.raises(Fenced):
        changelog.apply(begin)
    assert changelog.silver() == [(1, "a"), (2, "b")]


def test_a_log_with_several_new_columns_is_read_again(changelog):
    """Silver then has the columns of later statements; rows keep their values. If it lacks a column, the table stops."""
    begin = changelog.position
    changelog.tell(ITEMS)
    changelog.insert({"id": 1, "v": "a"}), changelog.insert({"id": 2, "v": "b"})
    changelog.ddl("ALTER TABLE items ADD n INT DEFAULT 7 FIRST")
    changelog.ddl("ALTER TABLE items ADD m INT DEFAULT 8")
    changelog.ddl("ALTER TABLE items CHANGE m o BIGINT")
    columns = (Column("n", "int"), *ITEMS.columns, Column("o", "bigint"))
    changelog.tell(TableSchema("d", "items", columns, ("id",)))
    changelog.update({"n": 7, "id": 1, "v": "a", "o": 8}, {"n": 1, "id": 1, "v": "a", "o": 2})
    changelog.ddl("ALTER TABLE items ADD p INT, ADD q INT")
    changelog.ddl("ALTER TABLE items DROP p")
    changelog.apply(begin)
    wanted = [(1, 1, "a", 2, None), (7, 2, "b", 8, None)]
    assert changelog.silver() == wanted
    begin = changelog.position
    changelog.insert({"n": 3, "id": 3, "v": "c", "o": 3, "q": 3})
    changelog.ddl("ALTER TABLE items ADD r INT DEFAULT 9")
    changelog.ddl("ALTER TABLE items ADD s INT")
    changelog.ddl("ALTER TABLE items ADD t INT DEFAULT 3 AFTER q")
    last = {"n": 4, "id": 4, "v": "d", "o": 4, "q": 4, "t": 4, "r": 4, "s": 4}
    changelog.insert(last)  # without it, the newest commit states that nothing is left
    wanted = [*((*row, 3, 9, None) for row in wanted), (3, 3, "c", 3, 3, 3, 9, None), tuple(last.values())]
    wanted.sort(key=repr)
    for mode in (Mode.NORMAL, Mode.SAFE, Mode.SAFE):
        changelog.apply(begin, mode=mode)
        assert changelog.silver() == wanted
    begin = changelog.position
    changelog.ddl("ALTER TABLE items ADD u INT")
    changelog.ddl("ALTER TABLE items ADD w INT")
    changelog.ddl("ALTER TABLE items DROP u")
    changelog.delete({**last, "w": None})
    changelog.apply(begin)
    with pytest.raises(UnsupportedSchemaChange, match="do not show whether it was applied before"):
        changelog.apply(begin, mode=Mode.SAFE)
    assert changelog.silver() == [(*row, None) for row in wanted if row[0] != 4]


SWAPPED = TableSchema("d", "swapped", (Column("id", "int"), Column("a", "int"), Column("b", "int")), ("id",))


def swap(changelog):
    """Apply a row, and log a statement before and after which the columns look the same; the position before it."""
    begin, name = changelog.position, SWAPPED.name
    changelog.tell(SWAPPED)
    changelog.insert({"id": 1, "a": 1, "b": 2}, name)
    changelog.apply(begin, name=name)
    behind = changelog.position
    changelog.ddl("ALTER TABLE swapped CHANGE a b INT, CHANGE b a INT", name)
    return behind, name


def test_a_swap_that_may_have_been_applied(changelog):
    """In safe mode a table that a snapshot has read stops, because it could become wrong."""
    at = changelog.position
    open_silver(changelog.spark, changelog.request(at, at, name=SWAPPED.name).target, SWAPPED)
    behind, name = swap(changelog)
    with pytest.raises(UnsupportedSchemaChange, match="may have been applied before"):
        changelog.apply(behind, mode=Mode.SAFE, name=name)
    assert changelog.silver(name) == [(1, 1, 2)]
    changelog.apply(behind, name=name)
    assert changelog.silver(name) == [(1, 1, 2)]
    assert changelog.spark.table(changelog.lakehouse.silver(*name)).columns[:3] == ["id", "b", "a"]


def test_a_swap_in_a_table_that_the_log_has_created(changelog):
    """In safe mode, too, it is applied; if the log is read again, the table stops."""
    behind, name = swap(changelog)
    changelog.apply(behind, mode=Mode.SAFE, name=name)
    assert changelog.silver(name) == [(1, 1, 2)]
    assert changelog.spark.table(changelog.lakehouse.silver(*name)).columns[:3] == ["id", "b", "a"]
    with pytest.raises(UnsupportedSchemaChange, match="may have been applied before"):
        changelog.apply(behind, mode=Mode.SAFE, name=name)
    assert changelog.silver(name) == [(1, 1, 2)]
    assert changelog.spark.table(changelog.lakehouse.silver(*name)).columns[:3] == ["id", "b", "a"]


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        (0, 3, ["10:00:00.000", "-00:00:01.000"]),
        pytest.param(2, 3, ["10:00:00.000", "-00:00:01.250"], marks=pytest.mark.long),
        (2, 1, ["10:00:00.0", "-00:00:01.3"]),
        pytest.param(2, 0, ["10:00:00", "-00:00:01"], marks=pytest.mark.long),
    ],
)
def test_a_time_gets_its_fractional_digits_once(changelog, before, after, values):
    """In safe mode the statement is followed again."""
    seconds = Column("s", "time", precision=before)
    begin = changelog.position
    changelog.tell(TableSchema("d", "items", (*ITEMS.columns, seconds), ("id",)))
    for key, value in enumerate(["10:00:00.00", "-00:00:01.25"]):
        changelog.insert({"id": key, "v": "", "s": value[: -3 if not before else None]})
    changelog.apply(begin)
    begin = changelog.position
    changelog.ddl(f"ALTER TABLE items MODIFY s TIME({after})")
    changelog.insert({"id": 2, "v": "", "s": values[1]})  # without it, the newest commit states that nothing is left
    for mode in (Mode.NORMAL, Mode.SAFE, Mode.SAFE):
        changelog.apply(begin, mode=mode)
        assert [row[-1] for row in changelog.silver()] == [*values, values[1]]
