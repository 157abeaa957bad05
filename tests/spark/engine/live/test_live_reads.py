"""Live reads equal the result of an interpreter that applies events one by one, at any position of any table."""

import random
from dataclasses import replace

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.batch_memory import BatchMemory
from dmdelta.ddl.types.silver_types import VERSION
from dmdelta.engine.live import source as live_source
from dmdelta.engine.live.known_log import KnownLog
from dmdelta.errors import NotReadable
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.session import takes_arrow
from dmdelta.model.change import Op
from dmdelta.model.schema import Column
from dmdelta.silver.apply.row_checks import OnFailure, RowCheck
from dmdelta.silver.live import changes as live_changes
from dmdelta.silver.live import memory_changes
from tests.support.changelog import ITEMS
from tests.support.live import BAG, PARTIAL, TABLES, InterpretedLog, Workload, shown

OTHER = replace(ITEMS, table="other")


def assert_reads(log, names, positions):
    """
    Raises:
        AssertionError: a table differs from the interpreter's.
    """
    for at in positions:
        live, source = log.live(at), log.at(at)
        live.prepare(names)
        for name in names:
            found = live.state(name)
            assert shown(found) == source[name].shown, f"{name[1]} at {at}"
            assert found.rows.columns[:-2] == source[name].columns


def play(spark, lakehouse, seed, rounds, reads, tables=TABLES, *, memory=True):
    """Random changes; each table is applied up to a position of its own; all tables are read at random positions.

    Args:
        memory: reads keep the rows of bronze that they have read.
    """
    log, pick = InterpretedLog(spark, lakehouse), random.Random(seed)
    if not memory:
        log.known = KnownLog(BatchMemory(0))
    begin, names = log.position, [schema.name for schema in tables]
    work, first = Workload(log, seed, tables), log.position
    for name in names:
        log.apply(begin, name=name)
    begun = dict.fromkeys(names, first)
    for number in range(rounds):
        begin = len(log.moments)
        work.work(pick.choice((10, 40)))
        if number or rounds == 1:
            work.transaction(4)
            work.statement()
            work.work(15)
        log.land()
        ends = [at for at, _ in log.moments[begin:]]
        for name in names:
            if pick.random() < 0.8 and (end := pick.choice(ends)) > begun[name]:
                log.apply(begun[name], end, name=name)
                begun[name] = end
        later = [at for at, _ in log.moments if at > first]
        assert_reads(log, names, [log.position, *(pick.choice(later) for _ in range(reads))])


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))])
def test_live_reads_equal_the_source(spark, lakehouse, seed):
    """Key changes, reused keys, no key, partial images, XA, new columns, TRUNCATE; silver at any position."""
    if seed == 1:
        play(spark, lakehouse, seed, rounds=1, reads=1, tables=(ITEMS, BAG))
    else:
        play(spark, lakehouse, seed, rounds=4, reads=4, memory=seed % 2 == 0)


def simple(spark, lakehouse):
    """A table with two rows in silver; in bronze only, changes of both and a third row."""
    log = InterpretedLog(spark, lakehouse)
    begin = log.position
    log.create(ITEMS)
    log.insert({"id": 1, "v": "a"})
    log.insert({"id": 2, "v": "b"})
    log.apply(begin)
    log.update({"id": 1, "v": "a"}, {"id": 1, "v": "a2"})
    log.delete({"id": 2, "v": "b"})
    log.insert({"id": 3, "v": "c"})
    log.update({"id": 3, "v": "c"}, {"id": 3, "v": "c2"})
    return log


def oldest_compacted(changes, schema, right=live_changes.compacted):
    """Sabotage of `compacted`: the oldest change of a key wins."""
    reversed_order = changes.withColumns({"epoch": -F.col("epoch"), "seq": -F.col("seq")})
    return right(reversed_order, schema).withColumns({"epoch": -F.col("epoch"), "seq": -F.col("seq")})


def oldest_in_memory(rows, schema, right=memory_changes.net_changes):
    """The same of `net_changes`."""
    return right(rows.take(list(reversed(range(len(rows))))), schema)


def unpinned(spark, target, _version):
    """Sabotage of `rows_at`: silver is read as it is, after the changes in bronze were chosen for a version of it."""
    return spark.table(target.place)


