"""Routed and merged tables: which shard a row belongs to, in every way in which rows are applied."""

from dataclasses import replace

import pytest

from dmdelta.errors import SchemaError
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import Action, EventFilter
from dmdelta.rules.filters import Rule
from dmdelta.rules.operators import Operator, Verb
from dmdelta.sharding import Coordination, Mode
from dmdelta.silver.history.reload import ReloadRequest, reload_table
from dmdelta.silver.rows import strategy
from dmdelta.silver.rows.strategy import Step
from tests.support.changelog import SOURCE
from tests.support.sharded_changelog import COLUMNS, EXTRACT, MERGED, ONE, ROUTE, SHARD_1, SHARD_2, TWO, Shards


def test_shards_own_their_rows(spark, lakehouse):
    """Equal keys coexist and are counted; an update, a delete and a key change affect the shard's own row only."""
    shards = Shards(spark, lakehouse, ONE, TWO)
    log = shards.log
    for table in (ONE, TWO):
        for key in (1, 2, 3):
            log.insert({"id": key, "v": table[1]}, table)
    first, second = shards.apply()
    assert (first.clashes, second.clashes) == (0, 3)
    log.update({"id": 1, "v": "items_1"}, {"id": 1, "v": "new"}, ONE)
    log.delete({"id": 2, "v": "items_2"}, TWO)
    log.update({"id": 3, "v": "items_2"}, {"id": 2, "v": "moved"}, TWO)
    log.insert({"id": 9, "v": "x"}, TWO)
    for mode in (strategy.Mode.NORMAL, strategy.Mode.SAFE):
        begins = dict(shards.begins)
        results = shards.apply(mode)
        assert results[1].clashes == 1
        assert shards.silver("id", "v", "_dm_shard") == [
            (1, "items_2", SHARD_2),
            (1, "new", SHARD_1),
            (2, "items_1", SHARD_1),
            (2, "moved", SHARD_2),
            (3, "items_1", SHARD_1),
            (9, "x", SHARD_2),
        ]
        shards.begins = begins
    assert results[1].steps == (Step.MERGE,)


def test_a_truncated_or_dropped_shard(spark, lakehouse):
    """Its rows are removed, the others' are kept; later rows are applied."""
    shards = Shards(spark, lakehouse, ONE, TWO)
    log = shards.log
    log.insert({"id": 1, "v": "a"}, ONE)
    log.insert({"id": 1, "v": "b"}, TWO)
    shards.apply()
    log.ddl("TRUNCATE TABLE items_1", ONE)
    log.insert({"id": 5, "v": "after"}, ONE)
    shards.apply()
    assert shards.silver("id", "v") == [(1, "b"), (5, "after")]
    log.ddl("DROP TABLE items_2", TWO)
    shards.apply()
    assert shards.silver("id", "v") == [(5, "after")]


@pytest.mark.parametrize("mode", [pytest.param(strategy.Mode.NORMAL, marks=pytest.mark.long), strategy.Mode.SAFE])
def test_shards_without_a_key(spark, lakehouse, mode):
    """As many of a shard's equal rows are removed as were deleted, and none of another shard's."""
    shards = Shards(spark, lakehouse, ONE, TWO, key=())
    log = shards.log
    for table in (ONE, ONE, TWO):
        log.insert({"id": 1, "v": "same"}, table)
    shards.apply()
    log.delete({"id": 1, "v": "same"}, TWO)
    log.insert({"id": 2, "v": "new"}, TWO)
    shards.apply(mode)
    assert shards.silver("id", "_dm_shard") == [(1, SHARD_1), (1, SHARD_1), (2, SHARD_2)]


def test_partial_row_images(spark, lakehouse):
    """Constant columns are in no image, and in every row."""
    shards = Shards(spark, lakehouse, ONE, TWO, route={**ROUTE, **EXTRACT})
    log = shards.log
    log.insert({"id": 1, "v": "a"}, ONE)
    log.insert({"id": 1, "v": "b"}, TWO)
    assert [result.clashes for result in shards.apply()] == [0, 0]
    log.update({"id": 1}, {"id": 1, "v": "c"}, TWO, image=["id", "v"])
    log.insert({"id": 2}, TWO, image=["id"])
    log.update({"id": 1}, {"id": 7}, ONE, image=["id"])
    shards.apply()
    wanted = [(1, "c", "2", SOURCE, SHARD_2), (2, None, "2", SOURCE, SHARD_2), (7, "a", "1", SOURCE, SHARD_1)]
    assert shards.silver("id", "v", "number", "server", "_dm_shard") == wanted


def test_a_clash_can_be_an_error(spark, lakehouse):
    """It stops the shard before the row and names the shards, but no value."""
    shards = Shards(spark, lakehouse, ONE, TWO, shard_key_clash="error")
    log = shards.log
    log.insert({"id": 1, "v": "a"}, ONE)
    shards.apply()
    log.insert({"id": 1, "v": "b"}, TWO)
    with pytest.raises(SchemaError, match=r"1 keys of .*items_2.* also exist in .*items_1"):
        shards.apply()
    assert shards.silver("id", "v") == [(1, "a")]