@pytest.mark.parametrize("memory", [True, False])
def test_a_reversed_version_order_is_detected(spark, lakehouse, monkeypatch, memory):
    """Whether Spark compacts the changes, or this process."""
    log = simple(spark, lakehouse)
    if not memory:
        log.known = KnownLog(BatchMemory(0))
    assert_reads(log, [ITEMS.name], [log.position])
    is_local = takes_arrow(spark) and local_table(spark, lakehouse.bronze) is not None
    assert (log.known.memory.size > 0) is (memory and is_local)
    monkeypatch.setattr(memory_changes, "net_changes", oldest_in_memory)
    monkeypatch.setattr(live_changes, "compacted", oldest_compacted)
    with pytest.raises(AssertionError, match="items at"):
        assert_reads(log, [ITEMS.name], [log.position])


@pytest.mark.long
def test_a_full_memory_forgets_the_rows_that_no_read_needs(spark, lakehouse):
    """A read whose own rows are in memory uses them, although older rows have been evicted."""
    log = simple(spark, lakehouse)
    if local_table(spark, lakehouse.bronze) is None or not takes_arrow(spark):
        pytest.skip("only under a local root do live reads keep rows in memory")
    assert_reads(log, [ITEMS.name], [log.position])
    size, applied = log.known.memory.size, log.moments[2][0]
    log.known = KnownLog(BatchMemory(2 * size))
    assert_reads(log, [ITEMS.name], [log.position])
    for number in range(10, 14):
        begin = log.position
        log.apply(applied, begin)
        applied = begin
        log.insert({"id": number, "v": "d"})
        log.update({"id": number, "v": "d"}, {"id": number, "v": "d2"})
        log.delete({"id": number - 7, "v": "c2"} if number == 10 else {"id": number - 1, "v": "d2"})
        assert_reads(log, [ITEMS.name], [log.position])
        assert log.known.memory.covers(begin, log.position)
    assert not log.known.memory.covers(log.moments[2][0], log.position)
    live = log.live()
    assert log.known.view(spark, live.source.context, applied, log.position).begin > log.moments[2][0]


@pytest.mark.long
def test_silver_that_is_not_pinned_is_detected(spark, lakehouse, monkeypatch):
    """Bronze is read for an earlier version of silver than silver itself."""
    log = simple(spark, lakehouse)
    earlier, begin = log.position, log.moments[2][0]
    log.apply(begin)
    log.delete({"id": 3, "v": "c2"})
    log.apply(earlier)
    assert_reads(log, [ITEMS.name], [earlier])
    monkeypatch.setattr(live_source, "rows_at", unpinned)
    with pytest.raises(AssertionError, match="items at"):
        assert_reads(log, [ITEMS.name], [earlier])


@pytest.mark.long
@pytest.mark.parametrize(
    ("sabotage", "memory"),
    [
        ((live_changes, "compacted", oldest_compacted), False),
        ((memory_changes, "net_changes", oldest_in_memory), True),
        ((live_source, "rows_at", unpinned), True),
        ((live_source, "rows_at", unpinned), False),
    ],
)
def test_the_property_fails_with_a_sabotage(spark, lakehouse, monkeypatch, sabotage, memory):
    """The random workload detects each of them."""
    monkeypatch.setattr(*sabotage)
    with pytest.raises(AssertionError, match="items at"):
        play(spark, lakehouse, 1, rounds=4, reads=4, tables=(ITEMS,), memory=memory)


@pytest.mark.long
def test_a_position_before_silver_uses_its_history(spark, lakehouse):
    """Each version of silver, and the positions in between."""
    log = simple(spark, lakehouse)
    log.apply(log.moments[2][0])
    log.insert({"id": 4, "v": "d"})
    assert_reads(log, [ITEMS.name], [at for at, _ in log.moments[1:]])


@pytest.mark.long
def test_a_position_beyond_silvers_history_is_replayed(spark, lakehouse, monkeypatch):
    """When silver has no version that is old enough."""
    log = simple(spark, lakehouse)
    at = log.position
    log.insert({"id": 4, "v": "d"})
    monkeypatch.setattr(live_source, "plan_base", lambda *_, **__: None)
    assert_reads(log, [ITEMS.name], [at])


@pytest.mark.long
def test_tables_that_are_created_and_renamed_in_the_tail(spark, lakehouse):
    """A swap through a third name, and a table that silver does not have."""
    log = simple(spark, lakehouse)
    begin = log.position
    log.create(OTHER)
    log.insert({"id": 7, "v": "x"}, OTHER.name)
    before = log.position
    statement = "RENAME TABLE items TO kept, other TO items"
    log.tables[("d", "kept")], log.tables[ITEMS.name] = log.tables[ITEMS.name], log.tables.pop(OTHER.name)
    for name in (ITEMS.name, ("d", "kept"), OTHER.name):
        log._row(Op.DDL, name, 0, ddl=statement)
    log.offset += 10
    log._look()
    log.tell(ITEMS)
    log.update({"id": 7, "v": "x"}, {"id": 7, "v": "y"})
    assert_reads(log, [ITEMS.name, OTHER.name], [before])
    assert_reads(log, [ITEMS.name, ("d", "kept")], [log.position])
    assert log.live().state(OTHER.name).rows is None
    assert begin < before


@pytest.mark.long
def test_a_dropped_table_does_not_exist(spark, lakehouse):
    """It can be read before the statement, and after it was created again."""
    log = simple(spark, lakehouse)
    before = log.position
    log.ddl("DROP TABLE items")
    dropped = log.position
    log.create(replace(ITEMS, columns=(*ITEMS.columns, Column("w", "int"))))
    log.insert({"id": 1, "v": "new", "w": 5})
    assert_reads(log, [ITEMS.name], [before, log.position])
    assert log.live(dropped).state(ITEMS.name).rows is None


def test_a_statement_that_silver_cannot_apply_names_the_last_position(spark, lakehouse):
    """The table is as readable as before the statement."""
    log = simple(spark, lakehouse)
    at = log.position
    log.ddl("ALTER TABLE items ADD COLUMN r DOUBLE DEFAULT (RAND())")
    with pytest.raises(NotReadable) as refused:
        log.live().state(ITEMS.name)
    assert refused.value.context["readable"] == str(at)
    assert_reads(log, [ITEMS.name], [at])


@pytest.mark.parametrize("action", [OnFailure.QUARANTINE, OnFailure.STOP])
def test_rows_that_silver_does_not_get(spark, lakehouse, action):
    """Quarantined rows are left out; a table that stops cannot be read after its last position."""
    log = simple(spark, lakehouse)
    check = RowCheck("v is not a2", F.coalesce(F.col("v") == "a2", F.lit(False)), action)
    live = log.live(checks=lambda *_: [check])
    if action is OnFailure.QUARANTINE:
        assert shown(live.state(ITEMS.name)) == [(3, "c2")]
    else:
        with pytest.raises(NotReadable, match="action stop fails"):
            live.state(ITEMS.name)


@pytest.mark.long
def test_a_bag_and_partial_images_keep_their_versions(spark, lakehouse):
    """A live read equals silver after the same range, including silver's own columns."""
    log = InterpretedLog(spark, lakehouse)
    begin = log.position
    work = Workload(log, 5, (BAG, PARTIAL))
    work.work(20)
    log.apply(begin, name=BAG.name)
    log.apply(begin, name=PARTIAL.name)
    middle = log.position
    work.work(30)
    live = log.live()
    read = {name: sorted(live.state(name).rows.collect(), key=repr) for name in (BAG.name, PARTIAL.name)}
    for name in (BAG.name, PARTIAL.name):
        log.apply(middle, name=name)
        silver = sorted(spark.table(lakehouse.silver(*name)).collect(), key=repr)
        assert [row.asDict() for row in read[name]] == [row.asDict() for row in silver]
        assert VERSION in silver[0].asDict()


def test_live_reads_leave_no_view(spark, lakehouse):
    """Each would hold its rows until the session ends. Frames of earlier reads keep their rows; names keep braces."""
    log = InterpretedLog(spark, lakehouse)
    begin = log.position
    bag = replace(BAG, columns=(BAG.columns[0], Column("v{0}", "varchar", length=80)))
    for schema in (bag, PARTIAL):
        log.create(schema)
    log.insert({"id": 1, "v{0}": "a"}, BAG.name)
    log.insert({"id": 1, "v": "a", "w": 1}, PARTIAL.name)
    for name in (BAG.name, PARTIAL.name):
        log.apply(begin, name=name)
    reads = []
    for number in (1, 2, 3):
        log.insert({"id": 1, "v{0}": f"b{number}"}, BAG.name)
        log.delete({"id": 1, "v{0}": f"b{number - 1}" if number > 1 else "a"}, BAG.name)
        log.update({"id": number}, {"id": number + 1, "w": number}, PARTIAL.name, image=["id", "w"])
        live = log.live()
        reads += [(live.state(name), log.at(log.position)[name].shown) for name in (BAG.name, PARTIAL.name)]
    assert [shown(state) for state, _ in reads] == [rows for _, rows in reads]
    assert [row.viewName for row in log.reader.sql("SHOW VIEWS").collect() if row.isTemporary] == []