@pytest.mark.parametrize(
    ("key", "days"),
    [
        (("day",), (None,)),
        (("id", "day"), (None, "2026-01-02")),
        *(
            pytest.param(key, days, marks=pytest.mark.long)
            for key, days in [
                (("day",), (None, "2026-01-02")),
                (("id", "day"), (None,)),
                (("day", "id"), (None,)),
                (("day", "id"), (None, "2026-01-02")),
            ]
        ),
    ],
)
def test_zero_dates_in_keys_clash(spark, lakehouse, key, days):
    """A zero date is NULL in silver, and equal to itself."""
    columns = (Column("id", "int"), Column("day", "date", nullable=False))
    shards = Shards(spark, lakehouse, ONE, TWO, key=key, columns=columns)
    for table in (ONE, TWO):
        for day in days:
            shards.log.insert({"id": 1, "day": day}, table)
    assert [result.clashes for result in shards.apply()] == [0, len(days)]


def test_without_a_mode_a_change_stops_the_shard(spark, lakehouse):
    """The merged table keeps its columns; the error names the missing setting."""
    shards = Shards(spark, lakehouse, ONE, TWO)
    shards.options["shards"] = Coordination()
    log = shards.log
    log.insert({"id": 1, "v": "a"}, ONE)
    shards.apply()
    log.ddl("ALTER TABLE items_1 ADD INDEX i (v)", ONE)
    shards.apply()
    log.ddl("ALTER TABLE items_1 ADD extra INT", ONE)
    with pytest.raises(SchemaError, match="which is merged from several source tables"):
        shards.apply()


def _ignored(schema, table):
    """A filter that ignores new columns of a table."""
    return EventFilter((Rule("r", schema, table, ("add column",), (), Action.IGNORE),))


WIDER = TableSchema(*TWO, (*COLUMNS, Column("w", "int")), ("id",))
SKIP = Operator(Verb.SKIP)
UNRELATED = {"events": _ignored("d1", "items_1"), "operators": {Position(1, "binlog.000001", 1000): SKIP}}
"""The override is of the first event, which is of the first shard."""


def _joining(spark, lakehouse, **rules):
    """A shard that joins with a column that the other one lacks."""
    shards = Shards(spark, lakehouse, ONE, **rules)
    shards.options["shards"] = Coordination(Mode.OPTIMISTIC)
    shards.log.insert({"id": 1, "v": "a"}, ONE)
    shards.apply()
    shards.begins[TWO] = shards.log.position
    shards.log.tell(WIDER)
    shards.log.insert({"id": 2, "v": "b", "w": 7}, TWO)
    return shards


def test_a_shard_joins_with_all_of_its_columns(spark, lakehouse):
    """Also if a filter or an operator override ignores statements, of this table or of others."""
    shards = _joining(spark, lakehouse, events=_ignored("d2", "items_2"), operators=UNRELATED["operators"])
    shards.apply()
    assert shards.silver("id", "w") == [(1, None), (2, 7)]
    shards.log.ddl("ALTER TABLE items_2 ADD x INT", TWO)
    shards.log.insert({"id": 3, "v": "c", "w": 8, "x": 9}, TWO)
    shards.apply()
    shards.log.results.clear()  # as after a start
    shards.log.insert({"id": 4, "v": "d", "w": 8, "x": 9}, TWO)
    shards.apply()
    assert shards.silver("id", "w") == [(1, None), (2, 7), (3, 8), (4, 8)]
    assert "x" not in spark.table(lakehouse.silver(*MERGED)).columns


@pytest.mark.parametrize("own", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_reloaded_shard_lacks_only_columns_that_its_own_rules_ignore(spark, lakehouse, own):
    """As the log does; the reload adds others."""
    shards = _joining(spark, lakehouse, **UNRELATED)
    shards.apply()
    skipped = {shards.log.position: SKIP} if own else UNRELATED["operators"]
    shards.options["rules"] = replace(shards.options["rules"], operators=skipped)
    if own:
        shards.log.ddl("ALTER TABLE items_2 ADD x INT", TWO)
    wider = replace(WIDER, columns=(*WIDER.columns, Column("x", "int")))
    shards.log.tell(wider)
    shards.log.change(Op.READ, None, {"id": 5, "v": "e", "w": 6, "x": 7}, TWO)
    end = shards.log.land()
    context = shards.log.request(end, end, name=TWO, **shards.options).context
    reload_table(spark, ReloadRequest(context, wider, 1, end, None))
    assert shards.silver("id", "w") == [(1, None), (5, 6)]
    assert ("x" in spark.table(lakehouse.silver(*MERGED)).columns) is not own


def test_a_renamed_target_table(spark, lakehouse):
    """Under another name, with the extracted columns; a change of its structure leaves them unchanged."""
    route = {**ROUTE, **EXTRACT, "schema-pattern": "d1", "table-pattern": "items_1"}
    shards = Shards(spark, lakehouse, ONE, route=route)
    log = shards.log
    log.insert({"id": 1, "v": "a"}, ONE)
    log.ddl("ALTER TABLE items_1 ADD w INT DEFAULT 5 AFTER id, DROP v", ONE)
    log.insert({"id": 2, "w": 6}, ONE)
    shards.apply()
    assert shards.log.silver(MERGED) == [(1, 5, "1", SOURCE), (2, 6, "1", SOURCE)]
    log.ddl("TRUNCATE TABLE items_1", ONE)
    shards.apply()
    assert shards.log.silver(MERGED) == []
